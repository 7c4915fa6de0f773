#include "gpu/model/l2_model.hpp"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "core/attention/grid_order.hpp"

namespace attest {
namespace {

/// [heads, rows, row_bytes] in the model's address space.
struct Region {
  std::int64_t base = 0, rows = 0, row_bytes = 0;

  void read(L2Cache& cache, std::int64_t head, std::int64_t first, std::int64_t count) const {
    cache.read(base + (head * rows + first) * row_bytes, count * row_bytes);
  }
  void write(L2Cache& cache, std::int64_t head, std::int64_t first, std::int64_t count) const {
    cache.write(base + (head * rows + first) * row_bytes, count * row_bytes);
  }
};

/// Base of all dataflows: where tensors lie, and how tiles are clipped.
class Layout {
 public:
  Layout(const L2Launch& launch, std::int64_t line_bytes)
      : p(launch.problem), tiling(launch.tiling), line_bytes_(line_bytes) {
    const auto e = static_cast<std::int64_t>(format_of(p.element_type).size_bytes);
    const std::int64_t heads = p.batch * p.query_heads;
    q = place(heads, p.query_len, p.head_dim * e);
    k = place(p.batch * p.kv_heads, p.key_len, p.head_dim * e);
    v = p.values == Values::in_keys ? k
                                    : place(p.batch * p.kv_heads, p.key_len, p.output_dim() * e);
    o = place(heads, p.query_len, p.output_dim() * e);
    lse = place(heads, p.query_len, 4);
    m = place(heads, p.query_len, 4);
    l = place(heads, p.query_len, 4);
    scores = place(heads, p.query_len, p.key_len * e);
    weights = place(heads, p.query_len, p.key_len * e);
    score_bytes_ = e;
  }

  [[nodiscard]] TileGrid tiles() const {
    return {.heads = p.batch * p.query_heads, .tiles = query_tiles(p, tiling)};
  }
  [[nodiscard]] std::int64_t kv_head(std::int64_t head) const {
    return head / p.query_heads * p.kv_heads + p.kv_head_of(head % p.query_heads);
  }
  void read_keys(L2Cache& cache, const Region& of, std::int64_t head, std::int64_t tile) const {
    const std::int64_t first = tile * tiling.key_tile;
    of.read(cache, kv_head(head), first, std::min(tiling.key_tile, p.key_len - first));
  }
  void read_rows(L2Cache& cache, const Region& of, const TilePosition& at) const {
    const QueryRange rows = queries_of(p, tiling, at.tile);
    of.read(cache, at.head, rows.begin, rows.size());
  }
  void write_rows(L2Cache& cache, const Region& of, const TilePosition& at) const {
    const QueryRange rows = queries_of(p, tiling, at.tile);
    of.write(cache, at.head, rows.begin, rows.size());
  }
  /// Tile (at.tile, key_tile) of a matrix of scores, kept tile after tile.
  struct Bytes {
    std::int64_t address, count;
  };
  [[nodiscard]] Bytes matrix_tile(const Region& of, const TilePosition& at,
                                  std::int64_t key_tile) const {
    const QueryRange rows = queries_of(p, tiling, at.tile);
    const std::int64_t before = rows.begin * p.key_len + rows.size() * key_tile * tiling.key_tile;
    const std::int64_t keys = std::min(tiling.key_tile, p.key_len - key_tile * tiling.key_tile);
    return {of.base + at.head * of.rows * of.row_bytes + before * score_bytes_,
            rows.size() * keys * score_bytes_};
  }

  const Problem p;
  const Tiling tiling;
  Region q, k, v, o, lse, m, l, scores, weights;

 private:
  Region place(std::int64_t heads, std::int64_t rows_of_head, std::int64_t row_bytes) {
    const Region region{.base = next_, .rows = rows_of_head, .row_bytes = row_bytes};
    const std::int64_t bytes = heads * rows_of_head * row_bytes;
    next_ += (bytes + line_bytes_ - 1) / line_bytes_ * line_bytes_;
    return region;
  }

