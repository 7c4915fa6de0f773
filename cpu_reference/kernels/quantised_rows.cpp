// Quantised attention row by row [claims N2]: any codes, scales by head, block or row, and of V by
// column.
//
// Idea
//   It is there to be read and to be broken: bugs of scales and codes are planted in it. Products
//   of codes are formed in fp32 as they are; what a row of Q and a row of K are scaled by
//   multiplies their score, what a row of V is scaled by multiplies the row, and what its columns
//   are scaled by multiplies O.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/quantiser.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// True if all rows of a head share the scale of a column.
bool is_common(Scales scales) {
  return scales == Scales::head || scales == Scales::column;
}

/// One row of queries.
struct QueryRow {
  std::int64_t b, h, kv_head, n;
};

float score_of(const Problem& p, const Inputs& inputs, const QueryRow& row, std::int64_t key) {
  const auto q = inputs[quantised::q].row(row.b, row.h, row.n);
  const auto k = inputs[quantised::k].row(row.b, row.kv_head, key);
  float score = 0;
  for (std::size_t c = 0; c < q.size(); ++c) score = std::fma(q[c], k[c], score);
  score *= scale_of(inputs[quantised::q_scale], p.codes.q_scales, row.b, row.h, row.n, 0);
  score *= scale_of(inputs[quantised::k_scale], p.codes.k_scales, row.b, row.kv_head, key, 0);
  score *= p.scale;
  return p.softcap != 0 ? p.softcap * std::tanh(score / p.softcap) : score;
}

/// acc += weight * v.
void add_value(const Problem& p, const Inputs& inputs, const QueryRow& row, std::int64_t key,
               float weight, std::vector<float>& acc) {
  const auto v = inputs[quantised::v].row(row.b, row.kv_head, key);
  const Scales kind = p.codes.v_scales;
  const float of_row =
      is_common(kind) ? 1 : scale_of(inputs[quantised::v_scale], kind, row.b, row.kv_head, key, 0);
  for (std::size_t c = 0; c < v.size(); ++c) acc[c] = std::fma(weight, v[c] * of_row, acc[c]);
}

float attend(const Problem& p, const Inputs& inputs, const QueryRow& row, std::span<float> o) {
  constexpr float minus_inf = -std::numeric_limits<float>::infinity();
  const std::vector<std::int64_t> keys = visible_keys_of(p, row.b, row.n);
  std::vector<float> scores;
  for (const std::int64_t key : keys) scores.push_back(score_of(p, inputs, row, key));
  const float m = maximum(scores);
  std::vector<float> acc(o.size(), 0.0F);
  float l = 0;
  for (std::size_t j = 0; j < keys.size() && m != minus_inf; ++j) {
    const float weight = std::exp(scores[j] - m);
    l += weight;
    add_value(p, inputs, row, keys[j], weight, acc);
  }
  const float lse = finish_row(m, l, acc, o);
  for (std::size_t c = 0; c < o.size() && is_common(p.codes.v_scales); ++c) {
    o[c] *= scale_of(inputs[quantised::v_scale], p.codes.v_scales, row.b, row.kv_head, 0,
                     static_cast<std::int64_t>(c));
  }
  return lse;
}

Outputs attend_all(const Problem& p, const Plan& /*plan*/, const Inputs& inputs) {
  Outputs outputs{Tensor<float>(output_shape(p)), Tensor<float>(lse_shape(p))};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len_of(b); ++n) {
        outputs[quantised::lse].at(b, h, n, 0) =
            attend(p, inputs, {b, h, p.kv_head_of(h), n}, outputs[quantised::o].row(b, h, n));
      }
    }
  }
  return outputs;
}

PrecisionPlan precision(const Problem& problem, const Plan& /*plan*/) {
  PrecisionPlan result = row_precision(problem);
  result.score_scalings = 2;
  result.value_scalings = 1;
  result.softcap_error = 6 * fp32_roundoff;  // as m6_every_shape
  return result;
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &quantised_operation;
  info.name = "quantised_rows";
  info.summary = "codes and scales of every kind, row by row in fp32";
  info.source = "claims N2";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true,
                   .value_dim = true,
                   .softcap = true,
                   .lengths = true,
                   .padding = true,
                   .ue8m0_scales = true};
  info.layout_needs.pages = Pages::also;
  const std::vector<Code> codes{Code::none, Code::e4m3, Code::e5m2,
                                Code::int8, Code::e2m1, Code::int4};
  const std::vector<Scales> by_row{Scales::none, Scales::head, Scales::block, Scales::row};
  info.codes = {
      .q = codes,
      .k = codes,
      .v = codes,
      .q_scales = by_row,
      .k_scales = by_row,
      .v_scales = {Scales::none, Scales::head, Scales::block, Scales::row, Scales::column}};
  info.precision = precision;
  info.plans = no_plan_choice;
  info.launch = cpu_launch(attend_all);
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
