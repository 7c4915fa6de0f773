// The device reference against the CPU reference and the 113-bit oracle: on the executor always, on
// a GPU where there is one.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/device_reference.hpp"
#include "cpu_reference/forward/error_bound.hpp"

namespace attest {
namespace {

constexpr float nan_value = std::numeric_limits<float>::quiet_NaN();

Inputs inputs_of(const Problem& problem, std::string_view family, double magnitude) {
  return make_inputs(problem, {.family = std::string(family), .seed = 11, .magnitude = magnitude});
}

PrecisionPlan plan_for(const Problem& problem, Rescale rescale = Rescale::deferred) {
  PrecisionPlan plan;
  plan.blocks = 3;
  plan.rescale = rescale;
  plan.normaliser_chain = std::max<std::int64_t>(problem.key_len, 1);
  plan.weight_format = problem.element_type;
  return plan;
}

/// Lengths on both sides of a tile's 64 rows and 16 steps; on the executor 67 keys and 150 queries
/// are two chunks of rows.
std::vector<Problem> odd_problems() {
  std::vector<Problem> problems;
  for (const Mask mask : all_masks()) {
    for (const auto& [queries, keys, dim] :
         {std::array{1, 1, 1}, std::array{65, 16, 8}, std::array{64, 65, 17},
          std::array{150, 67, 70}, std::array{3, 0, 4}}) {
      problems.push_back({.batch = 1,
                          .query_heads = 2,
                          .kv_heads = 1,
                          .query_len = queries,
                          .key_len = keys,
                          .head_dim = dim,
                          .mask = mask,
                          .scale = default_scale(dim)});
    }
  }
  return problems;
}

/// Both are within their own error of the truth, so they are within the sum of each other. Bound
/// quantities differ by the order of sums, which evaluation_slack allows for.
void expect_same_answer(const Answer& got, const Answer& want, const std::string& what) {
  const auto compare = [&](const char* name, const Tensor<double>& a, const Tensor<double>& b,
                           const Tensor<double>& a_error, const Tensor<double>& b_error,
                           const Tensor<double>& a_bound, const Tensor<double>& b_bound) {
    for (std::size_t i = 0; i < b.values().size(); ++i) {
      const double x = a.values()[i], y = b.values()[i];
      const double bound = a_bound.values()[i], other = b_bound.values()[i];
      if (std::isnan(y)) {
        ASSERT_TRUE(std::isnan(x) && std::isnan(bound)) << what << ' ' << name << ' ' << i;
        continue;
      }
      ASSERT_TRUE(x == y || std::abs(x - y) <= a_error.values()[i] + b_error.values()[i])
          << what << ' ' << name << ' ' << i << ": " << x << " and " << y << ", own errors "
          << a_error.values()[i] << " and " << b_error.values()[i];
      ASSERT_TRUE(bound == other ||
                  (bound <= other * evaluation_slack && other <= bound * evaluation_slack))
          << what << ' ' << name << ' ' << i << ": bounds " << bound << " and " << other;
    }
  };
  compare("O", got[forward::o].value, want[forward::o].value, got[forward::o].own_error,
          want[forward::o].own_error, got[forward::o].bound, want[forward::o].bound);
  compare("LSE", got[forward::lse].value, want[forward::lse].value, got[forward::lse].own_error,
          want[forward::lse].own_error, got[forward::lse].bound, want[forward::lse].bound);
}

/// Base of the tests of one executor: skips with the reason where it is missing.
class OnExecutor {
 public:
  explicit OnExecutor(Executor executor) {
    reason_ = why_unavailable(executor);
    reference_ = find_device_reference(executor);
    if (reference_ == nullptr && reason_.empty()) reason_ = "built without it";
    if (reason_.empty()) device_ = make_device(executor);
  }
  [[nodiscard]] const std::string& reason() const { return reason_; }

  void expect_agreement(const Problem& problem, const Inputs& inputs, const PrecisionPlan& plan,
                        const std::string& what) {
    const Answer got = reference_->answer(*device_, problem, inputs, plan);
    for (const Finding& finding : device_->take_findings()) {
      ADD_FAILURE() << what << ' ' << finding.kind << ": " << finding.message;
    }
    expect_same_answer(got, exact_answer(problem, inputs, plan), what + ' ' + to_string(problem));
    const Certificate certificate = certify_rows(problem, inputs, got, 5, 3);
    EXPECT_TRUE(certificate.holds())
        << what << ' ' << to_string(problem) << ": " << certificate.worst_ratio;
  }

