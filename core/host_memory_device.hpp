#pragma once

#include <cstddef>
#include <map>
#include <string>

#include "core/device.hpp"

namespace attest {

/// Ordinary host memory: where CPU kernels run. Work is finished when a launch returns. Of a buffer
/// in pieces only what is touched takes memory; what lies between them reads as 0.
class HostMemoryDevice final : public Device {
 public:
  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  void download(const std::byte* from, std::span<std::byte> to) override;
  void release(std::byte* buffer) noexcept override;
  void synchronize() override {}
  [[nodiscard]] double time_ms(const std::function<void()>& work) override;
  [[nodiscard]] std::string description() const override;

 private:
  std::map<std::byte*, std::size_t> mapped_;  ///< sizes of the buffers in pieces
};

}  // namespace attest
