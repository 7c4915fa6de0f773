#include "core/host_memory_device.hpp"

#include <fmt/format.h>
#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <span>
#include <thread>

#include "core/error.hpp"

namespace attest {
namespace {

constexpr std::align_val_t alignment{256};

}  // namespace

std::byte* HostMemoryDevice::upload(const BufferImage& image) {
  const std::size_t size = image.size_bytes();
  std::byte* buffer = nullptr;
  if (image.pieces.size() <= 1) {
    buffer = static_cast<std::byte*>(::operator new(size, alignment));
  } else {
    void* const mapped = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (mapped == MAP_FAILED) {
      throw MachineError(fmt::format(
          "cannot reserve {} bytes of address space for {}: {}; a limit (ulimit -v) may be set",
          size, image.name, std::strerror(errno)));
    }
    buffer = static_cast<std::byte*>(mapped);
    mapped_[buffer] = size;
  }
  for (const BufferImage::Piece& piece : image.pieces) {
    std::ranges::copy(piece.bytes, buffer + piece.begin);
  }
  return buffer;
}

void HostMemoryDevice::download(const std::byte* from, std::span<std::byte> to) {
  // memcpy may not copy nothing to a null pointer: outputs without rows.
  std::ranges::copy(std::span(from, to.size()), to.begin());
}

void HostMemoryDevice::release(std::byte* buffer) noexcept {
  const auto mapped = mapped_.find(buffer);
  if (mapped == mapped_.end()) {
    ::operator delete(buffer, alignment);
    return;
  }
  munmap(buffer, mapped->second);
  mapped_.erase(mapped);
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
