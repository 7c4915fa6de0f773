#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "core/attention/problem.hpp"
#include "core/attention/shared_bias.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/backward/gradient_terms.hpp"
#include "cpu_reference/forward/added_to_score.hpp"

namespace attest {

/// Adds x.y, and its absolute sum.
template <class Number>
void add_products(std::span<const float> x, std::span<const float> y, Number& sum,
                  Number& absolute) {
  for (std::size_t c = 0; c < x.size(); ++c) {
    // 24 + 24 significant bits: the product is exact in double.
    const double product = static_cast<double>(x[c]) * static_cast<double>(y[c]);
    sum += product;
    absolute += std::abs(product);
  }
}

/// Takes dLSE, where it is given, from the row's delta.
template <class Number>
void take_lse_gradient(const Inputs& inputs, std::int64_t b, std::int64_t h, std::int64_t query,
                       SavedRow<Number>& row) {
  for (const float x : inputs[backward::d_lse].row(b, h, query)) {
    row.delta -= x;
    row.absolute_delta += std::abs(x);
  }
}

/// LSE and delta of a row by the O and LSE that are given; h is a query head.
template <class Number>
[[nodiscard]] SavedRow<Number> given_row(const Inputs& inputs, std::int64_t b, std::int64_t h,
                                         std::int64_t query) {
  SavedRow<Number> row{inputs[backward::lse].at(b, h, query, 0), 0, 0};
  add_products(inputs[backward::d_o].row(b, h, query), inputs[backward::o].row(b, h, query),
               row.delta, row.absolute_delta);
  take_lse_gradient(inputs, b, h, query, row);
  return row;
}

/// A pair that the row sees, by the definition (core/operations/backward.hpp). Number: double, or a
/// multiprecision type of 113 bits and more. What is not finite makes what it enters NaN or
/// infinite.
template <class Number>
[[nodiscard]] GradientPair<Number> gradient_pair(const Problem& problem, const Inputs& inputs,
                                                 std::int64_t b, std::int64_t h, std::int64_t query,
                                                 std::int64_t key, const SavedRow<Number>& row) {
  const std::int64_t kv_head = problem.kv_head_of(h);
  GradientPair<Number> pair{};
  add_products(inputs[backward::q].row(b, h, query), inputs[backward::k].row(b, kv_head, key),
               pair.x, pair.absolute_x);
  add_products(inputs[backward::d_o].row(b, h, query), inputs[backward::v].row(b, kv_head, key),
               pair.g, pair.absolute_g);
  const auto added = added_to_score<Number>(problem, inputs, b, h, query, key);
  pair.added = added.sum;
  pair.absolute_added = added.magnitude;
  pair.kept = kept_factor<Number>(problem, b, h, query, key);
  return pair_of_products(problem, pair, row);
}

/// dQ of row (b, h, query), with `row` = given_row() or an exact one: 0 where it sees no key.
template <class Number>
[[nodiscard]] std::vector<Number> oracle_dq(const Problem& problem, const Inputs& inputs,
                                            std::int64_t b, std::int64_t h, std::int64_t query,
                                            const SavedRow<Number>& row) {
  std::vector<Number> dq(static_cast<std::size_t>(problem.head_dim), Number(0));
  for (const std::int64_t key : forward::keys_of_row(problem, inputs, b, h, query)) {
    const auto pair = gradient_pair(problem, inputs, b, h, query, key, row);
    const auto k = inputs[backward::k].row(b, problem.kv_head_of(h), key);
    for (std::size_t c = 0; c < dq.size(); ++c) dq[c] += problem.scale * pair.tau * k[c];
  }
  return dq;
}

/// dsink of a query head; `row_of(b, query)` gives the rows' SavedRow.
template <class Number, class RowOf>
[[nodiscard]] Number oracle_dsink(const Problem& problem, const Inputs& inputs, std::int64_t h,
                                  const RowOf& row_of) {
  using std::exp;
  const float sink = forward::sink_of(problem, inputs, h);
  Number dsink = 0;
  if (sink == -std::numeric_limits<float>::infinity()) return dsink;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t query = 0; query < problem.query_len_of(b); ++query) {
      const SavedRow<Number> row = row_of(b, query);
      dsink -= exp(Number(sink - row.lse)) * row.delta;
    }
  }
  return dsink;
}

/// Entries and query heads that share the elements (b, h) of a bias.
struct BiasSharers {
  KeyRange entries, heads;
};
[[nodiscard]] inline BiasSharers sharers_of_bias(const Problem& problem, std::int64_t b,
                                                 std::int64_t h) {
  return {entries_share_bias(problem) ? KeyRange{0, problem.batch} : KeyRange{b, b + 1},
          heads_share_bias(problem) ? KeyRange{0, problem.query_heads} : KeyRange{h, h + 1}};
}

/// Row (b, h, query) of dbias; `row_of(b, h, query)` gives the rows' SavedRow.
template <class Number, class RowOf>
[[nodiscard]] std::vector<Number> oracle_dbias(const Problem& problem, const Inputs& inputs,
                                               std::int64_t b, std::int64_t h, std::int64_t query,
                                               const RowOf& row_of) {
  std::vector<Number> dbias(static_cast<std::size_t>(problem.key_len), Number(0));
  const BiasSharers shared = sharers_of_bias(problem, b, h);
  for (std::int64_t entry = shared.entries.begin; entry < shared.entries.end; ++entry) {
    for (std::int64_t head = shared.heads.begin; head < shared.heads.end; ++head) {
      const SavedRow<Number> row = row_of(entry, head, query);
      for (const std::int64_t key : forward::keys_of_row(problem, inputs, entry, head, query)) {
        const auto pair = gradient_pair(problem, inputs, entry, head, query, key, row);
        dbias[static_cast<std::size_t>(key)] += pair.p * pair.r;
      }
    }
  }
  return dbias;
}

/// dK and dV of one key: 0 where no row sees it.
template <class Number>
struct KeyGradients {
  std::vector<Number> dk, dv;
};

/// `row_of(h, query)` gives the rows' SavedRow.
template <class Number, class RowOf>
[[nodiscard]] KeyGradients<Number> oracle_of_key(const Problem& problem, const Inputs& inputs,
                                                 std::int64_t b, std::int64_t kv_head,
                                                 std::int64_t key, const RowOf& row_of) {
  KeyGradients<Number> sums{
      std::vector<Number>(static_cast<std::size_t>(problem.head_dim), Number(0)),
      std::vector<Number>(static_cast<std::size_t>(problem.output_dim()), Number(0))};
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
    for (std::int64_t query = 0; query < problem.query_len; ++query) {
      if (!forward::sees(problem, inputs, b, h, query, key)) continue;
      const SavedRow<Number> row = row_of(h, query);
      const auto pair = gradient_pair(problem, inputs, b, h, query, key, row);
      const auto q = inputs[backward::q].row(b, h, query);
      const auto gradient = inputs[backward::d_o].row(b, h, query);
      for (std::size_t c = 0; c < q.size(); ++c) sums.dk[c] += problem.scale * pair.tau * q[c];
      for (std::size_t c = 0; c < gradient.size(); ++c)
        sums.dv[c] += pair.p * pair.kept * gradient[c];
    }
  }
  return sums;
}

}  // namespace attest
