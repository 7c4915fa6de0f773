#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/device.hpp"

namespace attest {

/// Memory of one rank between guards. Of a rank of another process there is none: null.
template <Executor home>
class RingMemory {
 public:
  explicit RingMemory(Device* device) : device_(device) {}
  RingMemory(RingMemory&&) = default;
  ~RingMemory() {
    for (const Buffer& buffer : buffers_) device_->release(buffer.data);
  }

  /// `page_bytes`: it has pages of that size to itself.
  [[nodiscard]] std::byte* add(std::string name, std::size_t bytes, std::size_t page_bytes = 1) {
    if (device_ == nullptr) return nullptr;
    const std::size_t end = (bytes + 15) / 16 * 16, needed = end + 2 * guard_bytes;
    std::byte* const buffer =
        device_->allocate((needed + page_bytes - 1) / page_bytes * page_bytes);
    for (std::byte* const at : {buffer, buffer + guard_bytes + end}) {
      device_->fill(at, guard_bytes, std::span(&guard, 1));
    }
    buffers_.push_back({std::move(name), buffer, end});
    return buffer + guard_bytes;
  }
  /// Throws KernelError where a guard was written.
  void check(std::int64_t rank) {
    for (const Buffer& buffer : buffers_) {
      for (const bool is_behind : {false, true}) {
        std::array<std::byte, guard_bytes> now{};
        device_->download(buffer.data + (is_behind ? guard_bytes + buffer.bytes : 0), now);
        if (std::ranges::all_of(now, [](std::byte b) { return b == guard; })) continue;
        throw KernelError("rank " + std::to_string(rank) + "'s " + buffer.name + ": bytes " +
                          (is_behind ? "behind" : "before") + " it were written");
      }
    }
  }

 private:
  static constexpr std::size_t guard_bytes = 256;
  static constexpr std::byte guard{0xff};  ///< a NaN in every format
  struct Buffer {
    std::string name;
    std::byte* data;
    std::size_t bytes;
  };
  Device* device_;
  std::vector<Buffer> buffers_;
};

}  // namespace attest
