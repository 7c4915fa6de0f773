#include "gpu/model/cost_model.hpp"

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

/// Elements of [batch, query_heads, rows, columns].
double elements(const Problem& problem, std::int64_t rows, std::int64_t columns) {
  return d(problem.batch * problem.query_heads) * d(rows) * d(columns);
}

/// Rows of all entries.
double query_rows(const Problem& problem) {
  return problem.length_seed == 0 ? d(problem.batch) * d(problem.query_len)
                                  : d(query_starts(problem).back());
}
double key_rows(const Problem& problem) {
  return problem.length_seed == 0 ? d(problem.batch) * d(problem.key_len)
                                  : d(key_starts(problem).back());
}

double rows_of_lse(const Problem& problem) {
  return d(problem.query_heads) * query_rows(problem);
}

/// Keys of a range of key tiles.
std::int64_t keys_of(const Problem& problem, const Tiling& tiling, const KeyRange& tiles) {
  return std::min(tiles.end * tiling.key_tile, problem.key_len) -
         std::min(tiles.begin * tiling.key_tile, problem.key_len);
}

/// Rows of K that the blocks of one head load together when each reads its visited tiles.
std::int64_t loaded_keys(const Problem& problem, const Tiling& tiling) {
  std::int64_t keys = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    keys += keys_of(problem, tiling, visited_key_tiles(problem, tiling, tile));
  }
  return keys;
}

/// Rows of Q that the blocks of one head load together.
std::int64_t loaded_queries(const Problem& problem, const Tiling& tiling) {
  if (!tiling.reads_queries_again) return problem.query_len;
  std::int64_t queries = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    const KeyRange visited = visited_key_tiles(problem, tiling, tile);
    queries += queries_of(problem, tiling, tile).size() * (visited.end - visited.begin);
  }
  return queries;
}

/// Scores of one head in visited tiles.
std::int64_t seen_scores(const Problem& problem, const Tiling& tiling) {
  std::int64_t scores = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    scores += queries_of(problem, tiling, tile).size() *
              keys_of(problem, tiling, visited_key_tiles(problem, tiling, tile));
  }
  return scores;
}

/// Rows of Q that a block of one head handles in all its key tiles together.
std::int64_t handled_rows(const Problem& problem, const Tiling& tiling) {
  std::int64_t rows = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    rows +=
        visited_key_tiles(problem, tiling, tile).size() * queries_of(problem, tiling, tile).size();
  }
  return rows;
}

Traffic standard(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  const double written = e * rows_of_lse(problem) * d(problem.key_len);
  const double read = e * d(problem.batch * problem.query_heads) * d(seen_scores(problem, tiling));
  const std::int64_t rows = problem.query_len, columns = problem.output_dim();
  return {.q = e * elements(problem, rows, problem.head_dim),
          .k = e * elements(problem, problem.key_len, problem.head_dim) *
               d(query_tiles(problem, tiling)),
          .v = e * elements(problem, loaded_keys(problem, tiling), columns),
          .o_written = e * elements(problem, rows, columns),
          .s_written = written,
          .s_read = read * d(tiling.score_reads),
          .p_written = written,
          .p_read = read,
          .lse = fp32_bytes * rows_of_lse(problem)};
}

Traffic keys_outside(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  // Tiles that no row sees are not loaded: both ends rise with the query.
  const Problem& p = problem;
  const std::int64_t tiles = query_tiles(p, tiling);
  const KeyRange seen{tiles > 0 ? visited_key_tiles(p, tiling, 0).begin : 0,
                      tiles > 0 ? visited_key_tiles(p, tiling, tiles - 1).end : 0};
  const std::int64_t keys = keys_of(p, tiling, seen);
  const std::int64_t rows = handled_rows(p, tiling);
  const double o = e * elements(p, rows, p.output_dim());
  const double heads = d(p.batch * p.query_heads);
  return {.q = e * elements(p, rows, p.head_dim),
          .k = e * elements(p, keys, p.head_dim),
          .v = e * elements(p, keys, p.output_dim()),
          .o_read = o,
          .o_written = o,
          .statistics = 4 * fp32_bytes * heads * d(rows),  // m and l, read and written
          .lse = fp32_bytes * rows_of_lse(p)};
}

Traffic queries_outside(const Problem& problem, const Tiling& tiling) {
  const double e = element_bytes(problem);
  const std::int64_t keys = loaded_keys(problem, tiling);
  return {.q = e * elements(problem, loaded_queries(problem, tiling), problem.head_dim),
          .k = e * elements(problem, keys, problem.head_dim) * d(tiling.passes),
          .v = e * elements(problem, keys, problem.output_dim()),
          .o_written = e * elements(problem, problem.query_len, problem.output_dim()),
          .lse = fp32_bytes * rows_of_lse(problem)};
}

