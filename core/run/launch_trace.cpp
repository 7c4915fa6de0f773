#include "core/run/launch_trace.hpp"

namespace attest {
namespace {

double ratio(std::int64_t a, std::int64_t b, double otherwise) {
  return b == 0 ? otherwise : static_cast<double>(a) / static_cast<double>(b);
}

}  // namespace

const std::array<std::int64_t AccessCounts::*, 9>& access_count_members() {
  static constexpr std::array<std::int64_t AccessCounts::*, 9> members{
      &AccessCounts::requests,     &AccessCounts::partial_requests, &AccessCounts::lane_accesses,
      &AccessCounts::bytes,        &AccessCounts::distinct_bytes,   &AccessCounts::passes,
      &AccessCounts::ideal_passes, &AccessCounts::broadcasts,       &AccessCounts::sectors};
  return members;
}

AccessCounts& AccessCounts::operator+=(const AccessCounts& other) {
  for (const auto member : access_count_members()) this->*member += other.*member;
  return *this;
}

double AccessCounts::ways() const {
  return ratio(passes, ideal_passes, 1.0);
}
double AccessCounts::sectors_per_request() const {
  return ratio(sectors, requests, 0.0);
}
double AccessCounts::coalescing_efficiency() const {
  return ratio(distinct_bytes, 32 * sectors, 1.0);
}

AccessCounts KernelTrace::total(MemorySpace space) const {
  AccessCounts sum;
  for (const AccessSite& site : sites)
    if (site.space == space) sum += site.counts;
  return sum;
}

AccessCounts KernelTrace::total(MemorySpace space, AccessKind kind) const {
  AccessCounts sum;
  for (const AccessSite& site : sites)
    if (site.space == space && site.kind == kind) sum += site.counts;
  return sum;
}

double KernelTrace::fmas_per_shared_load() const {
  return ratio(fmas, total(MemorySpace::shared, AccessKind::read).lane_accesses, 0.0);
}

}  // namespace attest
