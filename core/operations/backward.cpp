#include "core/operations/backward.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/dropout.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/gradient_tensors.hpp"
#include "core/operations/score_tensors.hpp"

namespace attest {
namespace {

/// No columns where it is not given.
Shape lse_gradient_shape(const Problem& problem) {
  Shape shape = lse_shape(problem);
  if (problem.lse_gradient == LseGradient::zero) shape[3] = 0;
  return shape;
}

double score(const Problem& problem, std::span<const float> q, std::span<const float> k) {
  double dot = 0;
  for (std::size_t c = 0; c < q.size(); ++c) dot += static_cast<double>(q[c]) * k[c];
  const double x = problem.scale * dot;
  return problem.softcap > 0 ? problem.softcap * std::tanh(x / problem.softcap) : x;
}

/// Factor of a weight by dropout.
double kept_factor(const Problem& problem, std::int64_t b, std::int64_t h, std::int64_t n,
                   std::int64_t key) {
  if (problem.dropout == 0) return 1;
  return keeps_weight(problem, b, h, n, key) ? 1 / (1 - static_cast<double>(problem.dropout)) : 0;
}

/// O and LSE of one row of the forward pass, in double, rounded once.
void attend(const Problem& problem, Inputs& inputs, std::int64_t b, std::int64_t h,
            std::int64_t n) {
  const std::int64_t kv_head = problem.kv_head_of(h);
  const std::vector<std::int64_t> keys = forward::keys_of_row(problem, inputs, b, h, n);
  const auto o = inputs[backward::o].row(b, h, n);
  float& lse = inputs[backward::lse].at(b, h, n, 0);
  std::ranges::fill(o, 0.0F);
  const double none = -std::numeric_limits<double>::infinity();
  const double sink =
      n < problem.query_len_of(b) ? double{forward::sink_of(problem, inputs, h)} : none;
  lse = static_cast<float>(sink);
  if (keys.empty()) return;
  std::vector<double> weights, sums(o.size(), 0.0);
  for (const std::int64_t key : keys) {
    weights.push_back(
        score(problem, inputs[backward::q].row(b, h, n), inputs[backward::k].row(b, kv_head, key)) +
        forward::alibi_of(problem, inputs, b, h, n, key) +
        forward::bias_of(problem, inputs, b, h, n, key));
  }
  const double maximum = std::max(sink, *std::ranges::max_element(weights));
  double total = std::exp(sink - maximum);
  for (std::size_t j = 0; j < keys.size(); ++j) {
    weights[j] = std::exp(weights[j] - maximum);
    total += weights[j];
    const auto v = inputs[backward::v].row(b, kv_head, keys[j]);
    const double kept = weights[j] * kept_factor(problem, b, h, n, keys[j]);
    for (std::size_t c = 0; c < sums.size(); ++c) sums[c] += kept * v[c];
  }
  const double limit = format_of(problem.element_type).max_finite;
  for (std::size_t c = 0; c < sums.size(); ++c) {
    const double x = std::clamp(sums[c] / total, -limit, limit);
    o[c] = static_cast<float>(round_to(problem.element_type, x));
  }
  lse = static_cast<float>(maximum + std::log(total));
}

void complete(const Problem& problem, Inputs& inputs) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) attend(problem, inputs, b, h, n);
    }
  }
}

/// Five products: S, dS and their three uses.
double flops(const Problem& problem) {
  return product_flops(problem, 3, 2);
}

constexpr TensorSpec bias_gradient() {
  TensorSpec bias = whole_output("dbias", "dbias", bias_shape, fp32_format);
  bias.is_of_pairs = true;
  return bias;
}

constexpr std::array<TensorSpec, 15> tensors{
    {q_tensor,
     k_tensor,
     v_tensor,
     {.name = "o", .label = "O", .shape = output_shape, .format = format_of_problem},
     given_numbers("lse", "LSE", lse_shape),
     do_tensor,
     given_numbers("dlse", "dLSE", lse_gradient_shape),
     sinks_tensor,
     slopes_tensor,
     bias_tensor,
     dq_tensor,
     dk_tensor,
     dv_tensor,
     whole_output("dsinks", "dsinks", sinks_shape, fp32_format),
     bias_gradient()}};

}  // namespace

Problem backward::forward_problem(const Problem& problem) {
  Problem forward = problem;
  forward.operation = &forward_operation;
  forward.lse_gradient = LseGradient::zero;  // goes back, and not forward
  return forward;
}

Inputs backward::forward_inputs(const Problem& problem, const Inputs& inputs) {
  Inputs of_forward{inputs[backward::q], inputs[backward::k], inputs[backward::v]};
  of_forward[forward::sinks] = inputs[backward::sinks];
  of_forward[forward::slopes] = inputs[backward::slopes];
  of_forward[forward::bias] = inputs[backward::bias];
  return of_forward;
}

constinit const Operation backward_operation{
    .name = "backward",
    .summary = "dQ, dK and dV of attention from Q, K, V, O, LSE, dO and dLSE",
    .tensors = tensors,
    .extends = &forward_operation,
    .complete = complete,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{backward_operation};
}  // namespace

}  // namespace attest
