#include "core/cost_model.hpp"

#include <algorithm>
#include <stdexcept>

namespace attest {
namespace {

constexpr double fp32_bytes = 4;
constexpr double bytes_of_pass = 128;  // 32 banks of 4

double d(std::int64_t value) {
  return static_cast<double>(value);
}

std::int64_t ceil_quotient(std::int64_t a, std::int64_t b) {
  return (a + b - 1) / b;
}

double element_bytes(const Problem& problem) {
  return d(static_cast<std::int64_t>(format_of(problem.element_type).size_bytes));
}

/// Elements of [batch, query_heads, rows, head_dim].
double elements(const Problem& problem, std::int64_t rows) {
  return d(problem.batch * problem.query_heads) * d(rows) * d(problem.head_dim);
}

double rows_of_lse(const Problem& problem) {
  return d(problem.batch * problem.query_heads) * d(problem.query_len);
}

std::int64_t rows_of(const Problem& problem, const Tiling& tiling, std::int64_t query_tile) {
  return std::min(tiling.query_tile, problem.query_len - query_tile * tiling.query_tile);
}

/// Rows of K that the blocks of one head load together when each reads its visited tiles.
std::int64_t loaded_keys(const Problem& problem, const Tiling& tiling) {
  std::int64_t keys = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    keys += std::min(visited_key_tiles(problem, tiling, tile) * tiling.key_tile, problem.key_len);
  }
  return keys;
}

/// Scores of one head in visited tiles.
std::int64_t seen_scores(const Problem& problem, const Tiling& tiling) {
  std::int64_t scores = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    scores += rows_of(problem, tiling, tile) *
              std::min(visited_key_tiles(problem, tiling, tile) * tiling.key_tile, problem.key_len);
  }
  return scores;
}

/// Rows of Q that a block of one head handles in all its key tiles together.
std::int64_t handled_rows(const Problem& problem, const Tiling& tiling) {
  std::int64_t rows = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    rows += visited_key_tiles(problem, tiling, tile) * rows_of(problem, tiling, tile);
  }
  return rows;
}

Traffic standard(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  const double written = e * rows_of_lse(problem) * d(problem.key_len);
  const double read = e * d(problem.batch * problem.query_heads) * d(seen_scores(problem, tiling));
  const double q = e * elements(problem, problem.query_len);
  return {.q = q,
          .k = e * elements(problem, problem.key_len) * d(query_tiles(problem, tiling)),
          .v = e * elements(problem, loaded_keys(problem, tiling)),
          .o_written = q,
          .s_written = written,
          .s_read = read * d(tiling.score_reads),
          .p_written = written,
          .p_read = read,
          .lse = fp32_bytes * rows_of_lse(problem)};
}

Traffic keys_outside(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  // Tiles that no row sees are not loaded: the last query sees most.
  const Problem& p = problem;
  const std::int64_t seen = p.visible_keys(p.query_len - 1);
  const std::int64_t keys =
      std::min(ceil_quotient(seen, tiling.key_tile) * tiling.key_tile, p.key_len);
  const double kv = e * elements(p, keys);
  const std::int64_t rows = handled_rows(p, tiling);
  const double q = e * elements(p, rows);
  const double heads = d(p.batch * p.query_heads);
  return {.q = q,
          .k = kv,
          .v = kv,
          .o_read = q,
          .o_written = q,
          .statistics = 4 * fp32_bytes * heads * d(rows),  // m and l, read and written
          .lse = fp32_bytes * rows_of_lse(p)};
}

Traffic queries_outside(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  const double kv = e * elements(problem, loaded_keys(problem, tiling));
  const double q = e * elements(problem, problem.query_len);
  return {.q = q,
          .k = kv * d(tiling.passes),
          .v = kv,
          .o_written = q,
          .lse = fp32_bytes * rows_of_lse(problem)};
}

}  // namespace

std::int64_t query_tiles(const Problem& problem, const Tiling& tiling) {
  return ceil_quotient(problem.query_len, tiling.query_tile);
}

std::int64_t key_tiles(const Problem& problem, const Tiling& tiling) {
  return ceil_quotient(problem.key_len, tiling.key_tile);
}

std::int64_t visited_key_tiles(const Problem& problem, const Tiling& tiling, std::int64_t tile) {
  const std::int64_t last_query =
      std::min((tile + 1) * tiling.query_tile, problem.query_len) - 1;  // it sees most
  return ceil_quotient(problem.visible_keys(last_query), tiling.key_tile);
}

std::int64_t visited_tile_pairs(const Problem& problem, const Tiling& tiling) {
  std::int64_t pairs = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    pairs += visited_key_tiles(problem, tiling, tile);
  }
  return pairs;
}

double full_flops(const Problem& problem) {
  return 4 * elements(problem, problem.query_len) * d(problem.key_len);
}

double tiled_flops(const Problem& problem, const Tiling& tiling) {
  const double of_pair = 2 * d(1 + tiling.passes) * d(tiling.query_tile * tiling.key_tile);
  return of_pair * elements(problem, 1) * d(visited_tile_pairs(problem, tiling));
}

double exponentials(const Problem& problem) {
  return forward_flops(problem) / (4 * d(problem.head_dim));
}

double Traffic::read() const {
  return q + k + v + o_read + s_read + p_read + statistics / 2;
}

double Traffic::written() const {
  return o_written + s_written + p_written + statistics / 2 + lse;
}

Traffic compulsory_traffic(const Problem& problem) {
  const double e = element_bytes(problem);
  const double q = e * elements(problem, problem.query_len);
  const double kv =
      e * d(problem.batch * problem.kv_heads) * d(problem.key_len) * d(problem.head_dim);
  return {.q = q, .k = kv, .v = kv, .o_written = q, .lse = fp32_bytes * rows_of_lse(problem)};
}

Traffic traffic_without_cache(Dataflow dataflow, const Problem& problem, const Tiling& tiling) {
  switch (dataflow) {
    case Dataflow::standard:
      return standard(problem, tiling);
    case Dataflow::keys_outside:
      return keys_outside(problem, tiling);
    case Dataflow::queries_outside:
      return queries_outside(problem, tiling);
    case Dataflow::unknown:
      break;
  }
  throw std::logic_error("no traffic law is known for this kernel");
}

Footprint footprint_of(const Problem& problem, std::int64_t matrix_bytes) {
  const double e = element_bytes(problem);
  const Traffic once = compulsory_traffic(problem);
  return {.tensors = once.total() - once.lse,
          .matrix =
              (matrix_bytes == 0 ? e : d(matrix_bytes)) * rows_of_lse(problem) * d(problem.key_len),
          .lse = once.lse};
}

double TimeFloors::largest() const {
  return std::max({flops, dram, l2, exponentials, shared});
}

TimeFloors time_floors(const GpuModel& gpu, ElementType type, const Work& work) {
  return {.flops = work.flops / gpu.peak_flops(type),
          .dram = work.dram_bytes / gpu.dram_bytes_per_s,
          .l2 = work.l2_bytes / gpu.l2_bytes_per_s,
          .exponentials = work.exponentials / gpu.ex2_per_s(),
          .shared = work.shared_passes * bytes_of_pass /
                    (d(gpu.sms) * gpu.shared_bytes_per_clock_sm * gpu.boost_hz)};
}

}  // namespace attest
