// The device reference against the CPU reference and the 113-bit oracle: on the executor always, on
// a GPU where there is one.
#include <limits>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "gpu/reference/device_reference_test.hpp"

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

void all_problems(OnExecutor& on) {
  for (const Problem& problem : odd_problems()) {
    on.expect_agreement(problem, inputs_of(problem, "normal", 1), plan_for(problem), "normal");
  }
}

void hard_inputs(OnExecutor& on) {
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
        on.expect_agreement(problem, inputs_of(problem, family.name, magnitude),
                            plan_for(problem, rescale), family.name);
      }
    }
  }
}

void not_a_number(OnExecutor& on) {
  Problem problem{.query_len = 66, .key_len = 66, .head_dim = 5, .mask = Mask::causal_top_left};
  Inputs inputs = inputs_of(problem, "normal", 1);
  inputs[forward::q].at(0, 0, 3, 1) = nan_value;
  inputs[forward::k].at(0, 0, 60, 2) = std::numeric_limits<float>::infinity();
  inputs[forward::v].at(0, 0, 7, 4) = nan_value;
  on.expect_agreement(problem, inputs, plan_for(problem), "NaN");
}

void comparison(OnExecutor& on) {
  const Problem problem{
      .query_heads = 2, .kv_heads = 1, .query_len = 65, .key_len = 33, .head_dim = 8};
  on.expect_worst_found(problem, inputs_of(problem, "normal", 1), plan_for(problem));
}

using SimtReference = DeviceReferenceTest<forward_operation, Executor::simt>;
using GpuReference = DeviceReferenceTest<forward_operation, Executor::gpu>;

ATTEST_ON_BOTH(Reference, agrees_with_the_cpu_and_the_oracle_across_tile_edges_and_masks,
               all_problems)
ATTEST_ON_BOTH(Reference, agrees_on_every_input_family_at_both_ends_of_its_size, hard_inputs)
ATTEST_ON_BOTH(Reference, carries_nan_and_infinity_where_the_cpu_does, not_a_number)
ATTEST_ON_BOTH(Reference, finds_the_worst_element_and_no_other, comparison)

}  // namespace
}  // namespace attest