double rate(const GpuModel& gpu, ElementType type, const Accumulation& sum, const Parts& parts) {
  if (sum.kind == Accumulation::Kind::fp32_fma) return gpu.fp32_flops;
  const int products = parts.count * (parts.count + 1) / 2;
  switch (parts.format) {
    case Parts::Format::whole:
      return gpu.peak_flops(type);
    case Parts::Format::tf32:
      return gpu.tf32_flops / products;
    case Parts::Format::fp16:
    case Parts::Format::bf16:
      return gpu.fp16_flops / products;
  }
  return 0;
}

}  // namespace

Tiling tiling_of(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  // K0, the only kernel of its dataflow, walks S for maximum, sum and weights.
  return {.query_tile = plan.query_tile,
          .key_tile = plan.key_tile,
          .passes = plan.passes == Passes::two ? 2 : 1,
          .reads_queries_again = plan.query_reads == QueryReads::every_tile,
          .score_reads = kernel.dataflow == Dataflow::standard ? 3 : 1,
          .first_row = kernel.first_row ? kernel.first_row(problem, plan) : 0};
}

std::int64_t query_tiles(const Problem& problem, const Tiling& tiling) {
  return ceil_quotient(problem.query_len - tiling.first_row, tiling.query_tile);
}

std::int64_t key_tiles(const Problem& problem, const Tiling& tiling) {
  return ceil_quotient(problem.key_len, tiling.key_tile);
}

QueryRange queries_of(const Problem& problem, const Tiling& tiling, std::int64_t tile) {
  const std::int64_t first = tiling.first_row + tile * tiling.query_tile;
  return {std::max<std::int64_t>(0, first), std::min(first + tiling.query_tile, problem.query_len)};
}

KeyRange visited_key_tiles(const Problem& problem, const Tiling& tiling, std::int64_t tile) {
  const auto range = [&](std::int64_t query) {
    return visible_range(problem.mask, problem.window, problem.query_len, problem.key_len, query);
  };
  const QueryRange queries = queries_of(problem, tiling, tile);
  const std::int64_t begin = range(queries.begin).begin, end = range(queries.end - 1).end;
  if (begin >= end) return {};
  return {begin / tiling.key_tile, ceil_quotient(end, tiling.key_tile)};
}

std::int64_t visited_tile_pairs(const Problem& problem, const Tiling& tiling) {
  std::int64_t pairs = 0;
  for (std::int64_t tile = 0; tile < query_tiles(problem, tiling); ++tile) {
    pairs += visited_key_tiles(problem, tiling, tile).size();
  }
  return pairs;
}

double full_flops(const Problem& problem) {
  return 2 * elements(problem, problem.query_len, problem.head_dim + problem.output_dim()) *
         d(problem.key_len);
}

double tiled_flops(const Problem& problem, const Tiling& tiling) {
  const std::int64_t columns = tiling.passes * problem.head_dim + problem.output_dim();
  return 2 * d(tiling.query_tile * tiling.key_tile) * elements(problem, 1, columns) *
         d(visited_tile_pairs(problem, tiling));
}

double exponentials(const Problem& problem) {
  return forward_flops(problem) / (2 * d(problem.head_dim + problem.output_dim()));
}

double Traffic::read() const {
  return q + k + v + o_read + s_read + p_read + statistics / 2;
}

double Traffic::written() const {
  return o_written + s_written + p_written + statistics / 2 + lse;
}

Traffic compulsory_traffic(const Problem& problem) {
  const double e = element_bytes(problem);
  const double queries = e * rows_of_lse(problem);
  const double keys = e * d(problem.kv_heads) * key_rows(problem);
  return {.q = queries * d(problem.head_dim),
          .k = keys * d(problem.head_dim),
          .v = problem.values == Values::in_keys ? 0.0 : keys * d(problem.output_dim()),
          .o_written = queries * d(problem.output_dim()),
          .lse = fp32_bytes * rows_of_lse(problem)};
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

double product_flops_per_s(const GpuModel& gpu, ElementType type, const PrecisionPlan& precision,
                           const Codes& codes) {
  const ElementType score_type = codes.q == codes.k ? format_with(codes.k, type) : type;
  const ElementType of_v = format_with(codes.v, type);
  const ElementType value_type = precision.weight_format == of_v ? of_v : type;
  const double scores = rate(gpu, score_type, precision.score, precision.score_parts);
  const double values = rate(gpu, value_type, precision.value, precision.value_parts);
  // Half of the FLOP each; a rate of 0 takes for ever.
  return 2 / (1 / scores + 1 / values);
}

double product_flops_per_s(const GpuModel& gpu, ElementType type,
                           const BackwardRoundings& precision) {
  const auto time_of = [&](const Accumulation& sum) { return 1 / rate(gpu, type, sum, {}); };
  // S, dO V^T and three sums.
  return 5 / (time_of(precision.score) + time_of(precision.product) + 3 * time_of(precision.sums));
}

}  // namespace attest
