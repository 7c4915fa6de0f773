// FlashAttention-2's backward pass: key tiles outside, query tiles inside [FA2, algorithm 2].
//
// Idea
//   P is formed again from LSE, tile by tile, so that no matrix of N x N is kept. dK and dV of a
//   key tile stay where they are summed; dQ of each query tile lies in memory, in fp32, and every
//   key tile adds its part. P and dS are rounded to the element type, as tensor cores read them.
// Masking
//   A query tile none of whose rows sees a key of the tile by position is skipped. A pair that is
//   not seen adds nothing.
#include <algorithm>
#include <limits>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/parts.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/backward_rows.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// A query head, and dQ as it is summed in memory.
struct QueryHead {
  std::int64_t number;
  HeadTensor q, gradient, dq;
  std::vector<float> delta;

  QueryHead(const BackwardRows& rows, std::int64_t h)
      : number(h), q(rows.q(h)), gradient(rows.gradient(h)), dq(rows.queries(), q.columns) {
    const HeadTensor o = rows.o(h);
    for (std::int64_t n = 0; n < rows.queries(); ++n) {
      delta.push_back(dot(gradient.row(n), o.row(n)) - rows.lse_gradient(h, n));
    }
  }
};

/// One KV head of an entry, and the query heads that share it.
class HeadGroup {
 public:
  HeadGroup(const BackwardArguments& a, const BackwardRows& rows, std::int64_t kv_head)
      : a_(a),
        rows_(rows),
        kv_head_(kv_head),
        k_(rows.k(kv_head)),
        v_(rows.v(kv_head)),
        k_columns_(k_.transposed()),
        v_columns_(v_.transposed()),
        dk_(rows.keys(), k_.columns),
        dv_(rows.keys(), v_.columns) {
    const std::int64_t group = a.problem.query_heads / a.problem.kv_heads;
    for (std::int64_t i = 0; i < group; ++i) heads_.emplace_back(rows, kv_head * group + i);
  }

  void run() {
    const std::int64_t key_tile = a_.plan.key_tile, query_tile = a_.plan.query_tile;
    for (std::int64_t key = 0; key < rows_.keys(); key += key_tile) {
      const KeyRange keys{key, std::min(key + key_tile, rows_.keys())};
      for (QueryHead& head : heads_) {
        for (std::int64_t n = 0; n < rows_.queries(); n += query_tile) {
          add_tile(head, n, std::min(n + query_tile, rows_.queries()), keys);
        }
      }
    }
    for (QueryHead& head : heads_) {
      for (float& x : head.dq.values) x *= a_.problem.scale;
      rows_.write_dq(head.number, head.dq);
    }
    for (float& x : dk_.values) x *= a_.problem.scale;
    rows_.write_dk(kv_head_, dk_);
    rows_.write_dv(kv_head_, dv_);
  }

  /// Adds what the entry's rows give to the gradients of the heads' sinks.
  void add_to_sinks(std::vector<float>& d_sinks) const {
    for (const QueryHead& head : heads_) {
      const float sink = a_.sinks[head.number];
      // It is none, and so is the LSE of a row without keys: their difference would be NaN.
      if (sink == -std::numeric_limits<float>::infinity()) continue;
      float& sum = d_sinks[static_cast<std::size_t>(head.number)];
      for (std::int64_t row = 0; row < rows_.queries(); ++row) {
        const float p = std::exp(sink - rows_.lse(head.number, row));
        sum -= p * head.delta[static_cast<std::size_t>(row)];
      }
    }
  }

