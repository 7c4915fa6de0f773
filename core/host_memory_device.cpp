#include "core/host_memory_device.hpp"

#include <fmt/format.h>

#include <chrono>
#include <cstring>
#include <new>
#include <thread>

namespace attest {
namespace {

constexpr std::align_val_t alignment{256};

}  // namespace

std::byte* HostMemoryDevice::upload(const BufferImage& image) {
  auto* buffer = static_cast<std::byte*>(::operator new(image.bytes.size(), alignment));
  std::memcpy(buffer, image.bytes.data(), image.bytes.size());
  return buffer;
}

void HostMemoryDevice::download(const std::byte* from, std::span<std::byte> to) {
  std::memcpy(to.data(), from, to.size());
}

void HostMemoryDevice::release(std::byte* buffer) noexcept {
  ::operator delete(buffer, alignment);
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
