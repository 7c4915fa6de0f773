// M6, rows one by one in every shape and under every mask that a Problem has [claims M5, M6, N1,
// O6]: windows, softcap, padding, entries with lengths of their own, V with columns of its own,
// query heads packed into rows; ALiBi, a bias, sinks, prefixes, documents and lists of keys; a gate
// and a residual of O [claim N7].
//
// Idea
//   It is there to be read and to be broken: bugs of shapes and masks are planted in it. Lengths
//   come from cu_seqlens and padding from the key mask, as in a kernel for users. The keys of a row
//   are cut into `key_splits` parts, walked in tiles and merged at the end; a tile of query_tile
//   rows visits the key tiles that some of its rows see.
// Legend
//   entry b has queries [queries.first, + queries.count) and keys likewise, in rows of tensor batch
//   `at`: b, or 0 where entries are packed.
// Masking
//   A hidden key has score -inf; OnlineState does not read its value. Tiles without a visible key
//   by position are not visited.

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/attention/dropout.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/online_softmax_rows.hpp"
#include "cpu_reference/kernels/entry_keys.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

namespace attest {
namespace {

/// Element (entry, head, row n) of a tensor in memory.
std::ptrdiff_t place(const Strides& strides, const EntryRows& rows, std::int64_t h, std::int64_t n,
                     ElementType type) {
  return strides.offset(rows.at, h, rows.first + n) *
         static_cast<std::ptrdiff_t>(format_of(type).size_bytes);
}

/// Keys and values of one head of one entry.
struct HeadKeys {
  EntryRows rows;
  std::vector<float> keys;    ///< [head_dim, count]
  std::vector<float> values;  ///< [count, output_dim]
  std::vector<bool> hidden;   ///< by padding
};

HeadKeys head_keys(const ForwardArguments& a, std::int64_t b, std::int64_t h) {
  const Problem& p = a.problem;
  HeadKeys head{.rows = entry_rows(a.key_starts, b, p.key_len, a.key_lengths),
                .keys = {},
                .values = {},
                .hidden = {}};
  const std::int64_t count = head.rows.count, columns = p.output_dim();
  head.keys.resize(static_cast<std::size_t>(p.head_dim * count));
  head.values.resize(static_cast<std::size_t>(count * columns));
  std::vector<float> key(static_cast<std::size_t>(p.head_dim));
  for (std::int64_t j = 0; j < count; ++j) {
    read_row(a.k, place(a.k_strides, head.rows, h, j, p.element_type), p.element_type, key);
    for (std::int64_t d = 0; d < p.head_dim; ++d) {
      head.keys[static_cast<std::size_t>(d * count + j)] = key[static_cast<std::size_t>(d)];
    }
    read_row(
        a.v, place(a.v_strides, head.rows, h, j, p.element_type), p.element_type,
        std::span(head.values)
            .subspan(static_cast<std::size_t>(j * columns), static_cast<std::size_t>(columns)));
    head.hidden.push_back(a.key_mask != nullptr && a.key_mask[b * p.key_len + j] == 0);
  }
  return head;
}

/// What one row does to its scores after the softcap.
struct RowTerms {
  const float* bias = nullptr;  ///< a number a key; null: none
  bool has_slope = false;
  float slope = 0;
  std::int64_t diagonal = 0;   ///< the key at a distance of 0
  std::vector<float> factors;  ///< of the weights in O, one a key; empty: 1
  std::vector<bool> listed;    ///< keys that the row's list names; empty: there are no lists
};

RowTerms terms_of_row(const ForwardArguments& a, std::int64_t queries, std::int64_t keys,
                      std::int64_t b, std::int64_t h, std::int64_t n) {
  RowTerms terms;
  if (a.bias != nullptr) terms.bias = a.bias + a.bias_strides.offset(b, h, n);
  if (a.slopes != nullptr) {
    terms.has_slope = true;
    terms.slope = a.slopes[h];
    terms.diagonal = -key_distance(a.problem.mask, queries, keys, n, 0);
  }
  if (a.key_lists.is_used()) terms.listed = listed_keys(a.key_lists, keys, b, n);
  if (a.problem.dropout > 0) {
    const float kept = kept_scale(a.problem);
    for (std::int64_t key = 0; key < keys; ++key) {
      terms.factors.push_back(keeps_weight(a.problem, b, h, n, key) ? kept : 0.0F);
    }
  }
  return terms;
}

/// Scores of keys [first, first + scores.size()), those that the row does not see being -inf.
void score_tile(const Problem& p, const HeadKeys& head, std::span<const float> query,
                const KeyRange& range, const RowTerms& terms, std::int64_t first,
                std::span<float> scores) {
  std::ranges::fill(scores, 0.0F);
  multiply_accumulate(query, head.keys.data() + first, head.rows.count, scores);
  for (std::size_t i = 0; i < scores.size(); ++i) {
    const std::int64_t key = first + static_cast<std::int64_t>(i);
    scores[i] *= p.scale;
    if (p.softcap != 0) scores[i] = p.softcap * std::tanh(scores[i] / p.softcap);
    if (terms.has_slope) {
      scores[i] -= terms.slope * static_cast<float>(std::abs(key - terms.diagonal));
    }
    if (terms.bias != nullptr) scores[i] += terms.bias[key];
    const bool is_seen = range.holds(key) && !head.hidden[static_cast<std::size_t>(key)];
    if (!is_seen) scores[i] = -std::numeric_limits<float>::infinity();
    const bool is_listed = terms.listed.empty() || terms.listed[static_cast<std::size_t>(key)];
    if (!is_listed) scores[i] = -std::numeric_limits<float>::infinity();
  }
}

/// Rows of one tile: those of `heads` query heads from `first_head` on, row r being query r / heads
/// of head first_head + r % heads.
struct RowTile {
  std::int64_t first_head = 0, heads = 1;
  std::int64_t begin = 0, end = 0;
  KeyRange visited;  ///< keys that some of the rows see, as neither end falls with the query
};

/// The keys of `part` that a row sees, in the tiles that its row tile visits.
OnlineState attend_part(const Problem& p, std::int64_t tile, const HeadKeys& head,
                        std::span<const float> query, const KeyRange& range, const RowTerms& terms,
                        const KeyRange& visited, const KeyRange& part) {
  OnlineState state(p.output_dim());
  const std::int64_t columns = p.output_dim();
  const std::int64_t begin = std::max(visited.begin / tile * tile, part.begin);
  const std::int64_t end = std::min(visited.end, part.end);
  for (std::int64_t first = begin; first < end; first += tile) {
    std::vector<float> scores(static_cast<std::size_t>(std::min(tile, end - first)));
    score_tile(p, head, query, range, terms, first, scores);
    state.update(scores, head.values.data() + first * columns,
                 terms.factors.empty() ? nullptr : terms.factors.data() + first);
  }
  return state;
}

/// Multiplies O of a row by its gate and adds its residual, in fp32, before O is rounded.
void apply_epilogue(const ForwardArguments& a, const EntryRows& queries, std::int64_t h,
                    std::int64_t n, std::span<float> o) {
  const ElementType type = a.problem.element_type;
  std::vector<float> operand(o.size());
  if (a.gate != nullptr) {
    read_row(a.gate, place(a.gate_strides, queries, h, n, type), type, operand);
    for (std::size_t c = 0; c < o.size(); ++c) o[c] *= operand[c];
  }
  if (a.residual != nullptr) {
    read_row(a.residual, place(a.residual_strides, queries, h, n, type), type, operand);
    for (std::size_t c = 0; c < o.size(); ++c) o[c] += operand[c];
  }
}

void attend_tile(const ForwardArguments& a, std::int64_t b, const EntryRows& queries,
                 const HeadKeys& head, RowTile tile) {
  const Problem& p = a.problem;
  const auto keys_of = [&](std::int64_t n) {
    return with_prefix_and_document(
        a, b, head.rows.count, n,
        visible_range(p.mask, p.window, queries.count, head.rows.count, n));
  };
  tile.visited = {keys_of(tile.begin / tile.heads).begin, keys_of((tile.end - 1) / tile.heads).end};
  const std::int64_t total = a.query_starts == nullptr ? p.query_len : a.query_starts[p.batch];
  std::vector<float> query(static_cast<std::size_t>(p.head_dim));
  std::vector<float> o(static_cast<std::size_t>(p.output_dim()));
  const std::vector<float> no_value(o.size(), 0.0F);
  for (std::int64_t r = tile.begin; r < tile.end; ++r) {
    const std::int64_t n = r / tile.heads, h = tile.first_head + r % tile.heads;
    read_row(a.q, place(a.q_strides, queries, h, n, p.element_type), p.element_type, query);
    const KeyRange range = keys_of(n);
    const RowTerms terms = terms_of_row(a, queries.count, head.rows.count, b, h, n);
    OnlineState state(p.output_dim());
    for (std::int64_t i = 0; i < a.plan.key_splits; ++i) {
      const KeyRange part = split_range(head.rows.count, a.plan.key_tile, a.plan.key_splits, i);
      state.merge(attend_part(p, a.plan.key_tile, head, query, range, terms, tile.visited, part));
    }
    // One more key, whose value is 0.
    if (a.sinks != nullptr) state.update({&a.sinks[h], 1}, no_value.data());
    const float lse = state.finish(o);
    apply_epilogue(a, queries, h, n, o);
    write_row(o, a.o, place(a.o_strides, queries, h, n, p.element_type), p.element_type);
    a.lse[(queries.at * p.query_heads + h) * total + queries.first + n] = lse;
  }
}

/// The query heads that use one kv head, together or one after the other.
void attend_group(const ForwardArguments& a, std::int64_t b, std::int64_t kv_head) {
  const Problem& p = a.problem;
  const EntryRows queries = entry_rows(a.query_starts, b, p.query_len, a.query_lengths);
  if (queries.count == 0) return;
  const HeadKeys head = head_keys(a, b, kv_head);
  const std::int64_t group = p.query_heads / p.kv_heads;
  const std::int64_t heads = a.plan.pack_gqa == PackGqa::yes ? group : 1;
  const std::int64_t rows = heads * queries.count;
  for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; h += heads) {
    for (std::int64_t begin = 0; begin < rows; begin += a.plan.query_tile) {
      attend_tile(a, b, queries, head,
                  {.first_head = h,
                   .heads = heads,
                   .begin = begin,
                   .end = std::min(begin + a.plan.query_tile, rows),
                   .visited = {}});
    }
  }
}

void launch(const ForwardArguments& a, Device& /*device*/) {
  // In no order that could hide a row written twice, as the blocks of a grid.
  for (std::int64_t b = a.problem.batch - 1; b >= 0; --b) {
    for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) attend_group(a, b, h);
  }
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::deferred;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  result.splits = plan.key_splits;
  result.merge = Merge::sums;
  result.normaliser_chain += plan.key_splits;
  // Division and product one roundoff each, the division's damped by tanh; tanhf 2 ulp.
  result.softcap_error = 6 * fp32_roundoff;
  return result;
}

