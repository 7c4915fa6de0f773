// Standard attention's backward pass, head by head, with P and dS as whole matrices in fp32.
//
// Idea
//   The five products as they are written down: S = Q K^T and dP = dO V^T give P and dS, then
//   dV = P^T dO, dQ = scale dS K, dK = scale dS^T Q. Query heads that share a KV head follow each
//   other, so that a key's sums are one chain over all their rows.
#include "core/attention/backward_roundings.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/backward_rows.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// K and V of one head, row by row and column by column.
struct KeyHead {
  HeadTensor k, v, k_columns, v_columns;

  KeyHead(const BackwardRows& rows, std::int64_t kv_head)
      : k(rows.k(kv_head)),
        v(rows.v(kv_head)),
        k_columns(k.transposed()),
        v_columns(v.transposed()) {}
};

/// Adds what one query head gives dK and dV of its KV head; writes its dQ.
void add_head(const BackwardArguments& a, const BackwardRows& rows, std::int64_t h,
              const KeyHead& keys, HeadTensor& dk, HeadTensor& dv) {
  const HeadTensor q = rows.q(h), o = rows.o(h), gradient = rows.gradient(h);
  HeadTensor dq(rows.queries(), q.columns);
  HeadTensor p(rows.queries(), rows.keys()), ds(rows.queries(), rows.keys());
  const auto for_each_pair = [&](const auto& visit) {
    for (std::int64_t n = 0; n < rows.queries(); ++n) {
      const KeyRange range = rows.keys_of(n);
      for (std::int64_t j = range.begin; j < range.end; ++j) {
        if (!rows.is_hidden(n, j)) visit(n, j);
      }
    }
  };
  for (std::int64_t n = 0; n < rows.queries(); ++n) {
    const KeyRange all{0, rows.keys()};
    std::ranges::copy(dots(q.row(n), keys.k_columns, all), p.row(n).begin());
    std::ranges::copy(dots(gradient.row(n), keys.v_columns, all), ds.row(n).begin());
  }
  std::vector<float> delta;
  for (std::int64_t n = 0; n < rows.queries(); ++n) {
    delta.push_back(dot(gradient.row(n), o.row(n)) - rows.lse_gradient(h, n));
  }
  for_each_pair([&](std::int64_t n, std::int64_t j) {
    float& score = p.row(n)[static_cast<std::size_t>(j)];
    float& product = ds.row(n)[static_cast<std::size_t>(j)];
    const PairWeights pair = pair_weights(a.problem, ElementType::fp32, score, product,
                                          rows.lse(h, n), delta[static_cast<std::size_t>(n)]);
    score = pair.p;
    product = pair.ds;
  });
  for_each_pair([&](std::int64_t n, std::int64_t j) {
    add_row(p.row(n)[static_cast<std::size_t>(j)], gradient.row(n), dv.row(j));
    add_row(ds.row(n)[static_cast<std::size_t>(j)], keys.k.row(j), dq.row(n));
    add_row(ds.row(n)[static_cast<std::size_t>(j)], q.row(n), dk.row(j));
  });
  for (float& x : dq.values) x *= a.problem.scale;
  rows.write_dq(h, dq);
}

void launch(const BackwardArguments& a, Device& /*device*/) {
  const Problem& p = a.problem;
  const std::int64_t group = p.query_heads / p.kv_heads;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const BackwardRows rows(a, b);
    for (std::int64_t kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      const KeyHead keys(rows, kv_head);
      HeadTensor dk(rows.keys(), keys.k.columns), dv(rows.keys(), keys.v.columns);
      for (std::int64_t i = 0; i < group; ++i) {
        add_head(a, rows, kv_head * group + i, keys, dk, dv);
      }
      for (float& x : dk.values) x *= p.scale;
      rows.write_dk(kv_head, dk);
      rows.write_dv(kv_head, dv);
    }
  }
}

BackwardRoundings precision(const Problem& problem, const Plan&) {
  return {.softcap_error = 6 * fp32_roundoff,
          .delta_chain = problem.output_dim(),
          .dq_chain = std::max<std::int64_t>(1, problem.key_len),
          .kv_chain = std::max<std::int64_t>(
              1, problem.query_len * (problem.query_heads / problem.kv_heads)),
          .output = problem.element_type};
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &backward_operation;
  info.name = "backward_standard";
  info.summary = "gradients by five products over whole matrices, P and dS in fp32";
  info.source = "claims B1, B2";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true,
                   .value_dim = true,
                   .softcap = true,
                   .lengths = true,
                   .padding = true,
                   .lse_gradient = true};
  info.precision = precision;
  info.plans = no_plan_choice;
  info.launch = launch;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
