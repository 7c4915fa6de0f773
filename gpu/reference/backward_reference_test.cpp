// The device reference of gradients against the CPU's and the 113-bit oracle: on the executor
// always, on a GPU where there is one.
#include <algorithm>
#include <limits>
#include <string>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "cpu_reference/backward/gradient_test.hpp"
#include "gpu/reference/device_reference_test.hpp"

namespace attest {
namespace {

constexpr float quiet_nan = std::numeric_limits<float>::quiet_NaN();
constexpr float infinite = std::numeric_limits<float>::infinity();

Inputs gradient_inputs(const Problem& problem, std::string_view family = "normal",
                       double magnitude = 1) {
  return make_inputs(problem, {.family = std::string(family), .seed = 11, .magnitude = magnitude});
}

/// Rounds wherever a kernel of the problem's format may.
BackwardRoundings stored_parts(const Problem& problem) {
  const ElementType type = problem.element_type;
  return {.delta_chain = problem.output_dim(),
          .weight_format = type,
          .dscore_format = type,
          .dscore_of_rounded_weights = true,
          .scales_dscore = true,
          .dq_chain = 64,
          .dq_parts = 3,
          .dq_sum_format = type,
          .kv_chain = 64,
          .kv_parts = 3,
          .kv_part_format = type,
          .output = type};
}

/// Lengths on both sides of a tile's 64 rows and 16 steps; on the executor 67 keys and 150 queries
/// are two chunks of rows.
std::vector<Problem> gradient_problems() {
  std::vector<Problem> problems;
  for (const Mask mask : all_masks()) {
    for (const char* const sizes :
         {"q1 k1 d1", "q65 k16 d8", "q64 k65 d17", "q150 k67 d70", "q3 k0 d4", "q0 k3 d4"}) {
      const std::string window = is_window(mask) ? " left20 right3" : "";
      problems.push_back(backward_problem("h2/1 " + std::string(sizes) + ' ' +
                                          std::string(name_of(mask)) + window));
    }
  }
  for (const char* const text :
       {"b2 h4/2 q70 k131 d9 window_bottom_right bf16 left40 right2 dv66 softcap3 padding9",
        "b5 h3/1 q131 k131 d16 causal_top_left fp16 lengths5 dv4",
        "b4 h2/2 q66 k130 d5 window_top_left lengths6 padding4 left0 right70 softcap0.5",
        "b1 h1/1 q200 k70 d3 window_top_left left2 right1", "b8 h1/1 q65 k66 d2 none padding7",
        "b2 h2/1 q65 k66 d5 causal_bottom_right dlse_given",
        "b4 h2/1 q66 k65 d5 none softcap2 lengths6 dlse_given"}) {
    problems.push_back(backward_problem(text));
  }
  return problems;
}

void agree_on_problems(OnExecutor& on) {
  for (const Problem& problem : gradient_problems()) {
    on.expect_agreement(problem, gradient_inputs(problem), stored_parts(problem), "normal");
  }
}

void agree_on_families(OnExecutor& on) {
  const Problem problem = backward_problem("h2/1 q9 k67 d16 causal_bottom_right bf16 scale0.25");
  for (const InputFamily* family : families_of(backward_operation)) {
    if (!family->head_dims.empty()) continue;
    for (const double magnitude : {family->magnitudes.front(), family->magnitudes.back()}) {
      const Inputs inputs = gradient_inputs(problem, family->name, magnitude);
      on.expect_agreement(problem, inputs, stored_parts(problem), family->name);
      on.expect_agreement(problem, inputs, BackwardRoundings{.dq_chain = 67, .kv_chain = 18},
                          family->name);
    }
  }
}

void agree_on_bad_inputs(OnExecutor& on) {
  for (const char* const text : {"h2/1 q140 k66 d5 causal_top_left", "h2/1 q140 k66 d5 softcap2",
                                 "h2/1 q140 k66 d5 window_bottom_right left50 right9 padding9"}) {
    const Problem problem = backward_problem(text);
    const Inputs finite = gradient_inputs(problem);
    struct Bad {
      InputIndex input;
      std::int64_t head, row, column;
      float value;
    };
    const std::vector<Bad> each{
        {backward::q, 0, 3, 1, quiet_nan},    {backward::q, 1, 139, 0, infinite},
        {backward::k, 0, 60, 2, infinite},    {backward::v, 0, 7, 4, quiet_nan},
        {backward::v, 0, 65, 3, -infinite},   {backward::d_o, 1, 9, 0, quiet_nan},
        {backward::d_o, 0, 130, 2, infinite}, {backward::o, 0, 30, 0, infinite},
        {backward::lse, 1, 20, 0, quiet_nan}, {backward::lse, 0, 21, 0, infinite},
        {backward::lse, 0, 22, 0, -infinite}};
    Inputs all = finite;
    for (const Bad& bad : each) {
      Inputs one = finite;
      for (Inputs* inputs : {&one, &all}) {
        (*inputs)[bad.input].at(0, bad.head, bad.row, bad.column) = bad.value;
      }
      on.expect_agreement(problem, one, stored_parts(problem),
                          std::string(backward_operation[bad.input].name));
    }
    on.expect_agreement(problem, all, stored_parts(problem), "all");
  }
}

void find_worst_gradient(OnExecutor& on) {
  const Problem problem = backward_problem("h2/1 q65 k33 d8 dv6");
  on.expect_worst_found(problem, gradient_inputs(problem), BackwardRoundings{});
}

void schedules(OnExecutor& on) {
  const Problem problem = backward_problem("h4/2 q150 k67 d9 causal_bottom_right bf16");
  const Inputs inputs = gradient_inputs(problem);
  const auto answer = [&](std::uint64_t seed) {
    on.device().seed_schedule(seed);
    return on.answer(problem, inputs, stored_parts(problem), "schedules");
  };
  const Answer want = answer(1), got = answer(2);
  for (const OutputIndex output : {backward::dq, backward::dk, backward::dv}) {
    EXPECT_TRUE(std::ranges::equal(got[output].value.values(), want[output].value.values()));
    EXPECT_TRUE(std::ranges::equal(got[output].bound.values(), want[output].bound.values()));
    EXPECT_TRUE(
        std::ranges::equal(got[output].own_error.values(), want[output].own_error.values()));
  }
}

using SimtBackwardReference = DeviceReferenceTest<backward_operation, Executor::simt>;
using GpuBackwardReference = DeviceReferenceTest<backward_operation, Executor::gpu>;

ATTEST_ON_BOTH(BackwardReference, agrees_with_the_cpu_and_the_oracle_across_tile_edges_and_masks,
               agree_on_problems)
ATTEST_ON_BOTH(BackwardReference, agrees_on_every_input_family_at_both_ends_of_its_size,
               agree_on_families)
ATTEST_ON_BOTH(BackwardReference, carries_nan_and_infinity_where_the_cpu_does, agree_on_bad_inputs)
ATTEST_ON_BOTH(BackwardReference, finds_the_worst_element_and_no_other, find_worst_gradient)
ATTEST_ON_BOTH(BackwardReference, has_the_same_bits_under_any_schedule, schedules)

/// There exp is the C library's, too, so that own errors agree as bounds do.
TEST_F(SimtBackwardReference, estimates_its_own_error_as_the_cpu_does) {
  for (const Problem& problem : gradient_problems()) {
    const Inputs inputs = gradient_inputs(problem);
    Answer got = on_.answer(problem, inputs, BackwardRoundings{}, to_string(problem));
    Answer want = reference_of(backward_operation).exact(problem, inputs, BackwardRoundings{});
    for (Answer* const answer : {&got, &want}) {
      for (OutputAnswer& output : *answer) output.bound = output.own_error;
    }
    expect_same_answer(backward_operation, got, want, "own error of " + to_string(problem));
  }
}

}  // namespace
}  // namespace attest
