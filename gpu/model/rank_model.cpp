#include "gpu/model/rank_model.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/attention/distribution.hpp"
#include "core/attention/operation.hpp"
#include "core/operations/backward.hpp"

namespace attest {
namespace {

using Pieces = std::vector<TokenPiece>;

std::int64_t divided_up(std::int64_t a, std::int64_t b) {
  return a >= 0 ? (a + b - 1) / b : -(-a / b);
}

/// Sum of first, first + 1, ..., `count` of them, each moved into [0, most].
double sum_within(std::int64_t first, std::int64_t count, std::int64_t most) {
  const std::int64_t zeros = std::clamp<std::int64_t>(-first, 0, count);
  const std::int64_t full = count - std::clamp<std::int64_t>(most - first, zeros, count);
  const auto rising = static_cast<double>(count - zeros - full);
  return rising * static_cast<double>(first + zeros) + rising * (rising - 1) / 2 +
         static_cast<double>(full) * static_cast<double>(most);
}

/// Pairs of two pieces, of one distribution: both are contiguous, or both have every P-th token.
double visible_pairs(const Problem& p, const TokenPiece& q, const TokenPiece& k) {
  const std::int64_t left = is_window(p.mask) ? p.window.left : -1;
  const std::int64_t right = p.mask == Mask::none ? -1 : is_window(p.mask) ? p.window.right : 0;
  const std::int64_t diagonal = diagonal_key(p.mask, p.query_len, p.key_len, q.first) - k.first;
  // Keys of the piece before a position, which rises by a key with every query.
  const auto keys_before = [&](std::int64_t position) {
    return sum_within(divided_up(position, k.stride), q.count, k.count);
  };
  const double all = static_cast<double>(q.count) * static_cast<double>(k.count);
  return (right < 0 ? all : keys_before(diagonal + right + 1)) -
         (left < 0 ? 0 : keys_before(diagonal - left));
}

double visible_pairs(const Problem& p, const Pieces& queries, const Pieces& keys) {
  double pairs = 0;
  for (const TokenPiece& q : queries) {
    for (const TokenPiece& k : keys) pairs += visible_pairs(p, q, k);
  }
  return pairs;
}

double tokens_in(const Pieces& pieces) {
  double tokens = 0;
  for (const TokenPiece& piece : pieces) tokens += static_cast<double>(piece.count);
  return tokens;
}

std::vector<Pieces> parts_of(std::int64_t length, std::int64_t ranks, std::int64_t distribution) {
  std::vector<Pieces> parts;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    parts.push_back(pieces_of_rank(distribution, length, ranks, rank));
  }
  return parts;
}

double element_bytes(const Problem& p) {
  return static_cast<double>(format_of(p.element_type).size_bytes);
}

bool is_backward(const Problem& p) {
  return p.operation == &backward_operation;
}

/// FLOP of a pair: of S and O, or of S, dP, dV, dK and dQ.
double flops_of_a_pair(const Problem& p) {
  const std::int64_t columns =
      is_backward(p) ? 3 * p.head_dim + 2 * p.output_dim() : p.head_dim + p.output_dim();
  return 2.0 * static_cast<double>(columns);
}

/// Seconds of a pair of all entries and heads.
double pair_seconds(const Problem& p, const RankRates& rates) {
  return static_cast<double>(p.batch * p.query_heads) * flops_of_a_pair(p) / rates.flops_per_s;
}

/// Bytes of K and V, or of dK and dV, of one token of all entries, of one head.
double key_bytes(const Problem& p) {
  return static_cast<double>(p.batch * (p.head_dim + p.output_dim())) * element_bytes(p);
}

double seconds_alone(const Problem& p, double pair_s) {
  return visible_pairs(p, TokenPiece{.count = p.query_len}, TokenPiece{.count = p.key_len}) *
         pair_s;
}

}  // namespace

double attention_flops_per_s(const GpuModel& gpu, const Problem& problem) {
  return std::min(gpu.peak_flops(problem.element_type), gpu.ex2_per_s() * flops_of_a_pair(problem));
}

std::string why_no_rank_model(const Problem& problem) {
  if (problem.operation != &forward_operation && !is_backward(problem)) {
    return fmt::format(
        "the model of ranks is about forward and backward passes, and this problem is {}",
        problem.operation->name);
  }
  Problem full = problem;
  take_away_seeds(full);
  if (full == problem) return {};
  return "the model of ranks is about entries of one length without padding, prefix, documents and "
         "lists of keys";
}

