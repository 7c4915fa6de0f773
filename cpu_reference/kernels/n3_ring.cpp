// N3, ring attention [Liu et al. 2023, arXiv 2310.01889; Zhu, ring-flash-attention; claims N3]:
// P ranks have a part of the tokens each.
//
// Idea
//   Queries stay. Keys and values go round the ring: in step s a rank attends to those of the rank
//   s places before it, and has sent them on already. After P steps every query has met every key.
// Merging
//   Normalise::at_the_end: a row's maximum, sum and unnormalised O go on from step to step in fp32,
//   as if the keys were tiles of one loop. Normalise::every_step: each step gives a finished O, in
//   the format of the inputs as a kernel for one GPU writes it, and its LSE; they are merged by
//   exp(LSE_p - M) at the end.
// Masking
//   By the positions of tokens in their sequence, whichever rank has them. Under a causal mask some
//   steps of a rank see nothing, and with fewer tokens than ranks some ranks have none: a part
//   without keys weighs nothing.

#include <cstring>

#include "core/attention/distribution.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/rank_rows.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// Keys and values that a rank holds for one step.
struct Visitors {
  RankRows rows;
  std::vector<std::byte> bytes;  ///< K [kv_heads, rows, head_dim], then V alike

  Visitors(const RankLaunch& r, std::int64_t owner)
      : rows(rows_of_rank(r.problem, Rows::keys, r.plan, owner)) {
    bytes.resize(k_bytes(r.problem) + v_bytes(r.problem));
  }
  [[nodiscard]] std::size_t k_bytes(const Problem& p) const { return bytes_of(p, p.head_dim); }
  [[nodiscard]] std::size_t v_bytes(const Problem& p) const { return bytes_of(p, p.output_dim()); }

 private:
  [[nodiscard]] std::size_t bytes_of(const Problem& p, std::int64_t columns) const {
    return static_cast<std::size_t>(p.kv_heads * rows.count() * columns) *
           format_of(p.element_type).size_bytes;
  }
};

Visitors own_keys(const RankLaunch& r) {
  Visitors own(r, r.rank);
  const std::size_t k = own.k_bytes(r.problem), v = own.v_bytes(r.problem);
  if (k > 0) std::memcpy(own.bytes.data(), r.k, k);
  if (v > 0) std::memcpy(own.bytes.data() + k, r.v, v);
  return own;
}

/// The result of one step for one row.
struct Part {
  std::vector<float> o;
  float lse = -std::numeric_limits<float>::infinity();
};

/// A query row between steps.
struct RowState {
  OnlineState carried;      ///< of all steps, or of one that is not finished
  std::vector<Part> parts;  ///< finished ones
};

void finish_step(const Problem& p, RowState& row) {
  Part part{.o = std::vector<float>(row.carried.acc.size())};
  part.lse = row.carried.finish(part.o);
  for (float& element : part.o) {
    element = static_cast<float>(round_to(p.element_type, static_cast<double>(element)));
  }
  row.parts.push_back(std::move(part));
  row.carried = OnlineState(p.output_dim());
}

/// O and LSE of a row from its parts.
float merge(std::span<const Part> parts, std::span<float> o) {
  float m = -std::numeric_limits<float>::infinity();
  for (const Part& part : parts) m = maximum(m, part.lse);
  float l = 0;
  std::vector<float> acc(o.size());
  for (const Part& part : parts) {
    if (part.lse == -std::numeric_limits<float>::infinity()) continue;
    const float weight = std::exp(part.lse - m);
    l += weight;
    for (std::size_t c = 0; c < acc.size(); ++c) acc[c] = std::fma(weight, part.o[c], acc[c]);
  }
  return finish_row(m, l, acc, o);
}

