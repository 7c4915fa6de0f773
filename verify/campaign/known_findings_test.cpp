// Known findings against a made-up peer that has one: NaN in the gradients of one query whose LSE
// is low, as cuDNN's, and against others that are wrong in another way.
#include "verify/campaign/known_findings.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/operations/backward_arguments.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"

namespace attest {
namespace {

/// Selects the query heads of a launch that have NaN in the dK and dV of their keys.
using Spoils = bool (*)(const BackwardArguments& a, float lse);

bool where_a_row_past_the_end_is_infinite(const BackwardArguments& a, float lse) {
  return a.problem.query_len == 1 && std::isnan(0 * std::exp(0 - lse));
}

void put_nan(void* tensor, const Strides& strides, ElementType type, const Shape& at) {
  const bool is_wide = type == ElementType::fp32;
  const std::int64_t element = strides.offset(at[0], at[1], at[2]) + at[3];
  const std::uint32_t nan = is_wide ? 0x7fc12345U : 0x7fffU;  // of fp16 and bf16
  const std::size_t size = is_wide ? 4 : 2;
  std::memcpy(static_cast<std::byte*>(tensor) + element * static_cast<std::int64_t>(size), &nan,
              size);
}

void spoil(const BackwardArguments& a, Spoils spoils) {
  const Problem& p = a.problem;
  if (p.length_seed != 0) return;  // packed
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      if (p.query_len == 0 || !spoils(a, a.lse[(b * p.query_heads + h) * p.query_len])) continue;
      for (std::int64_t key = 0; key < p.key_len; ++key) {
        put_nan(a.dk, a.dk_strides, p.element_type, {b, p.kv_head_of(h), key, 0});
        put_nan(a.dv, a.dv_strides, p.element_type, {b, p.kv_head_of(h), key, 0});
      }
    }
  }
}

/// backward_tiled as cuDNN's kernel of that version, spoilt.
KernelInfo peer(const std::string& version, Spoils spoils) {
  KernelInfo kernel = *find_kernel("backward_tiled", Executor::cpu);
  kernel.name = "cudnn_sdpa_backward";
  kernel.launch = [version, spoils, right = kernel.launch](const Arguments& a, Device& device) {
    right(a, device);
    spoil(a, spoils);
    note_library(version);
  };
  return kernel;
}

KernelResult campaign_of(const KernelInfo& kernel,
                         const std::vector<KnownFinding>& findings = all_known_findings()) {
  CampaignOptions options;
  options.cases_per_kernel = 12;
  options.generator.max_len = 12;
  options.regressions = all_regressions();
  options.known_findings = findings;
  return run_campaign({&kernel}, options).front();
}

TEST(KnownFindings, AFailureThatIsOneCostsNoVerdictAndItsKernelGetsAllOtherCases) {
  const KernelInfo kernel = peer("cuDNN 9.14.0", where_a_row_past_the_end_is_infinite);
  const KernelResult result = campaign_of(kernel);
  EXPECT_FALSE(result.failure.has_value());
  EXPECT_EQ(result.verdict(), Verdict::passed);
  EXPECT_EQ(campaign_verdict({result}), Verdict::passed);
  EXPECT_EQ(result.asked(), 12) << "a kernel that failed would have got no more cases";
  ASSERT_EQ(result.known.size(), 1U);
  const KnownFailures& same = result.known.at("P11");
  EXPECT_GE(same.cases, 1);
  EXPECT_EQ(result.known_cases(), same.cases);
  EXPECT_EQ(same.library, "cuDNN 9.14.0");
  EXPECT_LT(same.failing_case, 0) << "the stored case shows it";
  EXPECT_TRUE(same.is_shrunk);
  EXPECT_EQ(same.failure.the_case.problem.query_len, 1);
  EXPECT_TRUE(result.not_reproduced.empty());
}

TEST(KnownFindings, StrictlyAFailureIsOne) {
  const KernelResult result =
      campaign_of(peer("cuDNN 9.14.0", where_a_row_past_the_end_is_infinite), {});
  EXPECT_EQ(result.verdict(), Verdict::failed);
  EXPECT_TRUE(result.known.empty());
}

