#include "gpu/simt/request_cost.hpp"

#include <algorithm>
#include <bit>
#include <span>

namespace attest::simt {
namespace {

constexpr unsigned bank_count = 32, sector_bytes = 32;

/// Whether each lane wants what its partner wants, unless one of the two takes no part.
bool agrees_with_partner(const WarpRequest& request, unsigned distance) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned partner = lane ^ distance;
    const bool both = (request.lanes >> lane & 1U) != 0 && (request.lanes >> partner & 1U) != 0;
    if (both && request.address[lane] != request.address[partner]) return false;
  }
  return true;
}

unsigned lanes_at_once(const WarpRequest& request) {
  if (request.size_bytes <= 4) return 32;
  const unsigned lanes = 128 / request.size_bytes;
  const bool is_paired = request.kind == AccessKind::read &&
                         (agrees_with_partner(request, 1) || agrees_with_partner(request, 2));
  return is_paired ? 2 * lanes : lanes;
}

/// Words of the busiest bank that the group's lanes want: passes through the banks.
int passes_of(const WarpRequest& request, unsigned group) {
  std::array<std::array<std::uintptr_t, 32>, bank_count> wanted;
  std::array<int, bank_count> count{};
  int passes = 0;
  for (unsigned lanes = group; lanes != 0; lanes &= lanes - 1) {
    const std::uintptr_t first = request.address[static_cast<unsigned>(std::countr_zero(lanes))];
    const std::uintptr_t last = first + request.size_bytes - 1;
    for (std::uintptr_t word = first / 4; word <= last / 4; ++word) {
      auto& words = wanted[word % bank_count];
      int& n = count[word % bank_count];
      if (std::find(words.begin(), words.begin() + n, word) != words.begin() + n) continue;
      words[static_cast<unsigned>(n++)] = word;
      passes = std::max(passes, n);
    }
  }
  return passes;
}

void add_passes(const WarpRequest& request, RequestCost& cost) {
  const unsigned width = lanes_at_once(request);
  for (unsigned first = 0; first < 32; first += width) {
    const unsigned group =
        width == 32 ? request.lanes : request.lanes & ((1U << width) - 1) << first;
    if (group == 0) continue;
    const int passes = passes_of(request, group);
    ++cost.counts.ideal_passes;
    cost.counts.passes += passes;
    cost.worst_ways = std::max(cost.worst_ways, passes);
  }
}

/// `addresses` ascending.
std::int64_t sectors_of(std::span<const std::uintptr_t> addresses, unsigned size_bytes) {
  std::int64_t sectors = 0;
  std::uintptr_t next = 0;  // the first sector that is not counted yet
  for (const std::uintptr_t address : addresses) {
    const std::uintptr_t last = (address + size_bytes - 1) / sector_bytes;
    const std::uintptr_t first = std::max(address / sector_bytes, next);
    if (first > last) continue;
    sectors += static_cast<std::int64_t>(last - first + 1);
    next = last + 1;
  }
  return sectors;
}

}  // namespace

RequestCost cost_of(const WarpRequest& request) {
  std::array<std::uintptr_t, 32> addresses;
  std::size_t n = 0;
  for (unsigned lanes = request.lanes; lanes != 0; lanes &= lanes - 1)
    addresses[n++] = request.address[static_cast<unsigned>(std::countr_zero(lanes))];
  std::sort(addresses.begin(), addresses.begin() + n);
  const auto distinct = static_cast<std::size_t>(
      std::unique(addresses.begin(), addresses.begin() + n) - addresses.begin());

  RequestCost cost;
  AccessCounts& counts = cost.counts;
  counts.requests = 1;
  counts.lane_accesses = static_cast<std::int64_t>(n);
  counts.bytes = counts.lane_accesses * request.size_bytes;
  counts.distinct_bytes = static_cast<std::int64_t>(distinct) * request.size_bytes;
  if (request.space == MemorySpace::global) {
    counts.sectors = sectors_of(std::span(addresses).first(distinct), request.size_bytes);
  } else {
    counts.broadcasts = distinct < n ? 1 : 0;
    add_passes(request, cost);
  }
  return cost;
}

}  // namespace attest::simt
