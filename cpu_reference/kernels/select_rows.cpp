// An indexer and its top-k on the CPU as it is written down, query by query: scores of the visible
// keys, the largest of them in descending order. Bugs of choices are planted in it.
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/select_roundings.hpp"
#include "core/operations/select_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/tensor_rows.hpp"

namespace attest {
namespace {

EntryRows rows_of(const SelectArguments::Entry& entry) {
  return {entry.at, entry.first, entry.count};
}

/// The rows of K of one entry, in fp32.
class EntryKeys {
 public:
  EntryKeys(const SelectArguments& a, std::int64_t b)
      : dim_(a.problem.head_dim), rows_(rows_of(a.keys_of(b))) {
    for (std::int64_t h = 0; h < a.problem.kv_heads; ++h) {
      heads_.push_back(read_rows(a.k, a.k_strides, a.problem.element_type, rows_, h, dim_));
    }
  }
  [[nodiscard]] std::int64_t count() const { return rows_.count; }
  [[nodiscard]] const float* row(std::int64_t h, std::int64_t key) const {
    return heads_[static_cast<std::size_t>(h)].data() + key * dim_;
  }

 private:
  std::int64_t dim_;
  EntryRows rows_;
  std::vector<std::vector<float>> heads_;  ///< [count, head_dim] each
};

/// The heads of a query, in fp32.
struct Query {
  std::vector<std::vector<float>> q;  ///< [head_dim], of each query head
  std::vector<float> weights;         ///< [query_heads]
};

Query read_query(const SelectArguments& a, const SelectArguments::Entry& rows, std::int64_t n) {
  const Problem& p = a.problem;
  const EntryRows row{rows.at, rows.first + n, 1};
  Query query;
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    query.q.push_back(read_rows(a.q, a.q_strides, p.element_type, row, h, p.head_dim));
    query.weights.push_back(a.weights[a.weights_strides.offset(rows.at, h, rows.first + n)]);
  }
  return query;
}

float score_of(const Problem& p, const Query& query, const EntryKeys& keys, std::int64_t key) {
  float score = 0;
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    const std::vector<float>& q = query.q[static_cast<std::size_t>(h)];
    const float* const k = keys.row(p.kv_head_of(h), key);
    float dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot = std::fma(q[d], k[d], dot);
    float scaled = p.scale * dot;
    if (scaled < 0) scaled = 0;  // NaN stays
    score = std::fma(query.weights[static_cast<std::size_t>(h)], scaled, score);
  }
  return score;
}

struct ScoredKey {
  std::int64_t key = 0;
  float score = 0;

  /// NaN counts as +infinity.
  [[nodiscard]] float rank() const {
    return std::isnan(score) ? std::numeric_limits<float>::infinity() : score;
  }
};

/// The keys that query n of the entry sees, ascending, with their scores.
std::vector<ScoredKey> scored_keys(const SelectArguments& a, std::int64_t b,
                                   const SelectArguments::Entry& queries, const EntryKeys& keys,
                                   std::int64_t n) {
  const Problem& p = a.problem;
  const Query query = read_query(a, queries, n);
  const KeyRange range = visible_range(p.mask, p.window, queries.count, keys.count(), n);
  std::vector<ScoredKey> scored;
  for (std::int64_t key = range.begin; key < range.end; ++key) {
    if (a.key_mask != nullptr && a.key_mask[b * p.key_len + key] == 0) continue;
    scored.push_back({key, score_of(p, query, keys, key)});
  }
  return scored;
}

/// Writes a list, and what stands behind it.
void write_list(const SelectArguments& a, std::int64_t list, const std::vector<ScoredKey>& chosen) {
  const std::int64_t room = a.problem.top_k;
  a.counts[list] = static_cast<std::int32_t>(chosen.size());
  for (std::int64_t i = 0; i < room; ++i) {
    const bool is_used = i < std::ssize(chosen);
    const ScoredKey one = is_used ? chosen[static_cast<std::size_t>(i)]
                                  : ScoredKey{-1, -std::numeric_limits<float>::infinity()};
    a.keys[list * room + i] = static_cast<std::int32_t>(one.key);
    a.scores[list * room + i] = one.score;
  }
}

void run(const SelectArguments& a, Device& /*device*/) {
  const Problem& p = a.problem;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    const EntryKeys keys(a, b);
    const SelectArguments::Entry queries = a.queries_of(b);
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      std::vector<ScoredKey> scored;
      if (n < queries.count) scored = scored_keys(a, b, queries, keys, n);
      std::ranges::stable_sort(scored, std::greater<>(), &ScoredKey::rank);
      if (std::ssize(scored) > p.top_k) scored.resize(static_cast<std::size_t>(p.top_k));
      write_list(a, a.list_of(b, n), scored);
    }
  }
}

KernelInfo kernel() {
  KernelInfo info;
  info.operation = &select_operation;
  info.name = "select_rows";
  info.summary = "scores of an indexer and its top-k, query by query";
  info.source = "DeepSeek-V3.2-Exp";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true, .lengths = true, .padding = true};
  info.layout_needs.takes_entry_gaps = true;
  info.layout_needs.takes_broadcast = true;
  info.precision = [](const Problem&, const Plan&) { return SelectRoundings{}; };
  info.plans = [](const Problem&) { return std::vector<Plan>{{}}; };
  info.launch = run;
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