  void all_problems() {
    for (const Problem& problem : odd_problems()) {
      expect_agreement(problem, inputs_of(problem, "normal", 1), plan_for(problem), "normal");
    }
  }

  void hard_inputs() {
    Problem problem{.query_heads = 2,
                    .kv_heads = 1,
                    .query_len = 9,
                    .key_len = 67,
                    .head_dim = 16,
                    .mask = Mask::causal_bottom_right,
                    .element_type = ElementType::bf16,
                    .scale = 0.25F};
    for (const InputFamily* of_attention : families_of(forward_operation)) {
      const InputFamily& family = *of_attention;
      if (!family.head_dims.empty()) continue;
      for (const double magnitude : {family.magnitudes.front(), family.magnitudes.back()}) {
        for (const Rescale rescale : {Rescale::deferred, Rescale::none}) {
          expect_agreement(problem, inputs_of(problem, family.name, magnitude),
                           plan_for(problem, rescale), family.name);
        }
      }
    }
  }

  void not_a_number() {
    Problem problem{.query_len = 66, .key_len = 66, .head_dim = 5, .mask = Mask::causal_top_left};
    Inputs inputs = inputs_of(problem, "normal", 1);
    inputs[forward::q].at(0, 0, 3, 1) = nan_value;
    inputs[forward::k].at(0, 0, 60, 2) = std::numeric_limits<float>::infinity();
    inputs[forward::v].at(0, 0, 7, 4) = nan_value;
    expect_agreement(problem, inputs, plan_for(problem), "NaN");
  }

  void comparison() {
    const Problem problem{
        .query_heads = 2, .kv_heads = 1, .query_len = 65, .key_len = 33, .head_dim = 8};
    const Inputs inputs = inputs_of(problem, "normal", 1);
    const PrecisionPlan plan = plan_for(problem);
    const Answer answer = exact_answer(problem, inputs, plan);
    Outputs outputs{Tensor<float>(query_shape(problem)),
                    Tensor<float>(answer[forward::lse].value.shape())};
    for (std::size_t i = 0; i < outputs[forward::o].values().size(); ++i) {
      outputs[forward::o].values()[i] = static_cast<float>(answer[forward::o].value.values()[i]);
    }
    for (std::size_t i = 0; i < outputs[forward::lse].values().size(); ++i) {
      outputs[forward::lse].values()[i] =
          static_cast<float>(answer[forward::lse].value.values()[i]);
    }
    OutputCheck check = reference_->check(*device_, problem, inputs, plan, outputs);
    EXPECT_EQ(check.rows, problem.rows());
    EXPECT_EQ(check.o.elements, outputs[forward::o].size());
    EXPECT_LE(check.o.ratio, 1);
    EXPECT_LE(check.lse.ratio, 1);
    const Shape wrong{0, 1, 64, 7};
    outputs[forward::o].at(0, 1, 64, 7) += 1;
    outputs[forward::lse].at(0, 1, 3, 0) = nan_value;
    check = reference_->check(*device_, problem, inputs, plan, outputs);
    EXPECT_GT(check.o.ratio, 1);
    EXPECT_EQ(check.o.index, wrong);
    EXPECT_EQ(check.lse.ratio, std::numeric_limits<double>::infinity());
    EXPECT_EQ(check.lse.index, (Shape{0, 1, 3, 0}));
  }

 private:
  std::string reason_;
  const DeviceReference* reference_ = nullptr;
  std::unique_ptr<Device> device_;
};

template <Executor executor>
class ReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!on_.reason().empty()) GTEST_SKIP() << on_.reason();
  }
  OnExecutor on_{executor};
};
using SimtReference = ReferenceTest<Executor::simt>;
using GpuReference = ReferenceTest<Executor::gpu>;

#define ATTEST_ON_BOTH(title, body) \
  TEST_F(SimtReference, title) {    \
    body;                           \
  }                                 \
  TEST_F(GpuReference, title) {     \
    body;                           \
  }
ATTEST_ON_BOTH(agrees_with_the_cpu_and_the_oracle_across_tile_edges_and_masks, on_.all_problems())
ATTEST_ON_BOTH(agrees_on_every_input_family_at_both_ends_of_its_size, on_.hard_inputs())
ATTEST_ON_BOTH(carries_nan_and_infinity_where_the_cpu_does, on_.not_a_number())
ATTEST_ON_BOTH(finds_the_worst_element_and_no_other, on_.comparison())

}  // namespace
}  // namespace attest
