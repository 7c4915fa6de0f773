#include "verify/judge/error_study.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

const KernelInfo& kernel_named(std::string_view name) {
  const auto& kernels = all_kernels();
  return *std::ranges::find_if(
      kernels, [&](const KernelInfo& k) { return k.name == name && k.executor == Executor::cpu; });
}

/// Keys past one tile of 16, a prime number of rows.
Case small_case(const KernelInfo& kernel, std::uint64_t seed) {
  Case c{.kernel = kernel.name,
         .problem = {.query_heads = 2,
                     .kv_heads = 2,
                     .query_len = 29,
                     .key_len = 33,
                     .head_dim = 16,
                     .element_type = ElementType::fp16}};
  c.plan = kernel.plans(c.problem).front();
  c.inputs.seed = seed;
  return c;
}

ErrorStudy study(std::string_view name, std::uint64_t seed, std::int64_t sets) {
  const KernelInfo& kernel = kernel_named(name);
  const auto device = make_device(kernel.executor);
  return study_errors(kernel, small_case(kernel, seed), sets, *device);
}

TEST(ErrorStudy, several_data_sets_count_as_one_and_each_is_certified) {
  const ErrorStudy first = study("f2_half", 7, 1), second = study("f2_half", 8, 1);
  const ErrorStudy both = study("f2_half", 7, 2);
  EXPECT_EQ(both.certified_rows, 2);
  for (const bool is_lse : {false, true}) {
    const auto profile = [=](const ErrorStudy& of) -> const ErrorProfile& {
      return of.outputs.at(is_lse ? 1 : 0).errors;
    };
    const ErrorProfile &a = profile(first), &b = profile(second), &all = profile(both);
    EXPECT_EQ(all.value("elements"), a.value("elements") + b.value("elements"));
    EXPECT_EQ(all.value("max_abs_error"),
              std::max(a.value("max_abs_error"), b.value("max_abs_error")));
    EXPECT_EQ(all.value("error_over_bound_max"),
              std::max(a.value("error_over_bound_max"), b.value("error_over_bound_max")));
    // Sums of exact counts in double, over equal numbers of elements.
    EXPECT_EQ(all.value("ulp_0") * all.value("elements"),
              a.value("ulp_0") * a.value("elements") + b.value("ulp_0") * b.value("elements"));
    const bool is_in_second = b.value("max_abs_error") > a.value("max_abs_error");
    EXPECT_EQ(all.largest_at[0], is_in_second ? 1 : 0);
  }
}

TEST(ErrorStudy, an_output_cut_off_instead_of_rounded_shows_as_a_bias_toward_zero) {
  double farthest_of_correct = 0, nearest_of_truncated = -HUGE_VAL;
  for (std::uint64_t seed = 0; seed < 5; ++seed) {
    farthest_of_correct =
        std::max(farthest_of_correct,
                 std::abs(study("f2_half", seed, 1).outputs.front().errors.value("outward_bias")));
    nearest_of_truncated = std::max(
        nearest_of_truncated,
        study("mutant/s_truncated_output", seed, 1).outputs.front().errors.value("outward_bias"));
  }
  EXPECT_LT(nearest_of_truncated, -farthest_of_correct);
}

TEST(ErrorStudy, the_order_of_keys_is_the_one_asked_for_and_changes_errors_not_the_answer) {
  const KernelInfo& kernel = kernel_named("f2_half");
  const Case c = small_case(kernel, 3);
  const Inputs drawn = make_inputs(c.problem, c.inputs);
  const Inputs rising = with_key_order(c.problem, drawn, KeyOrder::rising);
  const Inputs falling = with_key_order(c.problem, drawn, KeyOrder::falling);
  const Inputs back = with_key_order(c.problem, falling, KeyOrder::reversed);
  EXPECT_TRUE(std::ranges::equal(rising[forward::k].values(), back[forward::k].values()));
  EXPECT_TRUE(std::ranges::equal(rising[forward::v].values(), back[forward::v].values()));
  for (std::int64_t h = 0; h < c.problem.kv_heads; ++h) {
    double last = -HUGE_VAL;
    for (std::int64_t j = 0; j < c.problem.key_len; ++j) {
      double score = 0;
      for (std::int64_t n = 0; n < c.problem.query_len; ++n)
        for (std::int64_t d = 0; d < c.problem.head_dim; ++d)
          score += static_cast<double>(drawn[forward::q].at(0, h, n, d)) *
                   rising[forward::k].at(0, h, j, d);
      EXPECT_GE(score, last);
      last = score;
      std::int64_t from = 0;
      while (
          !std::ranges::equal(drawn[forward::k].row(0, h, from), rising[forward::k].row(0, h, j)))
        ++from;
      EXPECT_TRUE(
          std::ranges::equal(drawn[forward::v].row(0, h, from), rising[forward::v].row(0, h, j)));
    }
  }
  const auto device = make_device(kernel.executor);
  const auto of = [&](KeyOrder order) {
    return study_errors(kernel, c, 1, *device, {.key_order = order});
  };
  const ErrorStudy first = of(KeyOrder::drawn), other = of(KeyOrder::rising);
  EXPECT_NE(first.outputs.front().errors.value("rmse"), other.outputs.front().errors.value("rmse"));
  EXPECT_LE(other.outputs.front().errors.value("error_over_bound_max"), 1);
  Case causal = c;
  causal.problem.mask = Mask::causal_top_left;
  EXPECT_THROW((void)study_errors(kernel, causal, 1, *device, {.key_order = KeyOrder::rising}),
               InvalidInput);
}

}  // namespace
}  // namespace attest
