#include "verify/error_study.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "core/input_family.hpp"
#include "core/registry.hpp"

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
  for (const auto profile : {&ErrorStudy::o, &ErrorStudy::lse}) {
    const ErrorProfile &a = first.*profile, &b = second.*profile, &all = both.*profile;
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
        std::max(farthest_of_correct, std::abs(study("f2_half", seed, 1).o.value("outward_bias")));
    nearest_of_truncated = std::max(
        nearest_of_truncated, study("mutant/s_truncated_output", seed, 1).o.value("outward_bias"));
  }
  EXPECT_LT(nearest_of_truncated, -farthest_of_correct);
}

}  // namespace
}  // namespace attest
