// What a plugin declares, and what the laws make of it: kernels of plugin/testing/claims_plugin.cpp
// that are honest about what they do, and twins that do the same without a word.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "core/attention/storage.hpp"
#include "core/base/glob.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "plugin/loader.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/cases/generators.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

constexpr std::uint64_t cases = 300;

const KernelInfo& kernel_named(const std::string& name) {
  for (const char* const file :
       {"claims.so", "combine.so", "backward.so", "select.so", "epilogue.so", "takes.so"}) {
    (void)load_plugin(std::filesystem::path(ATTEST_TEST_PLUGINS) / file);
  }
  const KernelInfo* const kernel = find_kernel(name, Executor::cpu);
  if (kernel == nullptr) throw std::logic_error("no kernel " + name);
  return *kernel;
}

GeneratorOptions small_sizes() {
  GeneratorOptions options;
  options.max_len = 40;
  options.max_head_dim = 32;
  options.max_query_heads = 7;
  options.max_batch = 16;
  return options;
}

/// Outcome of a kernel's first cases.
struct Outcome {
  std::uint64_t judged = 0;  ///< until the first failure
  std::set<std::string> laws{};
  std::optional<Failure> failure{};
};
Outcome outcome_of(const KernelInfo& kernel, const LawSelection& laws) {
  HostMemoryDevice device;
  Outcome outcome;
  for (std::uint64_t i = 0; i < cases && !outcome.failure; ++i) {
    const std::optional<Case> c = draw_case(kernel, small_sizes(), 3, i);
    if (!c) continue;
    attest::Run run(kernel, *c, device);
    CaseVerdict verdict = verify_case(run, laws);
    outcome.judged += verdict.verdict == Verdict::unsupported ? 0 : 1;
    outcome.laws.insert(verdict.checked_laws.begin(), verdict.checked_laws.end());
    outcome.failure = std::move(verdict.failure);
  }
  return outcome;
}

/// A claim, and the law that is relaxed by it: it fails the twin and is asked of the honest kernel.
struct Claim {
  std::string name, law;
  std::string not_asked{};  ///< glob of laws that the claim makes pointless

  friend void PrintTo(const Claim& claim, std::ostream* out) { *out << claim.name; }
};

class PluginClaims : public testing::TestWithParam<Claim> {};

TEST_P(PluginClaims, AKernelThatDeclaresWhatItDoesPasses) {
  const KernelInfo& kernel = kernel_named("honest/" + GetParam().name);
  const Outcome outcome = outcome_of(kernel, {});
  EXPECT_FALSE(outcome.failure) << describe(*outcome.failure, kernel);
  EXPECT_EQ(outcome.judged, cases);
  EXPECT_TRUE(outcome.laws.contains(GetParam().law));
  for (const std::string& law : outcome.laws) {
    EXPECT_FALSE(matches_glob(law, GetParam().not_asked)) << law;
  }
}

TEST_P(PluginClaims, ItsTwinThatDoesNotFailsByTheLaw) {
  const KernelInfo& kernel = kernel_named("twin/" + GetParam().name);
  const Outcome outcome = outcome_of(kernel, {.glob = GetParam().law, .every_law = true});
  EXPECT_TRUE(outcome.failure) << "after " << outcome.judged << " cases";
}

