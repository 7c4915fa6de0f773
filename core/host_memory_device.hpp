#pragma once

#include "core/device.hpp"

namespace attest {

/// Ordinary host memory: where CPU kernels run. Work is finished when a launch returns.
class HostMemoryDevice final : public Device {
 public:
  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  void download(const std::byte* from, std::span<std::byte> to) override;
  void release(std::byte* buffer) noexcept override;
  void synchronize() override {}
  [[nodiscard]] double time_ms(const std::function<void()>& work) override;
  [[nodiscard]] std::string description() const override;
};

}  // namespace attest
