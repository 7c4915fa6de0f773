#include "verify/cases/coverage.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "core/attention/problem_field_test.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {
namespace {

/// Features of the first `cases` cases that a run with default options draws for the kernel.
Coverage coverage_of(const KernelInfo& kernel, std::int64_t cases) {
  const CampaignOptions defaults;
  Coverage coverage;
  for (std::int64_t i = 0; i < cases; ++i) {
    const auto c =
        draw_case(kernel, defaults.generator, defaults.seed, static_cast<std::uint64_t>(i));
    if (!c) continue;
    for (const std::string& name : features_of(kernel, *c)) ++coverage[name];
  }
  return coverage;
}

/// Features of that many cases of every kernel, together.
Coverage coverage_of_all(const CaseCounts& cases) {
  const CampaignOptions options{.cases_per_kernel = cases.per_kernel,
                                .cases_per_simt_kernel = cases.per_simt_kernel};
  Coverage coverage;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role != KernelRole::kernel) continue;
    for (const auto& [name, count] : coverage_of(kernel, cases_of(kernel, options))) {
      coverage[name] += count;
    }
  }
  return coverage;
}

TEST(Coverage, TheDefaultRunReachesNineteenFeaturesOfTwenty) {
  const Coverage coverage = coverage_of_all(default_cases);
  for (const std::string& name : unreached(coverage)) ADD_FAILURE() << name << " is never reached";
  const std::vector<Feature>& features = all_features();
  const auto reached = std::ranges::count_if(
      features, [&](const Feature& feature) { return coverage.contains(feature.name); });
  EXPECT_GE(20 * reached, 19 * std::ssize(features));
}

TEST(Coverage, TheThoroughRunReachesEveryFeature) {
  const Coverage coverage = coverage_of_all(thorough_cases);
  for (const std::string& name : unreached(coverage)) ADD_FAILURE() << name << " is never reached";
  // Those too that only some kernels can reach.
  for (const Feature& feature : all_features()) {
    if (!feature.needs.starts_with("a kernel")) continue;
    EXPECT_TRUE(coverage.contains(feature.name)) << feature.name << " is never reached";
  }
}

// Of each kind of kernel one: what it can reach at all, 500 cases of its own reach.
TEST(Coverage, TheCasesOfOneKernelReachEveryFeatureThatItCanHave) {
  const std::set<std::string> of_splits{
      "key splits, the last with a tail", "more key splits than tiles",
      "key splits that a row sees nothing of", "key splits of over 2,048 keys"};
  const std::set<std::string> of_16_bits{"base pointer aligned to 2 bytes"};
  const KernelInfo* tiled = find_kernel("k3_sequence_parallel", Executor::simt);
  ASSERT_NE(tiled, nullptr);
  for (const std::string& name : unreached(coverage_of(*tiled, 500))) {
    EXPECT_TRUE(of_splits.contains(name) || of_16_bits.contains(name)) << name;
  }
}

/// True if the case has other features where the field has its default.
bool changes_features(const ProblemField& field, const KernelInfo& kernel, const Case& c) {
  Case plain = c;
  set_default(field, plain.problem);
  return plain.problem != c.problem && is_valid(plain.problem) &&
         features_of(kernel, plain) != features_of(kernel, c);
}

TEST(Coverage, EveryFieldOfAProblemMakesSomeFeature) {
  const CampaignOptions defaults;
  std::vector<const ProblemField*> without;
  for (const ProblemField& field : problem_fields()) without.push_back(&field);
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role != KernelRole::kernel) continue;
    for (std::int64_t i = 0; i < default_cases.per_kernel && !without.empty(); ++i) {
      const auto c =
          draw_case(kernel, defaults.generator, defaults.seed, static_cast<std::uint64_t>(i));
      if (!c) continue;
      std::erase_if(
          without, [&](const ProblemField* field) { return changes_features(*field, kernel, *c); });
    }
  }
  for (const ProblemField* field : without) ADD_FAILURE() << field->name << " makes no feature";
}

TEST(Coverage, FeaturesHaveNamesOfTheirOwn) {
  std::set<std::string> names;
  for (const Feature& feature : all_features()) {
    EXPECT_TRUE(names.insert(feature.name).second) << feature.name;
  }
}

TEST(Coverage, AFeatureThatNoCaseHasIsNamedInTheText) {
  Coverage coverage;
  for (const Feature& feature : all_features()) coverage[feature.name] = 7;
  EXPECT_TRUE(unreached(coverage).empty());
  coverage.erase("one query");
  EXPECT_EQ(unreached(coverage), std::vector<std::string>{"one query"});
  EXPECT_NE(unreached_text(coverage).find("not reached: one query\n"), std::string::npos);
  EXPECT_EQ(to_string(coverage).find("not reached"), std::string::npos) << "a line, of what was";
}

/// The kernel with every stride cut to an integer of 32 bits, as one in its code would do.
template <typename Integer>
KernelInfo with_32_bit_strides(const KernelInfo& kernel) {
  KernelInfo narrow = kernel;
  narrow.launch = [&kernel](const ForwardArguments& a, Device& device) {
    ForwardArguments cut = a;
    for (Strides ForwardArguments::*tensor :
         {&ForwardArguments::q_strides, &ForwardArguments::k_strides, &ForwardArguments::v_strides,
          &ForwardArguments::o_strides}) {
      Strides& strides = cut.*tensor;
      for (std::int64_t* stride : {&strides.batch, &strides.head, &strides.row}) {
        *stride = static_cast<Integer>(*stride);
      }
    }
    kernel.launch(cut, device);
  };
  return narrow;
}

Verdict verdict_of(const KernelInfo& kernel, const Case& c) {
  const auto device = make_device(Executor::simt);
  Run run(kernel, c, *device);
  return verify_case(run, {}).verdict;
}

/// Every tensor of a case with a stride of `distance` shows the cut to `Integer`, and no shorter
/// one does.
template <typename Integer>
void expect_shown_from(std::int64_t distance, std::int64_t shorter) {
  const KernelInfo& k3 = *find_kernel("k3_sequence_parallel", Executor::simt);
  const KernelInfo narrow = with_32_bit_strides<Integer>(k3);
  Case c{.kernel = k3.name,
         .problem = {.batch = 2, .query_len = 5, .key_len = 9, .head_dim = 16},
         .plan = {.query_tile = 8, .key_tile = 8}};
  for_each_tensor(forward_operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    c.layouts = {};
    c.layouts[index].outer_gap = shorter;
    EXPECT_EQ(verdict_of(narrow, c), Verdict::passed);
    c.layouts[index].outer_gap = distance;
    EXPECT_EQ(verdict_of(k3, c), Verdict::passed);
    EXPECT_EQ(verdict_of(narrow, c), Verdict::failed);
  });
}

TEST(Coverage, OnlyElementsBeyond2To31ShowAKernelThatKeepsStridesIn32Bits) {
  expect_shown_from<std::int32_t>(far_elements, 0);
}

TEST(Coverage, OnlyElementsBeyond2To32ShowAKernelThatKeepsStridesInUnsigned32Bits) {
  expect_shown_from<std::uint32_t>(2 * far_elements, far_elements);
}

}  // namespace
}  // namespace attest
