#include <fmt/format.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

/// All counts, without where they were seen.
std::vector<std::int64_t> counts_of(const std::vector<KernelTrace>& traces) {
  std::vector<std::int64_t> counts;
  for (const KernelTrace& trace : traces) {
    counts.insert(counts.end(), {trace.launches, trace.blocks, trace.warps, trace.barriers,
                                 trace.warp_operations, trace.fmas});
    for (const AccessSite& site : trace.sites)
      for (const auto member : access_count_members()) counts.push_back(site.counts.*member);
  }
  return counts;
}

TEST(CountKernel, givesTheCountsOfTheWholeProblem) {
  // Whole tiles; a rest; a short side; all continued from shorter runs.
  for (const std::string_view shape :
       {"b1 h1 n160 d4", "b1 h1 n171 d4", "b1 h1 q168 k33 d4", "b1 h1 q33 k166 d4"}) {
    for (const std::string_view mask : {"none", "causal_top_left", "causal_bottom_right"}) {
      for (const auto& [name, plan] : std::vector<std::pair<std::string_view, std::string_view>>{
               {"k1_naive", "qt16 kt16"},
               {"k2_coalesced", "qt16 kt8"},
               {"k3_sequence_parallel", "qt16 kt32"},
               {"k4_register_tile", "qt16 kt32 tm4 tn4"}}) {
        const KernelInfo& kernel = *find_kernel(name, Executor::simt);
        const Problem problem = problem_from_string(fmt::format("{} {}", shape, mask));
        const ProblemCounters counters = count_kernel(kernel, problem, plan_from_string(plan));
        EXPECT_TRUE(counters.is_exact) << name << " " << to_string(problem) << counters.basis;
        EXPECT_EQ(counts_of(counters.kernels),
                  counts_of(trace_kernel(kernel, problem, plan_from_string(plan))))
            << name << " " << to_string(problem);
      }
    }
  }
}

/// A copy is a read and a write at one place in the program, in an order that the schedule draws.
TEST(CountKernel, givesTheCountsOfKernelsThatCopyAsynchronously) {
  for (const auto& [name, plan] : std::vector<std::pair<std::string_view, std::string_view>>{
           {"k9_async_copy", "qt32 kt32 dt32 tm4 tn4 st2"},
           {"k10_wide_tiles", "qt128 kt64 dt64 tm8 tn8 w4 st2"}}) {
    const KernelInfo& kernel = *find_kernel(name, Executor::simt);
    const Problem problem = problem_from_string("b1 h1 n768 d4 causal_top_left");
    const ProblemCounters counters = count_kernel(kernel, problem, plan_from_string(plan));
    EXPECT_TRUE(counters.is_exact) << name << " " << counters.basis;
    EXPECT_EQ(counts_of(counters.kernels),
              counts_of(trace_kernel(kernel, problem, plan_from_string(plan))))
        << name;
  }
}

TEST(CountKernel, countsEveryHeadAlike) {
  const KernelInfo& kernel = *find_kernel("k3_sequence_parallel", Executor::simt);
  const Problem problem = problem_from_string("b2 h4/2 n80 d8 causal_top_left");
  const Plan plan = plan_from_string("qt8 kt8");
  EXPECT_EQ(counts_of(count_kernel(kernel, problem, plan).kernels),
            counts_of(trace_kernel(kernel, problem, plan)));
}

TEST(CountKernel, countsHeadsThatAPlanPacksTogether) {
  const KernelInfo& kernel = *find_kernel("fa2_mma", Executor::simt);
  const Problem problem = problem_from_string("b2 h6/2 q8 k150 d16 fp16");
  for (const std::string_view pack : {"yes", "no"}) {
    const Plan plan = plan_from_string(fmt::format("qt64 kt64 ks3 w4 st2 pack_gqa={}", pack));
    // The kernel that merges the splits takes rows of several heads at once; 8 rows are sectors.
    const KernelTrace whole = trace_kernel(kernel, problem, plan).front();
    EXPECT_EQ(counts_of({count_kernel(kernel, problem, plan).kernels.front()}), counts_of({whole}))
        << pack;
  }
}

TEST(CountKernel, problemsShareTheirShortRunsAndCountTheSame) {
  const KernelInfo& kernel = *find_kernel("k3_sequence_parallel", Executor::simt);
  const Plan plan = plan_from_string("qt16 kt16");
  TraceMemo memo;
  for (const auto& [text, traces] :
       std::vector<std::pair<std::string_view, std::size_t>>{{"b1 h1 n512 d4", 4},
                                                             {"b3 h2 n512 d4", 4},
                                                             {"b1 h1 n2048 d4", 4},
                                                             {"b1 h1 n2049 d4", 8},  // another rest
                                                             {"b1 h1 n512 d8", 12}}) {
    const Problem problem = problem_from_string(text);
    EXPECT_EQ(counts_of(count_kernel(kernel, problem, plan, &memo).kernels),
              counts_of(count_kernel(kernel, problem, plan).kernels))
        << text;
    EXPECT_EQ(memo.size(), traces) << text;
  }
}

