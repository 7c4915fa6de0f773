#include "gpu/simt/request_builder.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <numeric>
#include <span>
#include <string_view>
#include <utility>

#include "gpu/simt/symbols.hpp"

namespace attest::simt {
namespace {

std::pair<std::string_view, int> file_and_number(std::string_view line) {
  const std::size_t colon = line.rfind(':');
  if (colon == std::string_view::npos) return {line, 0};
  int number = 0;
  std::from_chars(line.data() + colon + 1, line.data() + line.size(), number);
  return {line.substr(0, colon), number};
}

/// True if `a` stands before `b` in the source. What a line calls stands before what it does
/// itself: `x[i] = f(y)` ends with the store.
bool stands_before(const RequestBuilder::Site& a, const RequestBuilder::Site& b) {
  auto x = a.lines.rbegin(), y = b.lines.rbegin();
  for (; x != a.lines.rend() && y != b.lines.rend(); ++x, ++y) {
    if (const auto left = file_and_number(*x), right = file_and_number(*y); left != right)
      return left < right;
  }
  if ((x == a.lines.rend()) != (y == b.lines.rend())) return x != a.lines.rend();
  return std::pair(a.point, a.kind) < std::pair(b.point, b.kind);
}

constexpr unsigned bank_count = 32, sector_bytes = 32;

/// True if each lane wants what its partner wants, unless one of the two takes no part.
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

RequestBuilder::SiteIndex RequestBuilder::site_of(ProgramPoint point, MemorySpace space,
                                                  AccessKind kind, unsigned size_bytes) {
  const std::uint64_t key = std::uint64_t{point} << 16 | std::uint64_t{size_bytes} << 8 |
                            static_cast<std::uint64_t>(space) << 4 |
                            static_cast<std::uint64_t>(kind);
  Recent& recent = recent_[(key ^ key >> 24) % recent_.size()];
  if (recent.key == key) return recent.site;
  const auto [found, is_new] = index_.try_emplace(key, static_cast<SiteIndex>(sites_.size()));
  if (is_new) {
    Site& site = sites_.emplace_back();
    site.point = point;
    site.space = space;
    site.kind = kind;
    site.size_bytes = size_bytes;
    site.lines = source_lines(point);
    loop_end_.push_back(found->second);
  }
  recent = {key, found->second};
  return found->second;
}

void RequestBuilder::add(ProgramPoint point, MemorySpace space, AccessKind kind,
                         unsigned size_bytes, std::uintptr_t address, unsigned lane) {
  const SiteIndex i = site_of(point, space, kind, size_bytes);
  events_[lane].push_back({address, i});
  busy_lanes_ |= 1U << lane;
  Site& site = sites_[i];
  site.lowest = std::min(site.lowest, address);
  site.highest = std::max(site.highest, address + size_bytes);
}

void RequestBuilder::add_copied_row(ProgramPoint point, MemorySpace space, AccessKind kind,
                                    std::uintptr_t address, std::size_t size_bytes) {
  WarpRequest request{.space = space, .kind = kind, .size_bytes = 16};
  unsigned lane = 0;
  for (std::size_t done = 0; done < size_bytes; done += request.size_bytes) {
    request.address[lane] = address + done;
    request.lanes |= 1U << lane++;
  }
  const RequestCost cost = cost_of(request);
  Site& site = sites_[site_of(point, space, kind, request.size_bytes)];
  site.lowest = std::min(site.lowest, address);
  site.highest = std::max(site.highest, address + size_bytes);
  site.counts += cost.counts;
  site.worst_ways = std::max(site.worst_ways, cost.worst_ways);
}

void RequestBuilder::rank_sites() {
  if (rank_.size() == sites_.size()) return;
  std::vector<SiteIndex> order(sites_.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::sort(order,
                    [&](SiteIndex a, SiteIndex b) { return stands_before(sites_[a], sites_[b]); });
  rank_.resize(sites_.size());
  for (std::size_t r = 0; r < order.size(); ++r) rank_[order[r]] = r;
}

void RequestBuilder::find_loops() {
  for (const std::vector<Event>& events : events_) {
    for (std::size_t e = 1; e < events.size(); ++e) {
      const SiteIndex from = events[e - 1].site, to = events[e].site;
      if (rank_[to] <= rank_[from] && rank_[loop_end_[to]] < rank_[from]) loop_end_[to] = from;
    }
  }
}

/// True if all lanes that did anything did the same.
bool RequestBuilder::lanes_agree() const {
  const auto& first = events_[static_cast<unsigned>(std::countr_zero(busy_lanes_))];
  return std::ranges::all_of(events_, [&](const std::vector<Event>& events) {
    return events.empty() || std::ranges::equal(events, first, {}, &Event::site, &Event::site);
  });
}

RequestBuilder::Schedule RequestBuilder::schedule(LoopEnd loop_end) const {
  constexpr std::uint64_t at_the_end = ~std::uint64_t{0};
  // Even: twice the rank of the lane's next instruction. Odd: the lane waits at the end of a loop
  // after that instruction.
  std::array<std::uint64_t, 32> position;
  std::array<std::size_t, 32> next{};
  const auto find_position = [&](unsigned lane) {
    const std::vector<Event>& events = events_[lane];
    if (next[lane] == events.size()) return at_the_end;
    const SiteIndex to = events[next[lane]].site;
    if (next[lane] == 0) return 2 * rank_[to];
    const SiteIndex from = events[next[lane] - 1].site;
    if (rank_[to] > rank_[from]) return 2 * rank_[to];
    return 2 * rank_[loop_end == LoopEnd::own ? from : loop_end_[to]] + 1;
  };
  for (unsigned lane = 0; lane < 32; ++lane) position[lane] = find_position(lane);

  Schedule schedule;
  for (;;) {
    const std::uint64_t first = std::ranges::min(position);
    if (first == at_the_end) return schedule;
    unsigned mask = 0;
    for (unsigned lane = 0; lane < 32; ++lane) {
      if (position[lane] != first) continue;
      if (first % 2 == 0) {
        mask |= 1U << lane;
        ++next[lane];
        position[lane] = find_position(lane);
      } else {  // all who wait at this end of a loop go round it
        position[lane] = 2 * rank_[events_[lane][next[lane]].site];
      }
    }
    if (mask != 0) schedule.push_back(mask);
  }
}

void RequestBuilder::take(const Schedule& schedule, unsigned alive) {
  std::array<std::size_t, 32> next{};
  for (const unsigned mask : schedule) {
    WarpRequest request;
    request.lanes = mask;
    SiteIndex index = 0;
    for (unsigned lanes = mask; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<unsigned>(std::countr_zero(lanes));
      const Event& event = events_[lane][next[lane]++];
      index = event.site;
      request.address[lane] = event.address;
    }
    Site& site = sites_[index];
    request.space = site.space;
    request.kind = site.kind;
    request.size_bytes = site.size_bytes;
    const RequestCost cost = cost_of(request);
    site.counts += cost.counts;
    site.counts.partial_requests += (alive & ~mask) != 0 ? 1 : 0;
    site.worst_ways = std::max(site.worst_ways, cost.worst_ways);
  }
}

void RequestBuilder::flush(unsigned alive) {
  if (busy_lanes_ == 0) return;
  if (lanes_agree()) {
    const auto any = static_cast<unsigned>(std::countr_zero(busy_lanes_));
    take(Schedule(events_[any].size(), busy_lanes_), alive);
  } else {
    rank_sites();
    find_loops();
    const Schedule own = schedule(LoopEnd::own), common = schedule(LoopEnd::common);
    take(own.size() < common.size() ? own : common, alive);
  }
  for (std::vector<Event>& events : events_) events.clear();
  busy_lanes_ = 0;
}

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
