#include "core/run/host_memory_device.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <span>
#include <thread>
#include <utility>

namespace attest {
namespace {

// New pages cost a fault each, more than copying into them. A launch has at most nine buffers.
constexpr std::size_t most_retired = 18, largest_retired_bytes = std::size_t{1} << 20;

}  // namespace

std::byte* HostMemoryDevice::upload(const BufferImage& image) {
  const auto keep = [this](HostMapping mapping) {
    std::byte* const buffer = mapping.address();
    mappings_.emplace(buffer, std::move(mapping));
    return buffer;
  };
  const auto spare =
      std::ranges::find_if(retired_, [&](const HostMapping& old) { return old.fits(image); });
  if (spare == retired_.end()) return keep(HostMapping(image));
  spare->reuse(image);
  HostMapping mapping = std::move(*spare);
  retired_.erase(spare);
  return keep(std::move(mapping));
}

void HostMemoryDevice::download(const std::byte* from, std::span<std::byte> to) {
  // memcpy may not copy nothing to a null pointer: outputs without rows.
  std::ranges::copy(std::span(from, to.size()), to.begin());
}

void HostMemoryDevice::release(std::byte* buffer) noexcept {
  const auto found = mappings_.find(buffer);
  if (found == mappings_.end()) return;
  HostMapping& mapping = found->second;
  if (mapping.size_bytes() <= largest_retired_bytes && mapping.retire()) {
    retired_.push_back(std::move(mapping));
    if (retired_.size() > most_retired) retired_.pop_front();
  }
  mappings_.erase(found);
}

const BufferPlace* HostMemoryDevice::buffer_at(const void* address) const {
  const auto* const byte = static_cast<const std::byte*>(address);
  const auto behind = mappings_.upper_bound(const_cast<std::byte*>(byte));
  if (behind == mappings_.begin()) return nullptr;
  const BufferPlace& place = std::prev(behind)->second.place();
  // A tensor without elements may begin where its buffer ends.
  return byte <= place.address + place.size_bytes() ? &place : nullptr;
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