RankTimes ring_times(const Problem& p, std::int64_t ranks, std::int64_t distribution,
                     const RankRates& rates) {
  const auto queries = parts_of(p.query_len, ranks, distribution);
  const auto keys = parts_of(p.key_len, ranks, distribution);
  const double token_bytes = key_bytes(p) * static_cast<double>(p.kv_heads);
  const double pair_s = pair_seconds(p, rates);
  double most_keys = 0;
  for (const Pieces& part : keys) most_keys = std::max(most_keys, tokens_in(part));

  RankTimes times{.alone_s = seconds_alone(p, pair_s)};
  for (std::int64_t step = 0; step < ranks; ++step) {
    double most_pairs = 0;
    for (std::int64_t rank = 0; rank < ranks; ++rank) {
      const auto owner = static_cast<std::size_t>((rank - step + ranks) % ranks);
      most_pairs = std::max(most_pairs,
                            visible_pairs(p, queries[static_cast<std::size_t>(rank)], keys[owner]));
    }
    // Each part is somewhere on its way in every step, the largest one too; so are, of all steps
    // but the first, whose keys are the ranks' own, dK and dV of the step before.
    const int parts = (step + 1 < ranks ? 1 : 0) + (is_backward(p) && step > 1 ? 1 : 0);
    times.steps.push_back({.computing_s = most_pairs * pair_s,
                           .exchange_s = parts * most_keys * token_bytes / rates.link_bytes_per_s});
  }
  if (is_backward(p) && ranks > 1) {
    times.steps.front().computing_s /= 2;
    times.steps.push_back({.computing_s = times.steps.front().computing_s,
                           .exchange_s = most_keys * token_bytes / rates.link_bytes_per_s});
  }
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    // All parts pass a rank but that of its neighbour, which needs it last.
    const Pieces& never_sent = keys[static_cast<std::size_t>((rank + 1) % ranks)];
    double tokens = static_cast<double>(p.key_len) - tokens_in(never_sent);
    if (is_backward(p)) {
      tokens += static_cast<double>(p.key_len) - tokens_in(keys[static_cast<std::size_t>(rank)]);
    }
    times.sent_bytes.push_back(tokens * token_bytes);
  }
  return times;
}

RankTimes ulysses_times(const Problem& p, std::int64_t ranks, std::int64_t distribution,
                        const RankRates& rates) {
  const auto queries = parts_of(p.query_len, ranks, distribution);
  const auto keys = parts_of(p.key_len, ranks, distribution);
  const double entry = static_cast<double>(p.batch);
  const double q_bytes = entry * static_cast<double>(p.head_dim) * element_bytes(p);
  const double o_bytes = entry * static_cast<double>(p.output_dim()) * element_bytes(p);
  const double lse_bytes = entry * sizeof(float);
  const double there_a_query = is_backward(p) ? q_bytes + 2 * o_bytes + lse_bytes : q_bytes;
  const double back_a_query = is_backward(p) ? q_bytes : o_bytes + lse_bytes;
  const double back_a_key = is_backward(p) ? key_bytes(p) : 0;
  const double group = static_cast<double>(p.query_heads / p.kv_heads);
  const double all_heads = static_cast<double>(p.kv_heads);
  const std::int64_t heads_a_rank = (p.kv_heads + ranks - 1) / ranks;

  RankTimes times{.alone_s = seconds_alone(p, pair_seconds(p, rates))};
  double most_there = 0, most_back = 0;
  for (std::int64_t rank = 0; rank < ranks; ++rank) {
    const auto heads = static_cast<double>(std::min((rank + 1) * heads_a_rank, p.kv_heads) -
                                           std::min(rank * heads_a_rank, p.kv_heads));
    const auto at = static_cast<std::size_t>(rank);
    // Heads of others of its own tokens, and its own heads of others' tokens: one goes there, the
    // other comes, and O the other way.
    const double out = (all_heads - heads) * tokens_in(queries[at]) * group;
    const double in = heads * (static_cast<double>(p.query_len) - tokens_in(queries[at])) * group;
    const double k_out = (all_heads - heads) * tokens_in(keys[at]);
    const double k_in = heads * (static_cast<double>(p.key_len) - tokens_in(keys[at]));
    const double sent = out * there_a_query + k_out * key_bytes(p);
    const double sent_back = in * back_a_query + k_in * back_a_key;
    most_there = std::max({most_there, sent, in * there_a_query + k_in * key_bytes(p)});
    most_back = std::max({most_back, sent_back, out * back_a_query + k_out * back_a_key});
    times.sent_bytes.push_back(sent + sent_back);
  }
  const double share = static_cast<double>(heads_a_rank) / all_heads;
  times.steps = {{.exchange_s = most_there / rates.link_bytes_per_s},
                 {.computing_s = times.alone_s * share},
                 {.exchange_s = most_back / rates.link_bytes_per_s}};
  return times;
}

std::optional<double> break_even_queries(const Problem& p, std::int64_t distribution,
                                         const RankRates& rates) {
  if (is_window(p.mask) || (p.mask != Mask::none && p.query_len != p.key_len)) return std::nullopt;
  const bool sees_half = p.mask != Mask::none && distribution != Distribution::contiguous;
  const double directions = is_backward(p) ? 2 : 1;
  const double key_s =
      directions * key_bytes(p) * static_cast<double>(p.kv_heads) / rates.link_bytes_per_s;
  const double pair_s = pair_seconds(p, rates);
  return key_s / (pair_s * (sees_half ? 0.5 : 1.0));
}

double visible_pairs_of(const Problem& problem, std::int64_t ranks, std::int64_t distribution,
                        std::int64_t query_rank, std::int64_t key_rank) {
  return visible_pairs(problem, pieces_of_rank(distribution, problem.query_len, ranks, query_rank),
                       pieces_of_rank(distribution, problem.key_len, ranks, key_rank));
}

}  // namespace attest
