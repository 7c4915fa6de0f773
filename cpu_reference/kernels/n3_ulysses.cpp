// N3, attention over heads [Jacobs et al. 2023, DeepSpeed Ulysses, arXiv 2309.14509; claims N3]: P
// ranks have a part of the tokens each; an exchange gives every rank all tokens of some heads, and
// a second one gives the rows of O and LSE back.
//
//   rank r computes kv heads [r c, (r + 1) c), c = ceil(kv_heads / P), and the query heads that use
//   them: the last ranks may have none.
//
// No sum is ever cut, so that the bits are those of one rank whatever P is.

#include "core/attention/distribution.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/kernels/rank_rows.hpp"
#include "cpu_reference/kernels/row_kernel.hpp"

namespace attest {
namespace {

/// The kv heads that a rank computes.
KeyRange kv_heads_of(const RankLaunch& r, std::int64_t rank) {
  const std::int64_t count = (r.problem.kv_heads + r.ranks() - 1) / r.ranks();
  return {std::min(rank * count, r.problem.kv_heads),
          std::min((rank + 1) * count, r.problem.kv_heads)};
}

/// And the query heads.
KeyRange query_heads_of(const RankLaunch& r, std::int64_t rank) {
  const KeyRange kv = kv_heads_of(r, rank);
  const std::int64_t group = r.problem.query_heads / r.problem.kv_heads;
  return {kv.begin * group, kv.end * group};
}

/// All tokens of the heads of one rank, rank after rank: [ranks][heads][rows of the rank,
/// row_bytes].
struct Gathered {
  std::vector<std::vector<std::byte>> of_rank;
};

/// Heads of a tensor [heads, rows, row_bytes] go where `heads_of` says.
template <typename HeadsOf>
void send_heads(const RankLaunch& r, const void* tensor, std::int64_t rows, std::size_t row_bytes,
                const HeadsOf& heads_of) {
  const auto head_bytes = static_cast<std::size_t>(rows) * row_bytes;
  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    const KeyRange heads = heads_of(r, rank);
    r.send(rank, {static_cast<const std::byte*>(tensor) +
                      static_cast<std::size_t>(heads.begin) * head_bytes,
                  static_cast<std::size_t>(heads.end - heads.begin) * head_bytes});
  }
}

Gathered receive_heads(const RankLaunch& r, Rows rows, std::int64_t heads, std::size_t row_bytes) {
  Gathered result;
  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    const std::int64_t count = rows_of_rank(r.problem, rows, r.plan, rank).count();
    result.of_rank.emplace_back(static_cast<std::size_t>(heads * count) * row_bytes);
    r.receive(rank, result.of_rank.back());
  }
  return result;
}

/// The keys of one entry and head that all ranks sent, in the order of their tokens.
RankKeys whole_keys(const RankLaunch& r, const Gathered& k, const Gathered& v, std::int64_t entry,
                    std::int64_t head, std::vector<std::int64_t>& tokens) {
  const Problem& p = r.problem;
  const std::int64_t count = p.key_len_of(entry);
  RankKeys whole{.tokens = {},
                 .keys = std::vector<float>(static_cast<std::size_t>(p.head_dim * count)),
                 .values = std::vector<float>(static_cast<std::size_t>(p.output_dim() * count))};
  tokens.resize(static_cast<std::size_t>(count));
  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    const RankRows rows = rows_of_rank(p, Rows::keys, r.plan, rank);
    const auto at = static_cast<std::size_t>(rank);
    const RankKeys part =
        rank_keys(p, rows, k.of_rank[at].data(), v.of_rank[at].data(), entry, head);
    for (std::int64_t j = 0; j < part.count(); ++j) {
      const std::int64_t token = part.tokens[static_cast<std::size_t>(j)];
      tokens[static_cast<std::size_t>(token)] = token;
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        whole.keys[static_cast<std::size_t>(d * count + token)] =
            part.keys[static_cast<std::size_t>(d * part.count() + j)];
      }
      std::copy_n(part.values.begin() + j * p.output_dim(), p.output_dim(),
                  whole.values.begin() + token * p.output_dim());
    }
  }
  whole.tokens = tokens;
  return whole;
}

