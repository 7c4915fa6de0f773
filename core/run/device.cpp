#include "core/run/device.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"

namespace attest {

std::string_view name_of(Executor executor) {
  constexpr std::array<std::string_view, 3> names{"cpu", "simt", "gpu"};
  return names[static_cast<std::size_t>(executor)];
}

std::optional<Executor> executor_from_name(std::string_view name) {
  for (const Executor executor : {Executor::cpu, Executor::simt, Executor::gpu}) {
    if (name_of(executor) == name) return executor;
  }
  return std::nullopt;
}

void Device::fill(std::byte* to, std::size_t bytes, std::span<const std::byte> pattern) {
  synchronize();
  for (std::size_t at = 0; at < bytes; at += pattern.size()) {
    std::ranges::copy(pattern.first(std::min(pattern.size(), bytes - at)), to + at);
  }
}

std::unique_ptr<Recording> Device::record(const std::function<void()>& /*work*/) {
  throw MachineError(fmt::format("{} records no work", description()));
}

std::vector<Measurement> Device::count(std::span<const std::string> counters,
                                       const std::function<void()>& /*work*/) {
  throw MachineError(fmt::format("{} has no hardware counters; asked for: {}", description(),
                                 fmt::join(counters, ", ")));
}

BufferPlace place_of(const BufferImage& image) {
  BufferPlace place{.name = image.name,
                    .alignment = image.alignment,
                    .is_input = image.is_input,
                    .ends_at_page = image.ends_at_page};
  for (const BufferImage::Piece& piece : image.pieces) {
    place.pieces.push_back({piece.begin, piece.begin + piece.bytes.size()});
  }
  if (!image.pieces.empty()) {
    place.accessible = {image.pieces.front().accessible.begin, image.pieces.back().accessible.end};
  }
  return place;
}

}  // namespace attest