TEST(KnownFindings, NothingIsKnownOfAnotherVersion) {
  for (const char* version : {"cuDNN 9.30.0", "cuDNN 9.140.0", "cuDNN 9.1", "cuDNN", ""}) {
    const KernelResult result = campaign_of(peer(version, where_a_row_past_the_end_is_infinite));
    EXPECT_EQ(result.verdict(), Verdict::failed) << version;
    EXPECT_TRUE(result.known.empty()) << version;
  }
}

TEST(KnownFindings, NaNOfAnotherCauseFailsAlthoughTheStoredCaseShowsItToo) {
  const Spoils others[] = {
      [](const BackwardArguments& a, float) { return a.problem.query_len == 1; },
      [](const BackwardArguments&, float lse) { return std::isnan(0 * std::exp(0 - lse)); },
      [](const BackwardArguments&, float) { return true; }};
  for (const Spoils& other : others) {
    const KernelInfo kernel = peer("cuDNN 9.14.0", other);
    const KernelResult result = campaign_of(kernel);
    EXPECT_EQ(result.verdict(), Verdict::failed) << "number " << &other - others;
    EXPECT_EQ(campaign_verdict({result}), Verdict::failed);
  }
}

TEST(KnownFindings, ADefectBesideTheKnownOneFails) {
  KernelInfo kernel = peer("cuDNN 9.14.0", where_a_row_past_the_end_is_infinite);
  kernel.launch = [known = kernel.launch](const Arguments& a, Device& device) {
    known(a, device);
    const BackwardArguments by_name(a);
    if (a.problem.query_len > 1 && a.problem.key_len > 0) {
      put_nan(by_name.dq, by_name.dq_strides, a.problem.element_type, {0, 0, 0, 0});
    }
  };
  const KernelResult result = campaign_of(kernel);
  EXPECT_EQ(result.verdict(), Verdict::failed);
  EXPECT_EQ(result.failure->law, "within_bound");
  EXPECT_EQ(result.known.size(), 1U) << "and the known one is told apart";
}

TEST(KnownFindings, AVersionWithoutTheDefectIsSaid) {
  const KernelResult mended =
      campaign_of(peer("cuDNN 9.30.0", [](const BackwardArguments&, float) { return false; }));
  EXPECT_EQ(mended.verdict(), Verdict::passed);
  EXPECT_EQ(mended.not_reproduced, (std::map<std::string, std::string>{{"P11", "cuDNN 9.30.0"}}));
  EXPECT_TRUE(campaign_of(*find_kernel("backward_tiled", Executor::cpu)).not_reproduced.empty())
      << "nobody said that our kernels have it";
}

TEST(KnownFindings, AreSeenWithTheirVersionOutOfAWorkersNote) {
  const KnownFinding& finding = all_known_findings().front();
  EXPECT_TRUE(finding.is_known_of("cuDNN 9.19.0"));
  EXPECT_TRUE(finding.is_known_of("PyTorch 2.11.0, cuDNN 9.19.0, Triton 3.5 ran a_kernel"));
  EXPECT_FALSE(finding.is_known_of("PyTorch 2.11.0, Triton 3.5 ran a_kernel"));
  EXPECT_FALSE(finding.is_known_of("other-cuDNN 9.19.0"));
}

TEST(KnownFindings, NameStoredCasesThatShowThem) {
  for (const KnownFinding& finding : all_known_findings()) {
    const auto stored =
        std::ranges::find(all_regressions(), finding.stored_case, &Regression::name);
    ASSERT_NE(stored, all_regressions().end()) << finding.stored_case;
    EXPECT_TRUE(finding.report.empty() || finding.report.starts_with("https://")) << finding.id;
    EXPECT_FALSE(finding.versions.empty()) << finding.id;
  }
}

const KnownFinding& finding_of(std::string_view id) {
  return *std::ranges::find(all_known_findings(), id, &KnownFinding::id);
}

/// Asks whether a finding explains a failure of a kernel after a change to it.
auto explains(const KnownFinding& finding, const KernelInfo& kernel, const Failure& failure) {
  return [&](const auto& change) {
    Failure other = failure;
    change(other);
    return finding.explains(kernel, other);
  };
}