  std::int64_t line_bytes_, next_ = 0, score_bytes_ = 0;
};

/// Runs `blocks` blocks, `resident` at a time. `start(block)` gives a block's state;
/// `step(state)` makes its next step and says whether another one follows.
template <typename Start, typename Step>
void run_in_waves(std::int64_t blocks, std::int64_t resident, Start start, Step step) {
  std::int64_t next = 0;
  std::vector<decltype(start(next))> running;
  while (next < std::min(blocks, std::max<std::int64_t>(1, resident))) {
    running.push_back(start(next++));
  }
  while (!running.empty()) {
    std::size_t kept = 0;
    for (auto& state : running) {
      const bool goes_on = step(state);
      if (!goes_on && next == blocks) continue;
      running[kept++] = goes_on ? state : start(next++);
    }
    running.resize(kept);
  }
}

struct TileBlock {
  TilePosition at;
  std::int64_t step = 0, steps = 0;
  std::int64_t first_key_tile = 0;
};

void run_queries_outside(const Layout& x, const L2Launch& launch, L2Cache& cache) {
  const TileGrid grid = x.tiles();
  const auto start = [&](std::int64_t block) {
    const TilePosition at = tile_position(launch.grid_order, launch.group, grid, block);
    const KeyRange visited = visited_key_tiles(x.p, x.tiling, at.tile);
    return TileBlock{
        .at = at, .steps = visited.size() * x.tiling.passes, .first_key_tile = visited.begin};
  };
  const auto step = [&](TileBlock& block) {
    if (block.step == 0) x.read_rows(cache, x.q, block.at);
    if (block.step < block.steps) {
      const std::int64_t of_pass = block.steps / x.tiling.passes;
      const std::int64_t key_tile = block.first_key_tile + block.step % of_pass;
      x.read_keys(cache, x.k, block.at.head, key_tile);
      const bool is_last_pass = block.step >= block.steps - of_pass;
      if (is_last_pass) x.read_keys(cache, x.v, block.at.head, key_tile);
    }
    if (++block.step < block.steps) return true;
    x.write_rows(cache, x.o, block.at);
    x.write_rows(cache, x.lse, block.at);
    return false;
  };
  run_in_waves(grid.size(), launch.resident_blocks, start, step);
}

struct HeadBlock {
  std::int64_t head = 0, query_tile = 0, key_tile = 0;
};

void run_keys_outside(const Layout& x, const L2Launch& launch, L2Cache& cache) {
  const TileGrid grid = x.tiles();
  const std::int64_t visited = visited_key_tiles(x.p, x.tiling, grid.tiles - 1).end;
  const auto start = [](std::int64_t block) { return HeadBlock{.head = block}; };
  const auto step = [&](HeadBlock& block) {
    if (block.key_tile < visited) {
      if (block.query_tile == 0) {
        x.read_keys(cache, x.k, block.head, block.key_tile);
        x.read_keys(cache, x.v, block.head, block.key_tile);
      }
      // Query tiles that see nothing of the key tile cost no step.
      while (visited_key_tiles(x.p, x.tiling, block.query_tile).end <= block.key_tile) {
        ++block.query_tile;
      }
      const TilePosition at{.head = block.head, .tile = block.query_tile};
      for (const Region* read : {&x.q, &x.o, &x.m, &x.l}) x.read_rows(cache, *read, at);
      for (const Region* written : {&x.o, &x.m, &x.l}) x.write_rows(cache, *written, at);
      if (++block.query_tile == grid.tiles) {
        block.query_tile = 0;
        ++block.key_tile;
      }
      if (block.key_tile < visited) return true;
    }
    x.lse.write(cache, block.head, 0, x.p.query_len);
    return false;
  };
  run_in_waves(grid.heads, launch.resident_blocks, start, step);
}

void run_standard(const Layout& x, const L2Launch& launch, L2Cache& cache) {
  const TileGrid grid = x.tiles();
  const std::int64_t tiles_of_row = key_tiles(x.p, x.tiling);
  const auto run_pass = [&](std::int64_t walks, auto at_begin, auto of_key_tile, auto at_end) {
    const auto start = [&](std::int64_t block) {
      return TileBlock{.at = tile_position(launch.grid_order, launch.group, grid, block),
                       .steps = tiles_of_row * walks};
    };
    const auto step = [&](TileBlock& block) {
      if (block.step == 0) at_begin(block.at);
      if (block.step < block.steps) of_key_tile(block.at, block.step);
      if (++block.step < block.steps) return true;
      at_end(block.at);
      return false;
    };
    run_in_waves(grid.size(), launch.resident_blocks, start, step);
  };
  const auto read = [&](const Layout::Bytes& tile) { cache.read(tile.address, tile.count); };
  const auto write = [&](const Layout::Bytes& tile) { cache.write(tile.address, tile.count); };
  const auto nothing = [](const TilePosition&) {};
  run_pass(
      1, [&](const TilePosition& at) { x.read_rows(cache, x.q, at); },
      [&](const TilePosition& at, std::int64_t tile) {
        x.read_keys(cache, x.k, at.head, tile);
        write(x.matrix_tile(x.scores, at, tile));
      },
      nothing);
  const auto is_visited = [&](const TilePosition& at, std::int64_t tile) {
    return visited_key_tiles(x.p, x.tiling, at.tile).holds(tile);
  };
  run_pass(
      x.tiling.score_reads, nothing,
      [&](const TilePosition& at, std::int64_t step) {
        const std::int64_t tile = step % tiles_of_row;
        if (is_visited(at, tile)) read(x.matrix_tile(x.scores, at, tile));
        const bool is_last_walk = step >= tiles_of_row * (x.tiling.score_reads - 1);
        if (is_last_walk) write(x.matrix_tile(x.weights, at, tile));
      },
      [&](const TilePosition& at) { x.write_rows(cache, x.lse, at); });
  run_pass(
      1, nothing,
      [&](const TilePosition& at, std::int64_t tile) {
        if (!is_visited(at, tile)) return;
        read(x.matrix_tile(x.weights, at, tile));
        x.read_keys(cache, x.v, at.head, tile);
      },
      [&](const TilePosition& at) { x.write_rows(cache, x.o, at); });
}

}  // namespace

L2Shape l2_shape_of(const GpuModel& gpu, std::int64_t line_bytes) {
  return {.bytes = gpu.l2_bytes,
          .ways = gpu.l2_ways,
          .line_bytes = std::max(line_bytes, gpu.l2_line_bytes),
          .sector_bytes = std::max(gpu.l2_sector_bytes, line_bytes / 32)};
}

double l2_accesses(const L2Launch& launch, std::int64_t line_bytes) {
  return traffic_without_cache(launch.dataflow, launch.problem, launch.tiling).total() /
         static_cast<double>(line_bytes);
}

L2Counts simulate_l2(const L2Launch& launch, const L2Shape& shape) {
  L2Cache cache(shape);
  const Layout layout(launch, shape.line_bytes);
  switch (launch.dataflow) {
    case Dataflow::queries_outside:
      run_queries_outside(layout, launch, cache);
      break;
    case Dataflow::keys_outside:
      run_keys_outside(layout, launch, cache);
      break;
    case Dataflow::standard:
      run_standard(layout, launch, cache);
      break;
    case Dataflow::unknown:
      throw std::logic_error("the tiles of this kernel are not known");
  }
  cache.flush();
  return cache.counts();
}

std::optional<L2Simulation> simulate_l2(const L2Launch& launch, const GpuModel& gpu) {
  constexpr double comfortable = 1 << 24, bearable = 1 << 28;
  const auto e = static_cast<std::int64_t>(format_of(launch.problem.element_type).size_bytes);
  const std::int64_t tile_bytes =
      launch.problem.head_dim * e * std::min(launch.tiling.query_tile, launch.tiling.key_tile);
  std::int64_t line_bytes = gpu.l2_line_bytes;
  while (l2_accesses(launch, line_bytes) > comfortable && 2 * line_bytes <= tile_bytes) {
    line_bytes *= 2;
  }
  if (l2_accesses(launch, line_bytes) > bearable) return std::nullopt;
  return L2Simulation{simulate_l2(launch, l2_shape_of(gpu, line_bytes)), line_bytes};
}

}  // namespace attest