 private:
  void add_tile(QueryHead& head, std::int64_t first, std::int64_t past, KeyRange keys) {
    // Neither end of what a row sees falls from row to row.
    const bool is_seen =
        rows_.keys_of(past - 1).end > keys.begin && rows_.keys_of(first).begin < keys.end;
    if (!is_seen) return;
    for (std::int64_t n = first; n < past; ++n) {
      HeadTensor part(1, head.q.columns);
      const KeyRange range = rows_.keys_of(n);
      const std::vector<float> scores = dots(head.q.row(n), k_columns_, keys);
      const std::vector<float> products = dots(head.gradient.row(n), v_columns_, keys);
      for (std::int64_t j = keys.begin; j < keys.end; ++j) {
        if (!range.holds(j) || rows_.is_hidden(n, j)) continue;
        const float bias = rows_.bias(head.number, n, j);
        if (bias == -std::numeric_limits<float>::infinity()) continue;  // it hides the key
        const auto i = static_cast<std::size_t>(j - keys.begin);
        const PairWeights pair =
            pair_weights(a_.problem, a_.problem.element_type, scores[i], products[i],
                         rows_.lse(head.number, n), head.delta[static_cast<std::size_t>(n)],
                         {.alibi = rows_.alibi(head.number, n, j),
                          .bias = bias,
                          .kept = rows_.kept(head.number, n, j)});
        if (a_.d_bias != nullptr) rows_.add_to_bias(pair.dbias, head.number, n, j);
        add_row(pair.p, head.gradient.row(n), dv_.row(j));
        add_row(pair.ds, head.q.row(n), dk_.row(j));
        add_row(pair.ds, k_.row(j), part.row(0));
      }
      for (std::size_t c = 0; c < part.values.size(); ++c) head.dq.row(n)[c] += part.values[c];
    }
  }

  const BackwardArguments& a_;
  const BackwardRows& rows_;
  std::int64_t kv_head_;
  HeadTensor k_, v_, k_columns_, v_columns_, dk_, dv_;
  std::vector<QueryHead> heads_;
};

/// Pairs that no row sees keep it.
void clear_bias_gradient(const BackwardArguments& a) {
  const Problem& p = a.problem;
  const std::int64_t entries = entries_share_bias(p) ? 1 : p.batch;
  const std::int64_t heads = heads_share_bias(p) ? 1 : p.query_heads;
  std::fill_n(a.d_bias, entries * heads * p.query_len * p.key_len, 0.0F);
}

void launch(const BackwardArguments& a, Device& /*device*/) {
  if (a.d_bias != nullptr) clear_bias_gradient(a);
  // In no order that could hide a row written twice, as the blocks of a grid.
  std::vector<float> d_sinks(static_cast<std::size_t>(a.problem.query_heads), 0.0F);
  for (std::int64_t b = a.problem.batch - 1; b >= 0; --b) {
    const BackwardRows rows(a, b);
    for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) {
      HeadGroup group(a, rows, h);
      group.run();
      if (a.sinks != nullptr) group.add_to_sinks(d_sinks);
    }
  }
  if (a.sinks != nullptr) std::ranges::copy(d_sinks, a.d_sinks);
}

BackwardRoundings precision(const Problem& problem, const Plan& plan) {
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  return {.softcap_error = 6 * fp32_roundoff,
          .delta_chain = problem.output_dim(),
          .weight_format = problem.element_type,
          .dscore_format = problem.element_type,
          .dq_chain = plan.key_tile,
          .dq_parts = tile_count(problem.key_len, plan.key_tile),
          .kv_chain = std::max<std::int64_t>(1, problem.query_len * group),
          .output = problem.element_type};
}

std::vector<Plan> plans(const Problem&) {
  return {{.query_tile = 1, .key_tile = 1},
          {.query_tile = 4, .key_tile = 8},
          {.query_tile = 16, .key_tile = 32},
          {.query_tile = 64, .key_tile = 16}};
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &backward_operation;
  info.name = "backward_tiled";
  info.summary = "gradients tile by tile, P and dS in the element type, dQ summed in memory";
  info.source = "claims B1, B2 [FA2]";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true,
                   .value_dim = true,
                   .softcap = true,
                   .lengths = true,
                   .padding = true,
                   .lse_gradient = true,
                   .sinks = true,
                   .slopes = true,
                   .bias = true,
                   .prefix = true,
                   .documents = true,
                   .lists = true,
                   .dropout = true};
  info.precision = precision;
  info.plans = plans;
  info.launch = launch;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
