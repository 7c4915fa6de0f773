#include "gpu/simt/request_builder.hpp"

#include <algorithm>

namespace attest::simt {

std::size_t RequestBuilder::site_of(ProgramPoint point, MemorySpace space, AccessKind kind,
                                    unsigned size_bytes) {
  const std::uint64_t key = std::uint64_t{point} << 16 | std::uint64_t{size_bytes} << 8 |
                            static_cast<std::uint64_t>(space) << 4 |
                            static_cast<std::uint64_t>(kind);
  Recent& recent = recent_[(point ^ point >> 8) % recent_.size()];
  if (recent.key == key) return recent.site;
  const auto [found, is_new] = index_.try_emplace(key, sites_.size());
  if (is_new) {
    Site& site = sites_.emplace_back();
    site.point = point;
    site.space = space;
    site.kind = kind;
    site.size_bytes = size_bytes;
    open_.emplace_back();
  }
  recent = {key, found->second};
  return found->second;
}

void RequestBuilder::add(ProgramPoint point, MemorySpace space, AccessKind kind,
                         unsigned size_bytes, std::uintptr_t address, unsigned lane) {
  const std::size_t i = site_of(point, space, kind, size_bytes);
  OpenSite& open = open_[i];
  const std::uint32_t time = open.times[lane]++;
  if (time == open.request_count) {
    if (open.request_count == 0) touched_.push_back(i);
    if (open.request_count == open.requests.size()) open.requests.emplace_back();
    open.requests[open.request_count++].mask = 0;
  }
  Lanes& lanes = open.requests[time];
  lanes.mask |= 1U << lane;
  lanes.address[lane] = address;
  Site& site = sites_[i];
  site.lowest = std::min(site.lowest, address);
  site.highest = std::max(site.highest, address + size_bytes);
}

void RequestBuilder::flush(unsigned alive) {
  for (const std::size_t i : touched_) {
    Site& site = sites_[i];
    OpenSite& open = open_[i];
    for (std::size_t r = 0; r < open.request_count; ++r) {
      const Lanes& lanes = open.requests[r];
      const RequestCost cost =
          cost_of({site.space, site.kind, site.size_bytes, lanes.mask, lanes.address});
      site.counts += cost.counts;
      site.counts.partial_requests += (alive & ~lanes.mask) != 0 ? 1 : 0;
      site.worst_ways = std::max(site.worst_ways, cost.worst_ways);
    }
    open.times.fill(0);
    open.request_count = 0;
  }
  touched_.clear();
}

}  // namespace attest::simt
