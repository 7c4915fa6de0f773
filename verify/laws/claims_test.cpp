// What a kernel does not claim: laws of equal bits then hold it to the bounds, and no less.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

using Change = std::function<void(KernelInfo&)>;

const Change not_deterministic = [](KernelInfo& k) { k.is_deterministic = false; };
const Change by_order = [](KernelInfo& k) {
  k.plan_depends_on_order = [](const Plan&) { return true; };
};
const Change not_batch_invariant = [](KernelInfo& k) { k.is_batch_invariant = false; };
const Change by_plan = [](KernelInfo& k) {
  k.plan_depends_on_batch = [](const Plan&) { return true; };
};
const Change aligned = [](KernelInfo& k) { k.depends_on_alignment = true; };
const Change sharing = [](KernelInfo& k) { k.shares_reference = true; };
const Change parts_in_fp16 = [](KernelInfo& k) {
  k.precision = [of = k.precision](const Problem& problem, const Plan& plan) {
    auto precision = of(problem, plan).as<PrecisionPlan>();
    precision.splits = 2;
    precision.partial_format = ElementType::fp16;
    return precision;
  };
};

/// A claim without which a law of equal bits is one of bounds.
struct Relaxed {
  std::string law;
  std::vector<Change> by;
};
const std::vector<Relaxed> relaxed{
    {"rerun_bitwise", {not_deterministic, by_order}},
    {"earlier_launch_irrelevant", {not_deterministic, by_order}},
    {"layout_neutral", {not_deterministic, aligned}},
    {"permuted_heads_bitwise", {not_deterministic, not_batch_invariant, by_plan, aligned, sharing}},
    {"duplicated_request_bitwise", {not_deterministic, not_batch_invariant, by_plan, aligned}},
    {"batch_mates_irrelevant", {not_deterministic, not_batch_invariant, by_plan, aligned}},
    {"hidden_keys_irrelevant", {not_deterministic, sharing}},
    {"other_queries_irrelevant", {not_deterministic, sharing}},
    {"scaled_values_bitwise", {not_deterministic, parts_in_fp16}},
    {"scale_not_cached", {not_deterministic}}};

/// The first launch differs in all rows, by a factor.
Sabotage first_launch(float factor) {
  return [factor, launches = std::make_shared<int>(0)](const ForwardArguments& a) {
    const Problem& p = a.problem;
    if (++*launches > 1) return;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      // One of two equal requests only.
      for (std::int64_t h = 0; h < p.query_heads && (b == 0 || p.batch != 2); ++h) {
        for (std::int64_t n = 0; n < p.query_len; ++n) o_row(a, b, h, n)[0] *= factor;
      }
    }
  };
}

Case wide_case() {
  Case c = plain_case();
  c.problem.batch = 3;
  c.problem.mask = Mask::causal_top_left;  // no row is empty
  return c;
}

TEST(Claims, ALawOfEqualBitsHoldsAKernelThatDoesNotClaimThemToTheBounds) {
  constexpr float within = 1 + 0x1p-23F, beyond = 1.01F;
  for (const Relaxed& law : relaxed) {
    EXPECT_EQ(verdict_of(law.law, wide_case(), first_launch(within)), Verdict::failed) << law.law;
    for (std::size_t i = 0; i < law.by.size(); ++i) {
      const auto verdict = [&](float factor) {
        return verdict_of(law.law, wide_case(), first_launch(factor), law.by[i]);
      };
      EXPECT_EQ(verdict(within), Verdict::passed) << law.law << ", claim " << i;
      EXPECT_EQ(verdict(beyond), Verdict::failed) << law.law << ", claim " << i;
    }
  }
}

TEST(Claims, AClaimRelaxesNoLawThatDoesNotRelyOnIt) {
  for (const std::string law :
       {"rerun_bitwise", "earlier_launch_irrelevant", "scaled_values_bitwise"}) {
    for (const Change& change : {not_batch_invariant, aligned, sharing}) {
      EXPECT_EQ(verdict_of(law, wide_case(), first_launch(1 + 0x1p-23F), change), Verdict::failed)
          << law;
    }
  }
}

TEST(Claims, NothingIsAskedOfAnLseThatTheKernelDoesNotHave) {
  const KernelInfo* const correct = find_kernel(plain_case().kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.missing_outputs = {"lse"};
  kernel.launch = [&](const ForwardArguments& a, Device& device) {
    EXPECT_EQ(a.lse, nullptr);
    std::vector<float> own(static_cast<std::size_t>(a.problem.rows()));
    ForwardArguments with_lse = a;
    with_lse.lse = own.data();
    correct->launch(with_lse, device);
  };
  HostMemoryDevice device;
  const Case c = plain_case();
  attest::Run run(kernel, c, device);
  const CaseVerdict verdict = verify_case(run, {.every_law = true});
  EXPECT_EQ(verdict.verdict, Verdict::passed) << verdict.reason;
  EXPECT_EQ(verdict.worst_over_bound.of("lse"), 0);
  for (const std::string& law : verdict.checked_laws) EXPECT_FALSE(law.starts_with("lse_")) << law;
}

TEST(Claims, TheLseOfARowThatSawANaNIsEmptyOnlyWhereThatIsSaid) {
  const Sabotage empties = [](const ForwardArguments& a) {
    for (std::int64_t row = 0; row < a.problem.rows(); ++row) {
      if (std::isnan(a.lse[row])) a.lse[row] = -std::numeric_limits<float>::infinity();
    }
  };
  int failures = 0;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {  // decides where the NaN goes
    Case c = plain_case();
    c.inputs.seed = seed;
    failures += verdict_of("nan_stays_in_its_rows", c, empties) == Verdict::failed ? 1 : 0;
    EXPECT_EQ(verdict_of("nan_stays_in_its_rows", c, empties,
                         [](KernelInfo& k) { k.nan_rows_may_have_empty_lse = true; }),
              Verdict::passed);
  }
  EXPECT_GT(failures, 0);
}

/// Means of equal scores that are one step off, as by a reciprocal.
TEST(Claims, MeansOfEqualScoresAreExactWhereTheDeclaredRoundingsMakeThemSo) {
  const Sabotage nudged = [](const ForwardArguments& a) {
    float& o = o_row(a, 0, 1, 5)[2];  // sees four keys
    o = std::nextafter(o, 100.0F);
  };
  const auto with = [](const std::function<void(PrecisionPlan&)>& declare) -> Change {
    return [declare](KernelInfo& kernel) {
      kernel.precision = [declare, of = kernel.precision](const Problem& p, const Plan& plan) {
        auto precision = of(p, plan).as<PrecisionPlan>();
        declare(precision);
        return precision;
      };
    };
  };
  const std::string law = "equal_scores_exact_mean";
  EXPECT_EQ(verdict_of(law, plain_case(), nudged), Verdict::failed);
  for (const auto& declare : std::vector<std::function<void(PrecisionPlan&)>>{
           [](PrecisionPlan& p) { p.division_error = 1.5e-6; },
           [](PrecisionPlan& p) { p.exp.is_one_at_zero = false; },
           [](PrecisionPlan& p) { p.reference_lag = 8; }}) {
    EXPECT_EQ(verdict_of(law, plain_case(), nudged, with(declare)), Verdict::passed);
    const Sabotage far_off = [](const ForwardArguments& a) { o_row(a, 0, 1, 5)[2] += 1e-2F; };
    EXPECT_EQ(verdict_of(law, plain_case(), far_off, with(declare)), Verdict::failed);
  }
}

}  // namespace
}  // namespace attest
