#include "core/attention/fused_roundings.hpp"

#include <algorithm>
#include <cstdint>

namespace attest {
namespace {

constexpr std::int64_t largest_tile = 256;
constexpr std::int64_t terms_of_a_step = 16;

std::int64_t rounded_up(std::int64_t count, std::int64_t to) {
  return std::max<std::int64_t>(1, (count + to - 1) / to) * to;
}

/// More than any split of the keys has.
std::int64_t parts_of(const Problem& problem) {
  return rounded_up(problem.key_len, terms_of_a_step) / terms_of_a_step;
}

}  // namespace

Accumulation usual_products(const Problem& problem) {
  return problem.element_type == ElementType::fp32 ? Accumulation{} : ampere();
}

PrecisionPlan fused_precision(const Problem& problem, const Accumulation& products) {
  ExpMethod exp = ex2_approx();
  exp.argument_error += 0x1p-24;  // a rescale by 2^fl(fl(m - m') c) rounds twice
  const std::int64_t parts = parts_of(problem);
  return {.score = products,
          .value = products,
          .scale_after_dot = false,
          .exp = exp,
          .weight_format = problem.element_type,
          .rescale = Rescale::deferred,
          .blocks = parts,
          .splits = parts,
          .normaliser_chain = problem.key_len,
          .division_error = 0x1p-22,
          .log_error = 0x1p-20,
          .lse = LseForm::log2,
          .merge = Merge::lse_pairs};
}

bool has_unknown_order(const PrecisionPlan& plan, const Problem& problem) {
  return plan.splits > 1 && plan.splits == parts_of(problem) && plan.merge == Merge::lse_pairs &&
         plan.normaliser_chain == problem.key_len;
}

BackwardRoundings fused_backward_roundings(const Problem& p, const Accumulation& products) {
  // Chains of all, and as many parts as there are steps: more than any order costs.
  const std::int64_t keys = rounded_up(p.key_len, largest_tile);
  const std::int64_t group = p.query_heads / p.kv_heads;
  const std::int64_t rows = rounded_up(p.query_len, largest_tile);
  return {.score = products,
          .product = products,
          .sums = products,
          .exp = ex2_approx(),
          .lse = LseForm::log2,
          .delta_chain = p.output_dim(),
          .weight_format = p.element_type,
          .dscore_format = p.element_type,
          .dq_chain = keys,
          .dq_parts = keys / terms_of_a_step,
          .kv_chain = rows,
          .kv_tiles = rows / terms_of_a_step,
          .kv_parts = group * (rows / terms_of_a_step),
          .kv_part_format = group > 1 ? p.element_type : ElementType::fp32,
          .output = p.element_type,
          .flushes_subnormals = true};
}

GradientRoundings fused_gradient_roundings(const Problem& problem, const Accumulation& products) {
  return {.forward = fused_precision(problem, products),
          .backward = fused_backward_roundings(problem, products),
          .product_format = problem.element_type};
}

}  // namespace attest
