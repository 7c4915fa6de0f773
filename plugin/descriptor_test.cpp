// Whatever core knows of what a kernel claims, plugin.h can say.
#include "plugin/descriptor.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/select.hpp"

namespace attest {
namespace {

const AttestFormat types[] = {ATTEST_BF16, ATTEST_FP32};
const AttestPlanField query_tile_16[] = {{"query_tile", 16}};
const AttestPlan plans[] = {{query_tile_16, 1}};
const char* const lse[] = {"lse"};
const std::int64_t head_dims[] = {128, 64};

/// A kernel that says as little as it can.
AttestKernel silent() {
  AttestKernel kernel{};
  kernel.size = sizeof kernel;
  kernel.name = "described";
  kernel.element_types = types;
  kernel.element_type_count = 1;
  kernel.masks = ATTEST_CAUSAL_TOP_LEFT;
  kernel.plans = plans;
  kernel.plan_count = 1;
  kernel.run = [](const AttestRun*) -> const char* { return "it ran"; };
  return kernel;
}

KernelInfo info_of(const AttestKernel& kernel) {
  const AttestKernel* const kernels[] = {&kernel};
  const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, kernels, 1};
  return kernels_of(&plugin, "here").at(0);
}

/// The claims of a kernel as text, one a line. A member that is added to KernelInfo breaks the
/// structured binding: give it a field in plugin.h and a line in the tests below, or say here why
/// not.
std::vector<std::string> claims_of(const KernelInfo& kernel) {
  const auto& [operation, name, summary, source, executor, role, killed_by, planted_in, plugin,
               dataflow, element_types, masks, dims, features, codes, is_deterministic,
               plan_depends_on_order, is_batch_invariant, plan_depends_on_batch, is_query_invariant,
               plan_depends_on_queries, reads_lengths, depends_on_alignment, shares_reference,
               ignores_hidden_nan, drops_vanished_parts, missing_outputs,
               nan_rows_may_have_empty_lse, needs, query_len_multiple, key_len_multiple,
               list_rows_multiple, list_keys_multiple, values_in_keys_dim, unavailable,
               compute_capabilities, precision, kernel_plans, has_plan_rule, unsupported,
               unsupported_in_pages, first_row, workspace_bytes, counter_bytes, launch,
               timed_launch] = kernel;
  // Of an operation that plugins do not compute.
  (void)codes;
  // Of libraries of others, of latent attention, of Plans of one kernel.
  (void)drops_vanished_parts, (void)values_in_keys_dim, (void)unsupported_in_pages,
      (void)has_plan_rule;
  // Ours alone: a role, a planted bug, a source in the literature, launches in another process, and
  // devices that are not there, for which a plugin has nothing that could be looked at.
  (void)compute_capabilities, (void)plan_depends_on_order, (void)plan_depends_on_batch;
  (void)plan_depends_on_queries;
  (void)counter_bytes;
  (void)source, (void)role, (void)killed_by, (void)planted_in, (void)plugin, (void)timed_launch;
  // Functions: below, and in the tests of the loader.
  (void)precision, (void)kernel_plans, (void)unsupported, (void)workspace_bytes, (void)launch;
  std::vector<std::string> claims{
      std::string(operation->name),
      name,
      summary,
      std::string(name_of(executor)),
      std::to_string(static_cast<int>(dataflow)),
      unavailable ? unavailable() : "",
      std::to_string(first_row ? first_row({}, {.query_tile = 16}) : 0)};
  const auto add = [&](auto number) { claims.push_back(std::to_string(number)); };
  std::string lists;
  for (const ElementType type : element_types) lists += format_of(type).name;
  for (const Mask mask : masks) lists += name_of(mask);
  for (const std::int64_t dim : dims) lists += std::to_string(dim) + " ";
  for (const std::string& output : missing_outputs) lists += output;
  claims.push_back(lists);
  const auto& [no_queries, value_dim, values_in_keys, softcap, lengths, padding, lse_gradient,
               sinks, slopes, bias, prefix, documents, has_lists, dropout, ue8m0_scales, gate,
               residual] = features;
  (void)ue8m0_scales;  // of codes, which no plugin is asked for
  for (const bool flag : {no_queries,
                          value_dim,
                          values_in_keys,
                          softcap,
                          lengths,
                          padding,
                          lse_gradient,
                          sinks,
                          slopes,
                          bias,
                          prefix,
                          documents,
                          has_lists,
                          dropout,
                          gate,
                          residual,
                          is_deterministic,
                          is_batch_invariant,
                          is_query_invariant,
                          reads_lengths,
                          depends_on_alignment,
                          shares_reference,
                          ignores_hidden_nan,
                          nan_rows_may_have_empty_lse}) {
    add(flag ? 1 : 0);
  }
  const auto& [contiguous_only, pointer_alignment, stride_alignment, aligns_lone_strides,
               takes_entry_gaps, takes_broadcast, tables, pages, page_sizes] = needs;
  add(takes_entry_gaps ? 1 : 0);
  add(takes_broadcast ? 1 : 0);
  (void)tables;  // a claim about pages, below
  add(static_cast<int>(pages));
  add(page_sizes.size());
  add(contiguous_only ? 1 : 0);
  add(aligns_lone_strides ? 1 : 0);
  for (const std::int64_t number : {pointer_alignment, stride_alignment, query_len_multiple,
                                    key_len_multiple, list_rows_multiple, list_keys_multiple}) {
    add(number);
  }
  return claims;
}

TEST(Descriptor, AKernelThatSaysLittleClaimsLittle) {
  const KernelInfo info = info_of(silent());
  EXPECT_EQ(info.operation, &forward_operation);
  EXPECT_EQ(info.element_types, std::vector{ElementType::bf16});
  EXPECT_EQ(info.masks, std::vector{Mask::causal_top_left});
  EXPECT_TRUE(info.is_deterministic && info.is_batch_invariant && info.ignores_hidden_nan);
  EXPECT_TRUE(info.layout_needs.aligns_lone_strides) << "but aligned to 1 byte";
  EXPECT_EQ(info.layout_needs.stride_alignment_bytes, 1);
  EXPECT_TRUE(!info.first_row && !info.unavailable && info.missing_outputs.empty());
}

using K = AttestKernel;
/// Each changes one claim of a kernel.
const std::vector<void (*)(AttestKernel&)> sentences{
    [](K& k) { k.name = "other"; },
    [](K& k) { k.summary = "a summary"; },
    [](K& k) { k.memory_space = ATTEST_CUDA; },
    [](K& k) { k.dataflow = ATTEST_DATAFLOW_STANDARD; },
    [](K& k) { k.dataflow = ATTEST_DATAFLOW_KEYS_OUTSIDE; },
    [](K& k) { k.dataflow = ATTEST_DATAFLOW_QUERIES_OUTSIDE; },
    [](K& k) { k.element_type_count = 2; },
    [](K& k) { k.masks = ATTEST_NO_MASK | ATTEST_WINDOW_BOTTOM_RIGHT; },
    [](K& k) { k.head_dims = head_dims, k.head_dim_count = 2; },
    [](K& k) { k.head_dim_min = 1000; },
    [](K& k) { k.head_dim_max = 24; },
    [](K& k) { k.head_dim_multiple = 512; },
    [](K& k) { k.features = ATTEST_SOFTCAP; },
    [](K& k) { k.features = ATTEST_LENGTHS; },
    [](K& k) { k.features = ATTEST_PADDING; },
    [](K& k) { k.features = ATTEST_VALUE_DIM; },
    [](K& k) { k.features = ATTEST_NO_QUERIES; },
    [](K& k) { k.features = ATTEST_VALUES_IN_KEYS; },
    [](K& k) { k.features = ATTEST_SINKS; },
    [](K& k) { k.features = ATTEST_SLOPES; },
    [](K& k) { k.features = ATTEST_BIAS; },
    [](K& k) { k.features = ATTEST_PREFIX; },
    [](K& k) { k.features = ATTEST_DOCUMENTS; },
    [](K& k) { k.features = ATTEST_LISTS; },
    [](K& k) { k.features = ATTEST_DROPOUT; },
    [](K& k) { k.features = ATTEST_GATE; },
    [](K& k) { k.features = ATTEST_RESIDUAL; },
    [](K& k) { k.is_not_deterministic = 1; },
    [](K& k) { k.is_not_batch_invariant = 1; },
    [](K& k) { k.depends_on_alignment = 1; },
    [](K& k) { k.shares_reference = 1; },
    [](K& k) { k.spreads_hidden_nan = 1; },
    [](K& k) { k.nan_rows_may_have_empty_lse = 1; },
    [](K& k) { k.missing_outputs = lse, k.missing_output_count = 1; },
    [](K& k) { k.only_contiguous = 1; },
    [](K& k) { k.pointer_alignment_bytes = 64; },
    [](K& k) { k.stride_alignment_bytes = 16; },
    [](K& k) { k.takes_any_lone_stride = 1; },
    [](K& k) { k.pages = ATTEST_PAGES_TOO; },
    [](K& k) { k.pages = ATTEST_ONLY_PAGES; },
    [](K& k) { k.takes_entry_gaps = 1; },
    [](K& k) { k.takes_broadcast = 1; },
    [](K& k) { k.is_query_invariant = 1; },
    [](K& k) { k.query_len_multiple = 64; },
    [](K& k) { k.key_len_multiple = 64; },
    [](K& k) { k.list_rows_multiple = 128; },
    [](K& k) { k.list_keys_multiple = 64; },
    [](K& k) { k.unavailable = "no library"; },
    [](K& k) {
      k.first_row = [](const AttestProblem*, const AttestPlan* plan) {
        return 1 - plan->fields[0].value;
      };
    },
};

/// Those that only a kernel with pages can say.
const std::vector<void (*)(AttestKernel&)> sentences_about_pages{
    [](K& k) { k.page_sizes = head_dims, k.page_size_count = 2; },
    [](K& k) { k.reads_lengths = 1; },
};

TEST(Descriptor, EverySentenceChangesOneClaimAndEveryClaimHasASentence) {
  const std::vector<std::string> usual = claims_of(info_of(silent()));
  std::vector<bool> said(usual.size(), false);
  said.at(0) = true;  // the operation: below
  const auto say = [&](const AttestKernel& before, void (*sentence)(AttestKernel&)) {
    AttestKernel kernel = before;
    sentence(kernel);
    const std::vector<std::string> claims_before = claims_of(info_of(before));
    const std::vector<std::string> claims = claims_of(info_of(kernel));
    int changed = 0;
    for (std::size_t claim = 0; claim < usual.size(); ++claim) {
      if (claims.at(claim) == claims_before.at(claim)) continue;
      said[claim] = true;
      ++changed;
    }
    return changed;
  };
  for (std::size_t i = 0; i < sentences.size(); ++i) {
    EXPECT_EQ(say(silent(), sentences[i]), 1) << "sentence " << i;
  }
  AttestKernel paged = silent();
  paged.pages = ATTEST_PAGES_TOO;
  for (std::size_t i = 0; i < sentences_about_pages.size(); ++i) {
    EXPECT_EQ(say(paged, sentences_about_pages[i]), 1) << "sentence about pages " << i;
  }
  AttestKernel backward = silent();
  backward.operation = "backward";
  EXPECT_EQ(say(backward, [](K& k) { k.features = ATTEST_DLSE; }), 1);
  for (std::size_t claim = 0; claim < usual.size(); ++claim) {
    EXPECT_TRUE(said[claim]) << "claim " << claim;
  }
}

TEST(Descriptor, ADataflowIsTheOneOfItsName) {
  const auto dataflow = [](std::uint32_t said) {
    AttestKernel kernel = silent();
    kernel.dataflow = said;
    return info_of(kernel).dataflow;
  };
  EXPECT_EQ(dataflow(ATTEST_DATAFLOW_UNKNOWN), Dataflow::unknown);
  EXPECT_EQ(dataflow(ATTEST_DATAFLOW_STANDARD), Dataflow::standard);
  EXPECT_EQ(dataflow(ATTEST_DATAFLOW_KEYS_OUTSIDE), Dataflow::keys_outside);
  EXPECT_EQ(dataflow(ATTEST_DATAFLOW_QUERIES_OUTSIDE), Dataflow::queries_outside);
}

TEST(Descriptor, AKernelWithPagesMayTakeOneFormOfTheirTables) {
  AttestKernel kernel = silent();
  const auto tables = [&](std::uint32_t pages, std::uint32_t said) {
    kernel.pages = pages;
    kernel.page_tables = said;
    return info_of(kernel).layout_needs.tables;
  };
  EXPECT_EQ(tables(ATTEST_PAGES_TOO, ATTEST_ANY_TABLES), std::nullopt);
  EXPECT_EQ(tables(ATTEST_PAGES_TOO, ATTEST_DENSE_TABLES), TableForm::dense);
  EXPECT_EQ(tables(ATTEST_ONLY_PAGES, ATTEST_CSR_TABLES), TableForm::csr);
  EXPECT_THROW((void)tables(ATTEST_NO_PAGES, ATTEST_CSR_TABLES), InvalidInput);
  EXPECT_THROW((void)tables(ATTEST_PAGES_TOO, 3), InvalidInput);
}

/// What is said about the first complaint of a kernel, behind where it was found.
std::string complaint_about(const AttestKernel& kernel) {
  try {
    (void)info_of(kernel);
  } catch (const InvalidInput& error) {
    const std::string text = error.what();
    return text.substr(text.find("): ") + 3);
  }
  return "";
}

TEST(Descriptor, SizesOfPagesAreOfAKernelThatTakesPagesAndEachIsSaidOnce) {
  const auto complaint = [](std::uint32_t pages, const std::vector<std::int64_t>& sizes) {
    AttestKernel kernel = silent();
    kernel.pages = pages;
    kernel.page_sizes = sizes.data();
    kernel.page_size_count = sizes.size();
    return complaint_about(kernel);
  };
  EXPECT_EQ(complaint(ATTEST_PAGES_TOO, {16, 64}), "");
  EXPECT_EQ(complaint(ATTEST_NO_PAGES, {16}),
            "'page_size_count' is 1; allowed: 0; with pages the number of their sizes");
  EXPECT_EQ(complaint(ATTEST_PAGES_TOO, {0}),
            "'page_sizes[0]' is 0; allowed: 1 to 4096, each once");
  EXPECT_EQ(complaint(ATTEST_ONLY_PAGES, {16, 16}),
            "'page_sizes[1]' is 16; allowed: 1 to 4096, each once");
}

TEST(Descriptor, LengthsAreReadByAKernelThatIsGivenSome) {
  AttestKernel kernel = silent();
  kernel.reads_lengths = 1;
  EXPECT_EQ(complaint_about(kernel),
            "'reads_lengths' is 1; allowed: 0; with ATTEST_LENGTHS or pages 1, too");
  kernel.features = ATTEST_LENGTHS;
  EXPECT_EQ(complaint_about(kernel), "");
  kernel.features = 0;
  kernel.pages = ATTEST_ONLY_PAGES;
  EXPECT_EQ(complaint_about(kernel), "");
}

TEST(Descriptor, NoGradientKeepsItsBitsWhenFewerQueriesAreAsked) {
  AttestKernel kernel = silent();
  kernel.is_query_invariant = 1;
  EXPECT_EQ(complaint_about(kernel), "");
  kernel.operation = "backward";
  EXPECT_TRUE(complaint_about(kernel).starts_with(
      "'is_query_invariant' is 1; allowed: 0 for operation 'backward'"))
      << complaint_about(kernel);
}

TEST(Descriptor, AListNamesNothingTwice) {
  AttestKernel kernel = silent();
  const std::int64_t same_dims[] = {64, 64};
  kernel.head_dims = same_dims;
  kernel.head_dim_count = 2;
  EXPECT_EQ(complaint_about(kernel), "'head_dims' is 64; allowed: 1 to 1024, each once");
  kernel = silent();
  kernel.operation = "backward";
  const char* const same_outputs[] = {"dk", "dk"};
  kernel.missing_outputs = same_outputs;
  kernel.missing_output_count = 2;
  EXPECT_EQ(complaint_about(kernel),
            "'missing_outputs' is 'dk'; allowed: dk, dv, dsinks, dbias, each once");
}

TEST(Descriptor, AMergeMaySayWhichPartialResultsItTakes) {
  AttestKernel kernel = silent();
  kernel.operation = "combine";
  kernel.masks = ATTEST_NO_MASK;
  Problem p{.operation = &combine_operation, .element_type = ElementType::bf16, .parts = 2};
  const auto takes = [&](ElementType type) {
    p.partial_type = type;
    return !why_unsupported(info_of(kernel), p, {.query_tile = 16});
  };
  EXPECT_TRUE(takes(ElementType::fp32) && takes(ElementType::fp16) && takes(ElementType::bf16));
  kernel.partial_types = types;  // bf16, fp32
  kernel.partial_type_count = 2;
  EXPECT_TRUE(takes(ElementType::bf16) && takes(ElementType::fp32));
  EXPECT_FALSE(takes(ElementType::fp16));
  EXPECT_EQ(why_unsupported(info_of(kernel), p, {.query_tile = 16}),
            "described takes no O_p in fp16");
  kernel.partial_type_count = 4;
  EXPECT_THROW((void)info_of(kernel), InvalidInput);
  kernel.partial_type_count = 1;
  kernel.operation = "forward";
  EXPECT_THROW((void)info_of(kernel), InvalidInput) << "it has no partial results";
}

TEST(Descriptor, AKernelMayMerge) {
  AttestKernel kernel = silent();
  kernel.operation = "combine";
  kernel.masks = ATTEST_NO_MASK;
  EXPECT_EQ(info_of(kernel).operation, &combine_operation);
}

TEST(Descriptor, AKernelMayGoBackWithTheMasksAndFeaturesOfAttention) {
  AttestKernel kernel = silent();
  kernel.operation = "backward";
  kernel.features = ATTEST_SOFTCAP | ATTEST_LENGTHS | ATTEST_PADDING | ATTEST_VALUE_DIM;
  const KernelInfo info = info_of(kernel);
  EXPECT_EQ(info.operation, &backward_operation);
  EXPECT_EQ(info.masks, std::vector{Mask::causal_top_left});
  EXPECT_TRUE(info.features.softcap && info.features.lengths && info.features.padding);
  EXPECT_FALSE(info.features.lse_gradient) << "it did not say so";
  kernel.features = ATTEST_VALUES_IN_KEYS;
  EXPECT_THROW((void)info_of(kernel), InvalidInput);
  kernel.features = ATTEST_DLSE;
  EXPECT_TRUE(info_of(kernel).features.lse_gradient);
  kernel.operation = "forward";
  EXPECT_THROW((void)info_of(kernel), InvalidInput) << "LSE is an output there";
  kernel.features = ATTEST_GATE | ATTEST_RESIDUAL;
  EXPECT_TRUE(info_of(kernel).features.gate && info_of(kernel).features.residual);
  kernel.operation = "backward";
  EXPECT_THROW((void)info_of(kernel), InvalidInput) << "O is given there";
  kernel.features = 0;
  kernel.pages = ATTEST_PAGES_TOO;
  EXPECT_THROW((void)info_of(kernel), InvalidInput);
}

TEST(Descriptor, AKernelMayChooseKeysAndLeaveOutTheirScoresAlone) {
  AttestKernel kernel = silent();
  kernel.operation = "select";
  kernel.features = ATTEST_NO_QUERIES | ATTEST_LENGTHS | ATTEST_PADDING;
  const char* missing = "scores";
  kernel.missing_outputs = &missing;
  kernel.missing_output_count = 1;
  const KernelInfo info = info_of(kernel);
  EXPECT_EQ(info.operation, &select_operation);
  EXPECT_EQ(info.masks, std::vector{Mask::causal_top_left});
  EXPECT_TRUE(info.features.no_queries && info.features.lengths && info.features.padding);
  EXPECT_FALSE(info.gives(selecting::scores));
  for (const char* const needed : {"keys", "counts"}) {
    missing = needed;
    EXPECT_TRUE(complaint_about(kernel).ends_with("; allowed: scores, each once")) << needed;
  }
  kernel.missing_output_count = 0;
  for (const std::uint32_t other :
       {ATTEST_SOFTCAP, ATTEST_VALUE_DIM, ATTEST_DLSE, ATTEST_BIAS, ATTEST_GATE}) {
    kernel.features = other;
    EXPECT_TRUE(complaint_about(kernel).starts_with("'features' is ")) << other;
  }
  kernel.features = 0;
  kernel.pages = ATTEST_PAGES_TOO;
  EXPECT_TRUE(complaint_about(kernel).starts_with("'pages' is "));
}

TEST(Descriptor, AFirstRowOutsideOfItsTileIsTheKernelsFailure) {
  AttestKernel kernel = silent();
  for (const auto first_row : std::vector<decltype(AttestKernel::first_row)>{
           [](const AttestProblem*, const AttestPlan*) { return std::int64_t{1}; },
           [](const AttestProblem*, const AttestPlan*) { return std::int64_t{-16}; }}) {
    kernel.first_row = first_row;
    EXPECT_THROW((void)info_of(kernel).first_row({}, {.query_tile = 16}), KernelError);
  }
}

// A copy as long as that would hold some bytes of a pointer, and be followed.
TEST(Descriptor, ASizeThatEndsWithinAFieldIsRefused) {
  AttestKernel kernel = silent();
  EXPECT_NO_THROW(info_of(kernel));
  for (std::uint32_t less = 1; less < alignof(AttestKernel); ++less) {
    kernel.size = static_cast<std::uint32_t>(sizeof kernel) - less;
    EXPECT_THROW(info_of(kernel), InvalidInput) << kernel.size;
  }
}

}  // namespace
}  // namespace attest
