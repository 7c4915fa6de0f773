#include "verify/cases/heavy_tail.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>

#include "core/attention/storage.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/shrink_failure.hpp"
#include "verify/cases/coverage.hpp"
#include "verify/cases/shrinking.hpp"

namespace attest {
namespace {

const KernelInfo& tiled_kernel() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

const KernelInfo& kernel_of_every_shape() {
  return *find_kernel("m6_every_shape", Executor::cpu);
}

std::vector<Case> cases_of_tail_test(const KernelInfo& kernel, std::uint64_t count,
                                     const GeneratorOptions& options = {}) {
  std::vector<Case> cases;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (const auto c = draw_case(kernel, options, 5, i)) cases.push_back(*c);
  }
  EXPECT_EQ(cases.size(), count);
  return cases;
}

std::int64_t group_of(const Problem& p) {
  return p.query_heads / p.kv_heads;
}

/// Dimensions of the problem that usual draws do not reach.
int large_dimensions(const Problem& p) {
  const bool has_heads = p.query_heads > usual_sizes.query_heads || group_of(p) > 16;
  const bool has_length = p.query_len > 4 * usual_sizes.len || p.key_len > 4 * usual_sizes.len;
  return (has_heads ? 1 : 0) + (has_length ? 1 : 0) + (p.batch > usual_sizes.batch ? 1 : 0) +
         (p.head_dim > usual_sizes.head_dim ? 1 : 0);
}

/// The kernel under the same name, without what `refuses` holds for.
template <typename Refuses>
KernelInfo that_refuses(const KernelInfo& kernel, const Refuses& refuses) {
  KernelInfo narrow = kernel;
  narrow.unsupported = [refuses, inner = kernel.unsupported](
                           const Problem& p, const Plan& plan) -> std::optional<std::string> {
    if (refuses(p)) return "too large";
    return inner ? inner(p, plan) : std::nullopt;
  };
  return narrow;
}

TEST(HeavyTail, OneCaseInSixIsLargeInADimensionOrTwo) {
  for (const KernelInfo* kernel : {&tiled_kernel(), &kernel_of_every_shape()}) {
    std::size_t large = 0, pairs = 0;
    const std::vector<Case> cases = cases_of_tail_test(*kernel, 1500);
    for (const Case& c : cases) {
      const int dimensions = large_dimensions(c.problem);
      EXPECT_LE(dimensions, 3) << to_string(c);
      large += dimensions > 0 ? 1 : 0;
      pairs += dimensions > 1 ? 1 : 0;
    }
    EXPECT_GT(20 * large, cases.size()) << kernel->name;
    EXPECT_LT(4 * large, cases.size()) << kernel->name;
    EXPECT_GT(32 * pairs, large) << kernel->name;
  }
}

// Beside a large dimension the others are as large as the work leaves room for.
TEST(HeavyTail, BesideALargeDimensionOthersAreOfUsualSize) {
  std::size_t wide = 0, several_tiles = 0, several_entries = 0;
  for (const Case& c : cases_of_tail_test(kernel_of_every_shape(), 1500)) {
    if (c.problem.head_dim <= 128) continue;
    ++wide;
    several_tiles += c.problem.key_len > usual_tile ? 1 : 0;
    several_entries += c.problem.batch > 2 ? 1 : 0;
  }
  EXPECT_GT(wide, 100U);
  EXPECT_GT(5 * several_tiles, wide);
  EXPECT_GT(8 * several_entries, wide);
}

TEST(HeavyTail, NoCaseCostsMoreThanTheWorkAllowsItsKind) {
  for (const KernelInfo* kernel : {&tiled_kernel(), &kernel_of_every_shape()}) {
    for (const Case& c : cases_of_tail_test(*kernel, 1500)) {
      if (large_dimensions(c.problem) == 0) continue;
      const double times = static_cast<double>(work_of(*kernel, c.problem, c.plan)) /
                           static_cast<double>(most_work(*kernel, c.plan));
      EXPECT_LE(times, kernel->executor == Executor::simt ? 1 : 8) << to_string(c);
    }
  }
}

TEST(HeavyTail, ABlockWithoutKeysIsNotForNothingOnTheExecutor) {
  const KernelInfo& kernel = tiled_kernel();
  Problem none{.query_heads = 1 << 16, .kv_heads = 1 << 16, .key_len = 0, .head_dim = 16};
  const Plan plan = kernel.plans(none).front();
  EXPECT_GT(work_of(kernel, none, plan), 2 * most_work(kernel, plan));
}

TEST(HeavyTail, EveryDimensionReachesItsLimit) {
  constexpr std::int64_t end = 1 << 16;
  SizeLimits most{};
  std::int64_t group = 0, queries = 0, odd_heads = 0;
  for (const Case& c : cases_of_tail_test(kernel_of_every_shape(), 2000)) {
    const Problem& p = c.problem;
    most.batch = std::max(most.batch, p.batch);
    most.query_heads = std::max(most.query_heads, p.query_heads);
    most.len = std::max(most.len, p.key_len);
    most.head_dim = std::max(most.head_dim, p.head_dim);
    queries = std::max(queries, p.query_len);
    group = std::max(group, group_of(p));
    odd_heads += p.query_heads > 32 && p.query_heads % 2 == 1 ? 1 : 0;
  }
  EXPECT_GT(most.batch, end);
  EXPECT_GT(most.query_heads, end);
  EXPECT_GT(most.len, end);
  EXPECT_GT(queries, end);
  EXPECT_GE(group, 71);
  EXPECT_EQ(most.head_dim, tail_sizes.head_dim);
  EXPECT_GT(odd_heads, 0);
}

TEST(HeavyTail, TheExecutorGetsNoCaseThatTakesItSeconds) {
  for (const Case& c : cases_of_tail_test(tiled_kernel(), 500)) {
    EXPECT_LT(c.problem.batch * c.problem.query_heads, 1 << 15) << to_string(c);
  }
}

TEST(HeavyTail, EveryHeadDimThatAKernelListsIsDrawn) {
  KernelInfo kernel = kernel_of_every_shape();
  kernel.head_dims = {64, 96, 160, 192, 256, 576};
  std::set<std::int64_t> drawn;
  for (const Case& c : cases_of_tail_test(kernel, 1500)) drawn.insert(c.problem.head_dim);
  EXPECT_EQ(drawn, std::set(kernel.head_dims.begin(), kernel.head_dims.end()));
}

TEST(HeavyTail, HeadDimsToWhereAKernelRefusesThemAreDrawn) {
  const KernelInfo kernel =
      that_refuses(kernel_of_every_shape(), [](const Problem& p) { return p.head_dim > 256; });
  std::map<std::int64_t, int> wide;
  for (const Case& c : cases_of_tail_test(kernel, 1500)) {
    if (c.problem.head_dim > 128) ++wide[c.problem.head_dim];
  }
  EXPECT_TRUE(wide.contains(256));
  EXPECT_GT(wide.size(), 5U);
}

TEST(HeavyTail, AKernelThatRefusesEverythingLargeGetsAsManyCases) {
  const KernelInfo kernel = that_refuses(kernel_of_every_shape(),
                                         [](const Problem& p) { return large_dimensions(p) > 0; });
  int many_queries = 0;
  for (const Case& c : cases_of_tail_test(kernel, 500)) many_queries += c.problem.query_len > 24;
  EXPECT_GT(many_queries, 100) << "the cases in place of the large ones are of usual sizes";
}

TEST(HeavyTail, LimitsOfTheUserHoldForEveryCase) {
  const GeneratorOptions options{
      .max_len = 100, .max_head_dim = 48, .max_batch = 2, .max_query_heads = 3};
  for (const Case& c : cases_of_tail_test(kernel_of_every_shape(), 800, options)) {
    const Problem& p = c.problem;
    EXPECT_LE(p.query_len, 100) << to_string(c);
    EXPECT_LE(p.key_len, 400) << to_string(c);
    EXPECT_LE(p.batch, 2) << to_string(c);
    EXPECT_LE(p.query_heads, 3) << to_string(c);
    if (input_family(c.inputs.family).head_dims.empty()) {
      EXPECT_LE(p.head_dim, 48) << to_string(c);
    }
  }
}

TEST(HeavyTail, ALimitAboveTheUsualSizesIsReachedAndKept) {
  const GeneratorOptions options{
      .max_len = 700, .max_head_dim = 256, .max_batch = 128, .max_query_heads = 64};
  SizeLimits most{};
  int wide = 0, long_cases = 0;
  const std::vector<Case> cases = cases_of_tail_test(kernel_of_every_shape(), 1500, options);
  for (const Case& c : cases) {
    const Problem& p = c.problem;
    most.batch = std::max(most.batch, p.batch);
    most.query_heads = std::max(most.query_heads, p.query_heads);
    most.len = std::max(most.len, p.query_len);
    most.head_dim = std::max(most.head_dim, p.head_dim);
    wide += p.head_dim > 128 ? 1 : 0;
    long_cases += p.query_len > usual_sizes.len ? 1 : 0;
  }
  EXPECT_EQ(most.batch, 128);
  EXPECT_EQ(most.query_heads, 64);
  EXPECT_EQ(most.head_dim, 256);
  EXPECT_LE(most.len, 700);
  EXPECT_GT(20 * wide, 1500) << "usual cases have wide heads too";
  EXPECT_GT(5 * long_cases, 1500) << "usual cases are long too";
}

TEST(HeavyTail, OneCaseInTwentyIsCausalWithAsManyQueriesAsKeysInWholeTiles) {
  std::size_t squares = 0;
  const std::vector<Case> cases = cases_of_tail_test(tiled_kernel(), 1500);
  for (const Case& c : cases) {
    const auto features = features_of(tiled_kernel(), c);
    squares += std::ranges::count(features, "causal, as many queries as keys, several whole tiles");
  }
  EXPECT_GT(25 * squares, cases.size());
}

TEST(HeavyTail, APlanWithoutFieldsGetsManyKeysAroundMultiplesOf64) {
  KernelInfo kernel = kernel_of_every_shape();
  kernel.plans = [](const Problem&) { return std::vector<Plan>{{}}; };
  int many = 0, beside = 0, decode = 0;
  for (const Case& c : cases_of_tail_test(kernel, 300)) {
    const Problem& p = c.problem;
    many += p.key_len > 256 ? 1 : 0;
    beside += p.key_len > 128 && (p.key_len % usual_tile == 1 || p.key_len % usual_tile == 63);
    decode += p.query_len == 1 && p.key_len > 256 && p.key_len % 2 == 1;
  }
  EXPECT_GT(many, 20);
  EXPECT_GT(beside, 10);
  EXPECT_GT(decode, 1);
}

TEST(HeavyTail, OnAGpuAFarTensorTakesEightGibibytesAtMost) {
  KernelInfo kernel = kernel_of_every_shape();
  kernel.executor = Executor::gpu;
  const GeneratorOptions options{.far_elements_on_gpu = true};
  int far = 0, farther = 0;
  for (const Case& c : cases_of_tail_test(kernel, 1500, options)) {
    const Shape shape = stored_shape(c.problem, forward::k, c.layouts.paging);
    TensorLayout near = c.layouts[forward::k];
    near.outer_gap = 0;
    const std::int64_t between = span_of(shape, c.layouts[forward::k]) - span_of(shape, near);
    const std::size_t size = format_of(c.problem.element_type).size_bytes;
    EXPECT_LT(static_cast<std::size_t>(between) * size >> 20U, (std::size_t{8} << 10U) + 1);
    far += between >= far_elements / 2 ? 1 : 0;
    farther += between >= far_elements ? 1 : 0;
  }
  EXPECT_GT(far, 3);
  EXPECT_GT(farther, 0) << "beyond 2^32 elements of two bytes";
}

/// Shrinks the first case of the kernel that fails, with the budget of a campaign.
Problem smallest_failing(const std::function<bool(const Problem&)>& fails) {
  const KernelInfo& kernel = kernel_of_every_shape();
  for (std::uint64_t i = 0; i < 4000; ++i) {
    const auto c = draw_case(kernel, {}, 5, i);
    if (!c || !fails(c->problem)) continue;
    return shrink(
               kernel, *c, [&](const Case& other) { return fails(other.problem); },
               ShrinkBudget{}.calls)
        .problem;
  }
  ADD_FAILURE() << "no case fails";
  return {};
}

TEST(HeavyTail, LargeSizesShrinkToTheSmallestThatFailsWithinTheBudgetOfACampaign) {
  EXPECT_EQ(smallest_failing([](const Problem& p) { return p.key_len >= 1413; }).key_len, 1413);
  EXPECT_EQ(smallest_failing([](const Problem& p) { return p.query_len >= 777; }).query_len, 777);
  EXPECT_EQ(smallest_failing([](const Problem& p) { return p.batch >= 119; }).batch, 119);
  EXPECT_EQ(smallest_failing([](const Problem& p) { return p.head_dim >= 133; }).head_dim, 133);
  EXPECT_EQ(smallest_failing([](const Problem& p) { return p.kv_heads >= 23; }).query_heads, 23);
  const Problem packed = smallest_failing([](const Problem& p) { return group_of(p) >= 37; });
  EXPECT_EQ(packed.query_heads, 37);
  EXPECT_EQ(packed.kv_heads, 1);
}

// sglang#22434 was shrunk by ones, from 4,148 queries, for six minutes.
TEST(HeavyTail, ASizeReachesTheSmallestThatFailsInAsManyStepsAsItHasBits) {
  const KernelInfo& kernel = kernel_of_every_shape();
  const Case large{.kernel = kernel.name,
                   .problem = {.query_len = 5148, .key_len = 3, .head_dim = 8},
                   .plan = kernel.plans({.query_len = 5148, .key_len = 3, .head_dim = 8}).front(),
                   .inputs = {.family = "zero_q"}};
  int calls = 0, failed = 0;
  const Case smallest = shrink(
      kernel, large,
      [&](const Case& c) {
        ++calls;
        const bool fails = c.problem.query_len > 4096;
        failed += fails ? 1 : 0;
        return fails;
      },
      10000);
  EXPECT_EQ(smallest.problem.query_len, 4097);
  EXPECT_LT(failed, 40);
  EXPECT_LT(calls, 200);
}

}  // namespace
}  // namespace attest
