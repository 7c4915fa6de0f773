#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/simt/trace_kernel.hpp"

// What S3 read from a profiler on an A6000, from the executor alone (Q3.11 to Q3.19, and the bank
// conflicts that its kernels must have), at its tiles of 32 x 32 and head_dim 64.
namespace attest {
namespace {

const std::string ledger_shape = "b8 h12 n4096 d64 ";

const KernelInfo& kernel(std::string_view name) {
  const KernelInfo* found = find_kernel(name, Executor::simt);
  if (found == nullptr) throw InvalidInput("no kernel " + std::string(name));
  return *found;
}

/// S3's plan, in the fields that the kernel has.
Plan plan_of(std::string_view name) {
  Plan plan{.query_tile = 32, .key_tile = 32};
  if (name[1] >= '4') plan.thread_rows = plan.thread_keys = 4;
  if (name[1] >= '6') plan.dim_tile = 32;
  return plan;
}

LaunchConfiguration only_launch(std::string_view name) {
  const auto launches =
      observe_launches(kernel(name), problem_from_string(ledger_shape), plan_of(name), {});
  EXPECT_EQ(launches.size(), 1U) << name;
  return launches.front();
}

TEST(LadderLaunches, haveS3sGridsBlocksAndSharedMemory) {
  struct Expected {
    std::string name;
    std::int64_t blocks, threads, shared_bytes;
  };
  for (const auto& [name, blocks, threads, shared_bytes] :
       std::vector<Expected>{{"k1_naive", 96, 32, 28672},
                             {"k2_coalesced", 96, 1024, 37120},
                             {"k3_sequence_parallel", 12288, 1024, 28928},
                             {"k4_register_tile", 12288, 64, 28672},
                             {"k5_padded_tiles", 12288, 64, 28928},
                             {"k6_sliced_dims", 12288, 64, 20736},
                             {"k8_padded_queries", 12288, 64, 20736 + 32 * 4}}) {
    const LaunchConfiguration launch = only_launch(name);
    EXPECT_EQ(launch.grid.count(), blocks) << name;
    EXPECT_EQ(launch.block.count(), threads) << name;
    EXPECT_EQ(launch.dynamic_shared_bytes, shared_bytes) << name;
    // K7 and K8 are one source.
    const std::string function = name == "k8_padded_queries" ? "shuffled_rows" : name;
    EXPECT_EQ(launch.kernel.substr(0, launch.kernel.find('<')), function);
  }
}

/// Places of a kernel's tiles in shared memory, in floats: Q, K, V, then S.
struct Tiles {
  std::size_t q, k, v, s;
};

/// The one instruction that reads most from [begin, begin + floats) of shared memory.
AccessSite busiest_read(const KernelTrace& trace, std::size_t begin, std::size_t floats) {
  std::optional<AccessSite> busiest;
  for (const AccessSite& site : trace.sites) {
    const bool is_inside = site.space == MemorySpace::shared && site.kind == AccessKind::read &&
                           site.range.begin >= 4 * begin && site.range.end <= 4 * (begin + floats);
    if (is_inside && (!busiest || site.counts.requests > busiest->counts.requests)) busiest = site;
  }
  EXPECT_TRUE(busiest.has_value()) << trace.configuration.kernel << " from " << 4 * begin;
  return busiest.value_or(AccessSite{});
}

/// n-way conflicts of the busiest reads of Q, K, V and S, full mask, two tiles each way.
std::array<double, 4> conflicts(std::string_view name, const Tiles& tiles) {
  const auto traces =
      trace_kernel(kernel(name), problem_from_string("b1 h1 n64 d64"), plan_of(name));
  EXPECT_EQ(traces.size(), 1U);
  std::array<double, 4> ways{};
  std::size_t begin = 0, i = 0;
  for (const std::size_t floats : {tiles.q, tiles.k, tiles.v, tiles.s}) {
    if (floats != 0) ways[i] = busiest_read(traces.front(), begin, floats).counts.ways();
    begin += floats;
    ++i;
  }
  return ways;
}

TEST(LadderBankConflicts, areThoseOfTheTilesStrides) {
  constexpr std::size_t tile = 32 * 64, padded = 32 * 65, slice = 32 * 32, padded_slice = 32 * 33;
  using Ways = std::array<double, 4>;  // Q, K, V, S
  EXPECT_EQ(conflicts("k2_coalesced", {tile, tile, tile, 0}), (Ways{1, 32, 1, 0}));
  EXPECT_EQ(conflicts("k3_sequence_parallel", {tile, tile, tile, slice}), (Ways{1, 32, 1, 1}));
  EXPECT_EQ(conflicts("k4_register_tile", {tile, tile, tile, slice}), (Ways{4, 8, 2, 4}));
  EXPECT_EQ(conflicts("k5_padded_tiles", {tile, padded, tile, padded_slice}), (Ways{4, 1, 2, 1}))
      << "S3 pads K and S, and Q keeps its conflict";
  EXPECT_EQ(conflicts("k6_sliced_dims", {tile, padded_slice, slice, padded_slice}),
            (Ways{4, 1, 1, 1}));
  EXPECT_EQ(conflicts("k7_shuffled_rows", {tile, padded_slice, slice, padded_slice}),
            (Ways{4, 1, 1, 1}));
  EXPECT_EQ(conflicts("k8_padded_queries", {padded, padded_slice, slice, padded_slice}),
            (Ways{1, 1, 1, 1}));
}

TEST(LadderBankConflicts, k3BroadcastsQ) {
  const auto traces = trace_kernel(kernel("k3_sequence_parallel"),
                                   problem_from_string("b1 h1 n64 d64"), plan_of("k3"));
  const AccessCounts q = busiest_read(traces.front(), 0, 32 * 64).counts;
  EXPECT_EQ(q.broadcasts, q.requests);
  EXPECT_EQ(q.distinct_bytes, 4 * q.requests);
}

KernelTrace ledger_counters(std::string_view name) {
  const ProblemCounters counters = count_kernel(
      kernel(name), problem_from_string(ledger_shape + "causal_top_left"), plan_of(name));
  EXPECT_TRUE(counters.is_exact) << name << ": " << counters.basis;
  return counters.kernels.front();
}

/// Requests to shared memory if four that follow each other in memory were one, as in S3's SASS:
/// its strides are constants, so nvcc knows where 128-bit loads are aligned. Ours are not. Loads
/// that the head dim or the keys of a row are contiguous for go together; V's columns in K3 do not.
double loads_of_128_bits(const KernelTrace& trace, std::size_t v_begin, std::size_t v_end) {
  double loads = 0;
  for (const AccessSite& site : trace.sites) {
    if (site.space != MemorySpace::shared || site.kind != AccessKind::read) continue;
    const bool is_column = site.range.begin >= v_begin && site.range.end <= v_end;
    loads += static_cast<double>(site.counts.requests) / (is_column ? 1 : 4);
  }
  return loads;
}

TEST(LadderLoads, areS3sLoadInstructionsOfTheCausalProblem) {
  // Q3.13: 2.9e9 in K3 by the profiler, 3.1e9 to 3.3e9 by the model; 4.81e8 and 4.6e8 in K4.
  const double k3 = loads_of_128_bits(ledger_counters("k3_sequence_parallel"), 16384, 24576);
  const double k4 = loads_of_128_bits(ledger_counters("k4_register_tile"), 0, 0);
  EXPECT_GE(k3, 3.1e9);
  EXPECT_LE(k3, 3.3e9);
  EXPECT_EQ(std::round(k4 / 1e7), 46);
}

TEST(LadderLoads, aRegisterTileOf4By4MakesFourTimesTheFmasOfAPairOfLoads) {
  // Q3.14, in Q K^T: K3 loads Q and K for each FMA, K4 8 values for 16.
  for (const auto& [name, tile_pairs_only, fmas_per_load] :
       std::vector<std::tuple<std::string, bool, double>>{{"k3_sequence_parallel", false, 0.5},
                                                          {"k4_register_tile", true, 2.0}}) {
    const KernelTrace trace = ledger_counters(name);
    const double loads = static_cast<double>(busiest_read(trace, 0, 2048).counts.lane_accesses +
                                             busiest_read(trace, 2048, 2048).counts.lane_accesses);
    const double pairs = tile_pairs_only ? 792576.0 * 1024 : 96.0 * 4096 * 4097 / 2;
    EXPECT_EQ(pairs * 64 / loads, fmas_per_load) << name;
  }
}

TEST(LadderGlobalMemory, k1IsUncoalescedAndTheOthersAreNot) {
  for (const auto& [name, sectors] :
       std::vector<std::pair<std::string, double>>{{"k1_naive", 32},
                                                   {"k2_coalesced", 4},
                                                   {"k3_sequence_parallel", 4},
                                                   {"k4_register_tile", 4},
                                                   {"k5_padded_tiles", 16}}) {
    const auto traces =
        trace_kernel(kernel(name), problem_from_string("b1 h1 n64 d64"), plan_of(name));
    int seen = 0;
    for (const AccessSite& site : traces.front().sites) {
      if (site.memory != "Q" && site.memory != "K" && site.memory != "V") continue;
      ++seen;
      EXPECT_EQ(site.counts.sectors_per_request(), sectors) << name << " " << site.memory;
      const int lane_bytes = name == "k5_padded_tiles" ? 16 : 4;
      EXPECT_EQ(site.access_bytes, lane_bytes) << name;
      EXPECT_EQ(site.counts.coalescing_efficiency(), lane_bytes / sectors);
    }
    EXPECT_EQ(seen, 3) << name;
  }
}

}  // namespace
}  // namespace attest
