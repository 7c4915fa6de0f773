#include "core/host_memory_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <span>
#include <thread>
#include <utility>

namespace attest {

std::byte* HostMemoryDevice::upload(const BufferImage& image) {
  HostMapping mapping(image);
  std::byte* const buffer = mapping.address();
  mappings_.emplace(buffer, std::move(mapping));
  return buffer;
}

void HostMemoryDevice::download(const std::byte* from, std::span<std::byte> to) {
  // memcpy may not copy nothing to a null pointer: outputs without rows.
  std::ranges::copy(std::span(from, to.size()), to.begin());
}

void HostMemoryDevice::release(std::byte* buffer) noexcept {
  mappings_.erase(buffer);
}

double HostMemoryDevice::time_ms(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start)
      .count();
}

std::string HostMemoryDevice::description() const {
  return fmt::format("host, {} threads", std::thread::hardware_concurrency());
}

}  // namespace attest
