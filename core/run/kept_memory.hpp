#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/run/device.hpp"

namespace attest {

/// Memory of a device for sessions that follow each other: each finds its buffers where those of
/// the one before lay, with its own contents in them, as where a serving system calls a kernel
/// again. What is of another size than before lies elsewhere. Inputs are not protected, and what
/// an executor knows of memory that nobody wrote is lost: look at findings elsewhere. Kernels are
/// launched on the device itself.
class KeptMemory final : public Device {
 public:
  /// Buffers called `leftover` keep what the session before left in them. Empty: none do.
  explicit KeptMemory(Device& device, std::string leftover = {})
      : device_(device), leftover_(std::move(leftover)) {}
  ~KeptMemory() override;

  /// True if any buffer of the last session lies elsewhere than that of the first.
  [[nodiscard]] bool has_moved() const { return has_moved_; }

  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  [[nodiscard]] bool ends_buffers_at_pages() const override {
    return device_.ends_buffers_at_pages();
  }
  void download(const std::byte* from, std::span<std::byte> to) override {
    device_.download(from, to);
  }
  /// The buffer waits for the next session.
  void release(std::byte* buffer) noexcept override;
  void poison_scratch() override { device_.poison_scratch(); }
  void synchronize() override { device_.synchronize(); }
  [[nodiscard]] double time_ms(const std::function<void()>& work) override {
    return device_.time_ms(work);
  }
  void seed_schedule(std::uint64_t seed) override { device_.seed_schedule(seed); }
  [[nodiscard]] std::string description() const override { return device_.description(); }

 private:
  struct Buffer {
    std::vector<std::size_t> sizes;  ///< where each piece begins, and its bytes
    std::size_t alignment = 0;
    bool ends_at_page = false;
    std::byte* address = nullptr;
  };

  Device& device_;
  std::string leftover_;
  std::vector<Buffer> buffers_;  ///< in the order in which sessions ask for them
  std::size_t next_ = 0;
  std::size_t used_ = 0;  ///< of the session that lives
  bool has_moved_ = false;
};

}  // namespace attest