INSTANTIATE_TEST_SUITE_P(
    Each, PluginClaims,
    testing::Values(Claim{"order", "rerun_bitwise"}, Claim{"reciprocal", "equal_scores_exact_mean"},
                    Claim{"flush_to_zero", "lse_within_bound"},
                    Claim{"lagging_reference", "equal_scores_exact_mean"},
                    Claim{"shared_reference", "other_queries_irrelevant"},
                    Claim{"vector_path", "layout_neutral"},
                    Claim{"splits_by_batch", "batch_mates_irrelevant"},
                    Claim{"bf16_partials", "within_bound"}, Claim{"tf32", "within_bound"},
                    Claim{"no_lse", "outputs_written", "lse_*"},
                    Claim{"empty_lse_of_nan", "nan_stays_in_its_rows"},
                    Claim{"hidden_nan", "hidden_keys_irrelevant", "infinite_keys*"},
                    Claim{"lone_strides", "within_bound"}, Claim{"multiples_of_64", "within_bound"},
                    Claim{"window", "within_bound"}, Claim{"softcap", "within_bound"},
                    Claim{"lengths", "within_bound"}, Claim{"padding", "within_bound"},
                    Claim{"value_dim", "within_bound"}, Claim{"no_queries", "within_bound"},
                    Claim{"sinks", "within_bound"}, Claim{"slopes", "within_bound"},
                    Claim{"bias", "within_bound"}, Claim{"prefix", "within_bound"},
                    Claim{"documents", "within_bound"}, Claim{"lists", "within_bound"},
                    Claim{"dropout", "within_bound"}, Claim{"gate", "within_bound"},
                    Claim{"residual", "within_bound"},
                    Claim{"epilogue_order", "gate_of_zero_leaves_the_residual"},
                    Claim{"gate_head", "within_bound"}, Claim{"added_residual", "within_bound"},
                    Claim{"empty_rows_residual", "within_bound"}, Claim{"unfused", "within_bound"},
                    Claim{"merge", "within_bound"}, Claim{"merge_without_lse", "outputs_written"},
                    Claim{"gradient", "dk_within_bound"}, Claim{"select", "scores_belong_to_keys"},
                    Claim{"select_without_scores", "outputs_written", "scores_*"}),
    [](const testing::TestParamInfo<Claim>& claim) { return claim.param.name; });

/// A campaign of one kernel of takes.so or combine.so.
KernelResult campaign_of(const std::string& name, const std::string& laws = "*_bound") {
  CampaignOptions options;
  options.cases_per_kernel = 50;
  options.generator = small_sizes();
  options.laws = {.glob = laws, .every_law = true};
  KernelResult result = run_campaign({&kernel_named(name)}, options).at(0);
  EXPECT_EQ(result.verdict(), Verdict::passed)
      << name << (result.failure ? describe(*result.failure, *result.kernel) : "");
  return result;
}

/// Number of cases that a campaign counts by a sentence with the words, and that it says so.
std::int64_t said(const KernelResult& result, const Refusals& counted, const std::string& words) {
  const std::vector<std::string> lines = shortfalls_of(result, false);
  const bool is_printed = std::ranges::any_of(
      lines, [&](const std::string& line) { return line.find(words) != std::string::npos; });
  std::int64_t count = 0;
  for (const Refusals::Sentence& sentence : counted.by_count()) {
    if (sentence.text.find(words) != std::string::npos) count += sentence.count;
  }
  EXPECT_EQ(is_printed, count > 0) << words;
  return count;
}

TEST(PluginTakes, OneFormOfPageTablesReachesTheKernelAndTheOtherIsCountedAsRefused) {
  const std::string laws = "*_bound,page_order_irrelevant";
  const KernelResult dense = campaign_of("takes/dense_tables", laws),
                     csr = campaign_of("takes/csr_tables", laws);
  const KernelResult any = campaign_of("takes/any_tables", laws);
  const auto forms = [](const KernelResult& result) {
    return said(result, result.refusals, "form alone");
  };
  EXPECT_GT(said(dense, dense.refusals, "it takes page tables in the dense form alone"), 5);
  EXPECT_GT(said(csr, csr.refusals, "it takes page tables in the csr form alone"), 5);
  EXPECT_EQ(forms(any), 0);
  for (const KernelResult* result : {&dense, &csr, &any}) {
    EXPECT_GT(result->checks.count("page_order_irrelevant"), 0U) << "cases with pages are judged";
  }
}

TEST(PluginTakes, PartialResultsOfOtherFormatsAreCountedAsRefused) {
  const KernelResult merge = campaign_of("honest/merge");
  EXPECT_GT(said(merge, merge.refusals, "takes no O_p in fp16"), 5);
  EXPECT_GT(said(merge, merge.refusals, "takes no O_p in bf16"), 5);
  EXPECT_EQ(said(merge, merge.refusals, "takes no O_p in fp32"), 0);
}

