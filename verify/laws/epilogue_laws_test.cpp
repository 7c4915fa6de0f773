// Laws about gates and residuals of O against saboteurs.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "core/operations/forward_arguments.hpp"
#include "verify/laws/sabotage_test.hpp"

namespace attest {
namespace {

const std::vector<std::string> with_epilogues{
    "b2 h4/2 q3 k20 d16 gate_given",
    "b2 h4/2 q4 k7 d17 causal_bottom_right residual_given",
    "b2 h6/2 q5 k9 d16 dv7 gate_given residual_given",
    "b2 h4/2 q17 k6 d16 causal_bottom_right gate_given residual_given fp16",
    "b3 h2/1 q13 k8 d16 lengths3 gate_given residual_given bf16",
    "b2 h2/1 q9 k20 d16 padding6 sinks_given residual_given",
    "b2 h2/1 q7 k20 d16 dropout0.5 philox3 gate_given",
    "b1 h2/1 q8 k0 d16 gate_given residual_given"};

TEST(EpilogueLaws, ACorrectKernelPassesEveryLawUnderEveryEpilogue) {
  expect_every_law_passed(with_epilogues, 6);
}

float first_of_operand(const void* tensor) {
  return static_cast<const float*>(tensor)[0];
}

TEST(EpilogueLaws, AGateThatLeavesATraceWhereItIsOneIsCaught) {
  expect_caught(
      "gate_of_one_is_none",
      [](const ForwardArguments& a) {
        if (a.gate != nullptr && first_of_operand(a.gate) == 1) nudge_output(a);
      },
      every_shape_case(with_epilogues[0]));
}

TEST(EpilogueLaws, AResidualThatLeavesATraceWhereItIsNoneIsCaught) {
  expect_caught(
      "residual_of_minus_zero_is_none",
      [](const ForwardArguments& a) {
        if (a.residual != nullptr && std::signbit(first_of_operand(a.residual)) &&
            first_of_operand(a.residual) == 0) {
          nudge_output(a);
        }
      },
      every_shape_case(with_epilogues[1]));
}

TEST(EpilogueLaws, AnEpilogueThatChangesLseIsCaught) {
  for (const std::string& problem : {with_epilogues[0], with_epilogues[1]}) {
    expect_caught(
        "epilogues_leave_lse",
        [](const ForwardArguments& a) {
          if (a.gate != nullptr || a.residual != nullptr) {
            a.lse[0] = std::nextafter(a.lse[0], 99.0F);
          }
        },
        every_shape_case(problem));
  }
}

TEST(EpilogueLaws, AGateOfZeroThatLeavesSomethingOfOIsCaught) {
  for (const std::string& problem : {with_epilogues[0], with_epilogues[2]}) {
    expect_caught(
        "gate_of_zero_leaves_the_residual",
        [](const ForwardArguments& a) {
          if (first_of_operand(a.gate) == 0) nudge_output(a);
        },
        every_shape_case(problem));
  }
}

// What is left of O is as large as the roundings of fp32 in it: a rounding to bf16 is 2^16 times
// that.
TEST(EpilogueLaws, OThatIsRoundedBeforeItsResidualIsAddedIsCaught) {
  expect_caught(
      "cancelling_residual",
      [](const ForwardArguments& a) {
        for (std::int64_t d = 0; d < a.problem.output_dim(); ++d) {
          float& o = o_row(a, 0, 0, 0)[d];
          const float residual =
              static_cast<const float*>(a.residual)[a.residual_strides.offset(0, 0, 0) + d];
          o = static_cast<float>(round_to(ElementType::bf16, o - residual)) + residual;
        }
      },
      every_shape_case(with_epilogues[1]));
}

TEST(EpilogueLaws, ANanOfAnEpilogueThatIsSwallowedOrReachesItsNeighboursIsCaught) {
  const auto is_bad = [](float x) { return std::isnan(x); };
  for (const bool swallows : {false, true}) {
    expect_caught(
        "nan_of_epilogue_stays",
        [=](const ForwardArguments& a) {
          const Problem& p = a.problem;
          for (std::int64_t row = 0; row < p.rows(); ++row) {
            const std::int64_t n = row % p.query_len, h = row / p.query_len % p.query_heads;
            float* const o = o_row(a, row / p.query_len / p.query_heads, h, n);
            const std::int64_t columns = p.output_dim();
            if (std::none_of(o, o + columns, is_bad)) continue;
            std::fill(o, o + columns, swallows ? 0 : std::numeric_limits<float>::quiet_NaN());
          }
        },
        every_shape_case(with_epilogues[0]));
  }
}

TEST(EpilogueLaws, AnEmptyRowWithoutItsResidualIsCaught) {
  expect_caught(
      "empty_rows", [](const ForwardArguments& a) { o_row(a, 0, 0, 0)[0] = 0; },
      every_shape_case("b1 h4/2 q17 k6 d16 causal_bottom_right residual_given"));
}

}  // namespace
}  // namespace attest