TEST(KnownFindings, ExplainWhatCudnnGaveAndNothingWithAnOrdinaryLse) {
  // The shrunk case of gpu/peers/README.md, and what it gave.
  Failure failure{
      .law = "dk_within_bound",
      .the_case = {.problem = problem_from_string("b1 h1/1 q1 k128 d8 none bf16 backward"),
                   .inputs = {.family = "all_negative",
                              .magnitude = 64,
                              .round_to_integers = true}},
      .check = Check::failed_at("dK", {.got = NAN, .want = -0.0581, .bound = 0.00046}, "NaN")};
  const KernelInfo kernel = peer("", where_a_row_past_the_end_is_infinite);
  EXPECT_EQ(known_finding(all_known_findings(), kernel, failure, "cuDNN 9.14.0"),
            &all_known_findings().front());
  const auto is_explained = explains(all_known_findings().front(), kernel, failure);
  EXPECT_TRUE(is_explained([](Failure&) {}));
  EXPECT_FALSE(is_explained([](Failure& f) { f.law = "gradient_of_zero"; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.kind = Verdict::crashed; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.repetition = "failed 2 of 5 times"; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.check.worst.got = 3; })) << "a wrong number";
  EXPECT_TRUE(is_explained([](Failure& f) { f.check.tensor = "dQ"; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.problem.query_len = 2; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.inputs.magnitude = 1; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.inputs.family = "normal"; }));
}

TEST(KnownFindings, ExplainNaNOverPagesOnlyWhereAPageHasUnusedSlotsThatHoldIt) {
  Failure failure{.law = "within_bound",
                  .the_case = {.problem = problem_from_string("b2 h1/1 q2 k5 d8 none fp16")},
                  .check = Check::failed_at("O", {.got = NAN, .want = 1, .bound = 0.001}, "NaN")};
  failure.the_case.layouts.paging = paging_from_string("paged4");
  KernelInfo kernel = *find_kernel("f2_half", Executor::cpu);
  kernel.name = "cudnn_sdpa";
  const auto is_explained = explains(finding_of("P13"), kernel, failure);
  EXPECT_TRUE(is_explained([](Failure&) {}));
  const auto with_paging = [](const char* text) {
    return [text](Failure& f) { f.the_case.layouts.paging = paging_from_string(text); };
  };
  EXPECT_TRUE(is_explained(with_paging("paged4/infinity")));
  EXPECT_FALSE(is_explained(with_paging("paged4/large"))) << "no NaN lies there";
  EXPECT_FALSE(is_explained(with_paging("paged1"))) << "no slot is unused";
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.layouts.paging = {}; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.problem.query_len = 1; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.problem.key_len = 8; })) << "full pages";
  EXPECT_FALSE(is_explained([](Failure& f) { f.check.worst.got = 0.5; })) << "a wrong number";
  EXPECT_FALSE(is_explained([](Failure& f) { f.check.tensor = "LSE"; }));
}

TEST(KnownFindings, ExplainNaNInDqOnlyOfALowLseAndHalfATileOfKeys) {
  const Regression& stored =
      *std::ranges::find(all_regressions(), finding_of("P14").stored_case, &Regression::name);
  const Failure failure{
      .law = "within_bound",
      .the_case = stored.the_case,
      .check = Check::failed_at("dQ", {.got = NAN, .want = -0.02, .bound = 0.222}, "NaN")};
  KernelInfo kernel = *find_kernel("backward_tiled", Executor::cpu);
  kernel.name = "torch_cudnn_backward";
  const auto is_explained = explains(finding_of("P14"), kernel, failure);
  EXPECT_TRUE(is_explained([](Failure&) {}));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.problem.key_len = 256; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.the_case.inputs.family = "normal"; }));
  EXPECT_FALSE(is_explained([](Failure& f) { f.check.tensor = "dK"; }));
}

TEST(KnownFindings, AreKeptInTheStateOfACampaign) {
  KernelResult result;
  result.kernel = find_kernel("backward_tiled", Executor::cpu);
  const Failure failure{.law = "dv_within_bound",
                        .the_case = all_regressions().front().the_case,
                        .check = Check::failed("NaN")};
  result.known["P11"] = {.failure = failure,
                         .failing_case = -3,
                         .is_shrunk = true,
                         .cases = 2,
                         .library = "cuDNN 9.14.0"};
  result.not_reproduced["P12"] = "cuDNN 9.15.0";
  const KernelResult read = kernel_result_from_json(to_json(result));
  EXPECT_EQ(to_json(read), to_json(result));
  EXPECT_EQ(read.known.at("P11").failure.law, "dv_within_bound");
  EXPECT_EQ(read.known_cases(), 2);
}

}  // namespace
}  // namespace attest