void ulysses(const RankLaunch& r) {
  const Problem& p = r.problem;
  const std::size_t size = format_of(p.element_type).size_bytes;
  const std::size_t key_bytes = static_cast<std::size_t>(p.head_dim) * size;
  const std::size_t value_bytes = static_cast<std::size_t>(p.output_dim()) * size;
  send_heads(r, r.q, r.queries.count(), key_bytes, query_heads_of);
  send_heads(r, r.k, r.keys.count(), key_bytes, kv_heads_of);
  send_heads(r, r.v, r.keys.count(), value_bytes, kv_heads_of);
  const KeyRange kv_heads = kv_heads_of(r, r.rank), heads = query_heads_of(r, r.rank);
  const std::int64_t group = p.query_heads / p.kv_heads, head_count = heads.end - heads.begin;
  const Gathered q = receive_heads(r, Rows::queries, head_count, key_bytes);
  const Gathered k = receive_heads(r, Rows::keys, kv_heads.end - kv_heads.begin, key_bytes);
  const Gathered v = receive_heads(r, Rows::keys, kv_heads.end - kv_heads.begin, value_bytes);

  std::vector<RankRows> rows;
  std::vector<std::vector<std::byte>> o;  // of each rank's tokens: [heads, rows, output_dim]
  std::vector<std::vector<float>> lse;
  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    rows.push_back(rows_of_rank(p, Rows::queries, r.plan, rank));
    o.emplace_back(static_cast<std::size_t>(head_count * rows.back().count()) * value_bytes);
    lse.emplace_back(static_cast<std::size_t>(head_count * rows.back().count()));
  }
  std::vector<float> query(static_cast<std::size_t>(p.head_dim));
  std::vector<float> row_o(static_cast<std::size_t>(p.output_dim()));
  std::vector<std::int64_t> tokens;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t kv = 0; kv < kv_heads.end - kv_heads.begin; ++kv) {
      const RankKeys keys = whole_keys(r, k, v, b, kv, tokens);
      for (std::int64_t h = kv * group; h < (kv + 1) * group; ++h) {
        for (std::size_t rank = 0; rank < rows.size(); ++rank) {
          for (std::int64_t i = rows[rank].starts[static_cast<std::size_t>(b)];
               i < rows[rank].starts[static_cast<std::size_t>(b) + 1]; ++i) {
            const auto row = static_cast<std::size_t>(h * rows[rank].count() + i);
            read_row(q.of_rank[rank].data(), static_cast<std::ptrdiff_t>(row * key_bytes),
                     p.element_type, query);
            OnlineState state(p.output_dim());
            add_keys(p, r.plan, keys, b, rows[rank].tokens[static_cast<std::size_t>(i)], query,
                     state);
            lse[rank][row] = state.finish(row_o);
            write_row(row_o, o[rank].data(), static_cast<std::ptrdiff_t>(row * value_bytes),
                      p.element_type);
          }
        }
      }
    }
  }

  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    r.send(rank, o[static_cast<std::size_t>(rank)]);
    r.send(rank, std::as_bytes(std::span(lse[static_cast<std::size_t>(rank)])));
  }
  for (std::int64_t rank = 0; rank < r.ranks(); ++rank) {
    const KeyRange theirs = query_heads_of(r, rank);
    const auto first = static_cast<std::size_t>(theirs.begin * r.queries.count());
    const auto count = static_cast<std::size_t>((theirs.end - theirs.begin) * r.queries.count());
    r.receive(rank, {static_cast<std::byte*>(r.o) + first * value_bytes, count * value_bytes});
    r.receive(rank, std::as_writable_bytes(std::span(r.lse + first, count)));
  }
}

PrecisionPlan precision(const Problem& problem, const Plan& plan) {
  PrecisionPlan result = row_precision(problem);
  result.rescale = Rescale::deferred;
  result.blocks = tile_count(problem.key_len, plan.key_tile);
  return result;
}

std::vector<Plan> plans(const Problem& /*problem*/) {
  std::vector<Plan> list;
  for (const std::int64_t ranks : {1, 2, 3, 8}) {
    list.push_back({.key_tile = 16, .ranks = ranks, .distribution = Distribution::contiguous});
  }
  list.push_back({.key_tile = 16, .ranks = 2, .distribution = Distribution::zigzag});
  return list;
}

KernelInfo kernel() {
  KernelInfo info;
  info.name = "n3_ulysses";
  info.summary = "ranks with a part of the tokens each, which exchange them for some of the heads";
  info.source = "claims N3";
  info.executor = Executor::cpu;
  info.element_types.assign(all_element_types().begin(), all_element_types().end());
  info.masks.assign(all_masks().begin(), all_masks().end());
  info.features = {.no_queries = true, .value_dim = true, .lengths = true, .padding = true};
  info.is_query_invariant = true;
  info.precision = precision;
  info.plans = plans;
  info.launch = cpu_launch([](const Problem& problem, const Plan& plan, const Inputs& inputs) {
    return run_rank_group(problem, plan, inputs, ulysses);
  });
  return info;
}

const KernelRegistration registration(kernel());

}  // namespace
}  // namespace attest
