#pragma once

#include <cstddef>
#include <list>
#include <map>
#include <string>

#include "core/run/device.hpp"
#include "core/run/host_mapping.hpp"

namespace attest {

/// Ordinary host memory: where CPU kernels run. Work is finished when a launch returns. Every
/// buffer has pages of its own (HostMapping): writing to an input ends the process. Of a buffer in
/// pieces only what is touched takes memory; what lies between them reads as 0.
class HostMemoryDevice final : public Device {
 public:
  [[nodiscard]] std::byte* upload(const BufferImage& image) override;
  [[nodiscard]] bool ends_buffers_at_pages() const override { return true; }
  void download(const std::byte* from, std::span<std::byte> to) override;
  void release(std::byte* buffer) noexcept override;
  [[nodiscard]] const BufferPlace* buffer_at(const void* address) const override;
  void synchronize() override {}
  [[nodiscard]] double time_ms(const std::function<void()>& work) override;
  [[nodiscard]] std::string description() const override;

 private:
  std::map<std::byte*, HostMapping> mappings_;  ///< by the address of byte 0
  std::list<HostMapping> retired_;              ///< of small buffers that are gone, oldest first
};

}  // namespace attest