TEST(TraceMemo, GivesTheFirstAnswerAgainAnExceptionToo) {
  TraceMemo memo;
  int made = 0;
  const auto make = [&]() -> std::vector<KernelTrace> {
    ++made;
    throw InvalidInput("no");
  };
  EXPECT_THROW((void)memo.get("a", make), InvalidInput);
  EXPECT_THROW((void)memo.get("a", make), InvalidInput);
  EXPECT_EQ(made, 1);
}

TEST(CountKernel, aLongCausalProblemHasOneBlockMoreThanOneATileShorter) {
  const KernelInfo& kernel = *find_kernel("k3_sequence_parallel", Executor::simt);
  const Plan plan = plan_from_string("qt32 kt32");
  const auto problem = [](int n) {
    return problem_from_string(fmt::format("b1 h1 n{} d16 causal_top_left", n));
  };
  const std::vector<std::int64_t> with =
      counts_of(count_kernel(kernel, problem(2048), plan).kernels);
  const std::vector<std::int64_t> without =
      counts_of(count_kernel(kernel, problem(2016), plan).kernels);
  const std::vector<std::int64_t> last = counts_of(
      trace_kernel(kernel, problem(2048), plan, [](std::uint64_t block) { return block == 63; }));
  ASSERT_EQ(with.size(), last.size());
  for (std::size_t i = 1; i < with.size(); ++i)  // launches: one in each
    EXPECT_EQ(with[i] - without[i], last[i]) << i;
}

/// The kernel is one whose lanes meet in a request or not, by the values, at some lengths.
TEST(CountKernel, countsOfOneInstructionDoNotContradictEachOtherFarFromTheSamples) {
  const KernelInfo& kernel = *find_kernel("fa3_wgmma", Executor::simt);
  const Problem problem = problem_from_string("b1 h1 n16384 d64 causal_top_left bf16");
  const Plan plan = plan_from_string(
      "qt256 kt64 w20 st6 grid_order=longest_first scheduling=persistent ping_pong=no overlap=no");
  const ProblemCounters counters = count_kernel(kernel, problem, plan);
  ASSERT_FALSE(counters.is_exact) << "or this is about nothing";
  for (const KernelTrace& trace : counters.kernels) {
    for (const AccessSite& site : trace.sites) {
      EXPECT_GE(site.counts.lane_accesses, site.counts.requests) << site.line;
      EXPECT_GE(site.counts.requests, site.counts.partial_requests) << site.line;
      EXPECT_GE(site.counts.passes, site.counts.ideal_passes) << site.line;
      if (site.space == MemorySpace::shared) continue;
      EXPECT_LE(site.counts.distinct_bytes, 32 * site.counts.sectors)
          << site.line << ": no sector holds more than 32 bytes";
    }
  }
}

/// Copies between ranks are a copy engine's work: no launch, so nothing that a GPU's program lacks.
TEST(ObserveLaunches, namesNoCopiesBetweenRanks) {
  const KernelInfo& ring = *find_kernel("ring", Executor::simt);
  std::set<std::string> names;
  for (const LaunchConfiguration& launch :
       observe_launches(ring, problem_from_string("b1 h2 n300 d64 fp16"),
                        plan_from_string("r3,distribution=contiguous"), {})) {
    names.insert(launch.kernel.substr(0, launch.kernel.find('<')));
  }
  EXPECT_EQ(names, (std::set<std::string>{"fa3_wgmma", "ring_copy_rows", "ring_merge"}));
}

TEST(CountKernel, saysWhatItCannotCount) {
  const KernelInfo& kernel = *find_kernel("k3_sequence_parallel", Executor::simt);
  const Plan plan = plan_from_string("qt32 kt32");
  EXPECT_THROW((void)count_kernel(kernel, problem_from_string("b1 h1 q300 k200 d16"), plan),
               InvalidInput);
  EXPECT_THROW((void)count_kernel(kernel, problem_from_string("b1 h1 n64 d999"), plan),
               InvalidInput);
  EXPECT_THROW((void)observe_launches(kernel, problem_from_string("b1 h1 n64 d64"), Plan{}, {}),
               InvalidInput);
}

}  // namespace
}  // namespace attest