/// Adds the keys that visit to every row of the rank.
void attend(const RankLaunch& r, const Visitors& visitors, std::vector<RowState>& states) {
  const Problem& p = r.problem;
  const std::byte* const k = visitors.bytes.data();
  const std::byte* const v = k + visitors.k_bytes(p);
  const auto size = static_cast<std::ptrdiff_t>(format_of(p.element_type).size_bytes);
  std::vector<float> q(static_cast<std::size_t>(p.head_dim));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t kv_head = 0; kv_head < p.kv_heads; ++kv_head) {
      const RankKeys keys = rank_keys(p, visitors.rows, k, v, b, kv_head);
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        if (p.kv_head_of(h) != kv_head) continue;
        for (std::int64_t i = r.queries.starts[static_cast<std::size_t>(b)];
             i < r.queries.starts[static_cast<std::size_t>(b) + 1]; ++i) {
          const std::int64_t row = h * r.queries.count() + i;
          const std::int64_t token = r.queries.tokens[static_cast<std::size_t>(i)];
          read_row(r.q, row * p.head_dim * size, p.element_type, q);
          RowState& state = states[static_cast<std::size_t>(row)];
          add_keys(p, r.plan, keys, b, token, q, state.carried);
          if (r.plan.normalise == Normalise::every_step) finish_step(p, state);
        }
      }
    }
  }
}

void ring(const RankLaunch& r) {
  const Problem& p = r.problem;
  std::vector<RowState> states(static_cast<std::size_t>(p.query_heads * r.queries.count()),
                               {.carried = OnlineState(p.output_dim()), .parts = {}});
  Visitors visitors = own_keys(r);
  for (std::int64_t step = 0; step < r.ranks(); ++step) {
    const bool is_last = step + 1 == r.ranks();
    if (!is_last) r.send(r.neighbour(1), visitors.bytes);
    attend(r, visitors, states);
    if (is_last) break;
    Visitors next(r, r.neighbour(-1 - step));
    r.receive(r.neighbour(-1), next.bytes);
    visitors = std::move(next);
  }
  const auto size = static_cast<std::ptrdiff_t>(format_of(p.element_type).size_bytes);
  std::vector<float> o(static_cast<std::size_t>(p.output_dim()));
  for (std::size_t row = 0; row < states.size(); ++row) {
    r.lse[row] = r.plan.normalise == Normalise::every_step ? merge(states[row].parts, o)
                                                           : states[row].carried.finish(o);
    write_row(o, r.o, static_cast<std::ptrdiff_t>(row) * p.output_dim() * size, p.element_type);
  }
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::deferred;
  result.blocks = plan.ranks * tile_count(most_tokens(problem.key_len, plan.ranks), plan.key_tile);
  if (plan.normalise == Normalise::every_step) {
    result.splits = plan.ranks;
    result.merge = Merge::lse_pairs;
    result.partial_format = problem.element_type;
    result.normaliser_chain += plan.ranks;
  }
  return result;
}

std::vector<Plan> plans(const Problem& /*problem*/) {
  std::vector<Plan> list;
  for (const std::int64_t normalise : {Normalise::at_the_end, Normalise::every_step}) {
    for (const std::int64_t distribution :
         {Distribution::contiguous, Distribution::zigzag, Distribution::stripe}) {
      for (const std::int64_t ranks : {2, 3, 8}) {
        list.push_back({.key_tile = ranks == 3 ? 3 : 16,
                        .normalise = normalise,
                        .ranks = ranks,
                        .distribution = distribution});
      }
    }
  }
  list.push_back({.key_tile = 16,
                  .normalise = Normalise::at_the_end,
                  .ranks = 1,
                  .distribution = Distribution::contiguous});
  return list;
}

KernelInfo kernel() {
  KernelInfo info;
  info.name = "n3_ring";
  info.summary = "ranks in a ring, each with a part of the tokens; keys and values go round";
  info.source = "claims N3";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true, .value_dim = true, .lengths = true, .padding = true};
  info.precision = precision;
  info.plans = plans;
  info.launch = cpu_launch([](const Problem& problem, const Plan& plan, const Inputs& inputs) {
    return run_rank_group(problem, plan, inputs, ring);
  });
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