std::vector<Plan> plans(const Problem& problem) {
  constexpr std::int64_t no = PackGqa::no, yes = PackGqa::yes;
  std::vector<Plan> list{{.query_tile = 1, .key_tile = 1, .key_splits = 1, .pack_gqa = no},
                         {.query_tile = 4, .key_tile = 8, .key_splits = 1, .pack_gqa = no},
                         {.query_tile = 16, .key_tile = 32, .key_splits = 1, .pack_gqa = no},
                         {.query_tile = 8, .key_tile = 16, .key_splits = 3, .pack_gqa = no}};
  if (problem.query_heads > problem.kv_heads) {
    list.push_back({.query_tile = 16, .key_tile = 8, .key_splits = 1, .pack_gqa = yes});
    list.push_back({.query_tile = 4, .key_tile = 16, .key_splits = 2, .pack_gqa = yes});
  }
  return list;
}

KernelInfo kernel() {
  KernelInfo info;
  info.name = "m6_every_shape";
  info.summary = "every mask, shape, score modification and epilogue, row by row";
  info.source = "claims M5, M6, N1, N7";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true,
                   .value_dim = true,
                   .values_in_keys = true,
                   .softcap = true,
                   .lengths = true,
                   .padding = true,
                   .sinks = true,
                   .slopes = true,
                   .bias = true,
                   .prefix = true,
                   .documents = true,
                   .lists = true,
                   .dropout = true,
                   .gate = true,
                   .residual = true};
  info.layout_needs = {.takes_entry_gaps = true, .takes_broadcast = true};
  info.precision = precision;
  info.plans = plans;
  info.launch = launch;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