TEST(PluginTakes, GapsAndStridesOf0ReachKernelsThatTakeThemAndAreCountedOfTheOthers) {
  const std::string laws = "*_bound,entry_gaps*,broadcast*";
  const KernelResult gaps = campaign_of("takes/entry_gaps", laws);
  const KernelResult broadcast = campaign_of("takes/broadcast", laws);
  EXPECT_GT(gaps.checks.at("entry_gaps_irrelevant"), 5);
  EXPECT_FALSE(gaps.checks.contains("broadcast_equals_copies"));
  EXPECT_GT(said(gaps, gaps.declined, "it takes no strides of 0"), 5);
  EXPECT_EQ(said(gaps, gaps.declined, "it takes no gaps"), 0);
  EXPECT_GT(broadcast.checks.at("broadcast_equals_copies"), 5);
  EXPECT_FALSE(broadcast.checks.contains("entry_gaps_irrelevant"));
  EXPECT_GT(said(broadcast, broadcast.declined, "it takes no gaps between packed entries"), 3);
}

/// A stride of a drawn tensor with elements.
struct DrawnStride {
  std::int64_t bytes = 0, contiguous = 0;
  bool is_lone = false;  ///< of a dimension of size 1
};
std::vector<DrawnStride> drawn_strides(const KernelInfo& kernel) {
  std::vector<DrawnStride> drawn;
  for (std::uint64_t i = 0; i < cases; ++i) {
    const std::optional<Case> c = draw_case(kernel, small_sizes(), 3, i);
    if (!c) continue;
    for_each_tensor(*kernel.operation, [&](const TensorSpec& tensor, auto index) {
      const Shape shape = stored_shape(tensor, c->problem, c->layouts.paging);
      if (std::ranges::find(shape, 0) != shape.end()) return;
      const Strides got = strides_of(shape, c->layouts[index]), dense = strides_of(shape, {});
      const auto size = static_cast<std::int64_t>(format_of(tensor.format(c->problem)).size_bytes);
      drawn.push_back({got.batch * size, dense.batch * size, shape[0] == 1});
      drawn.push_back({got.head * size, dense.head * size, shape[1] == 1});
      drawn.push_back({got.row * size, dense.row * size, shape[2] == 1});
    });
  }
  return drawn;
}

bool is_multiple_of_16(const DrawnStride& stride) {
  return stride.bytes % 16 == 0;
}
bool is_lone(const DrawnStride& stride) {
  return stride.is_lone;
}
bool is_far(const DrawnStride& stride) {
  return stride.is_lone && stride.bytes > (std::int64_t{1} << 32);
}

TEST(PluginStrides, ArePositive) {
  EXPECT_TRUE(std::ranges::all_of(drawn_strides(kernel_named("honest/order")),
                                  [](const DrawnStride& s) { return s.bytes > 0; }));
}

TEST(PluginStrides, OfDimensionsOfSizeOneAreAnyThatKeepWhatTheKernelAsks) {
  KernelInfo kernel = kernel_named("honest/lone_strides");
  std::vector<DrawnStride> strided = drawn_strides(kernel);
  std::erase_if(strided, [](const DrawnStride& s) { return s.bytes == s.contiguous; });
  EXPECT_TRUE(std::ranges::all_of(strided, is_multiple_of_16));
  EXPECT_TRUE(std::ranges::any_of(strided, is_far)) << "beyond the tensor";
  kernel.layout_needs.contiguous_only = true;
  EXPECT_TRUE(std::ranges::all_of(drawn_strides(kernel),
                                  [](const DrawnStride& s) { return s.bytes == s.contiguous; }));
}

TEST(PluginStrides, OfDimensionsOfSizeOneAreAnyAtAllForAKernelThatSaysSo) {
  std::vector<DrawnStride> strided = drawn_strides(kernel_named("twin/lone_strides"));
  std::erase_if(strided, [](const DrawnStride& s) { return s.bytes == s.contiguous; });
  const auto lone = std::ranges::partition(strided, std::not_fn(is_lone));
  EXPECT_FALSE(std::ranges::all_of(lone, is_multiple_of_16));
  EXPECT_TRUE(std::ranges::all_of(strided.begin(), lone.begin(), is_multiple_of_16));
}

}  // namespace
}  // namespace attest
