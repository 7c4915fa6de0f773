#pragma once

#include <cstddef>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/dependent_launch.cuh"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

// Where entries have lengths of their own, only the device knows which output tiles there are. A
// kernel before the others lists them: entries with the most key tiles first, and of an entry the
// tiles with the most first. Where few tiles are left they are then short ones, and tiles of one
// entry, which read the same keys, stand side by side. Which of two entries alike comes first is
// left to chance: no bit of an answer hangs on the order.

/// An output tile of every query head.
struct alignas(16) Fa3Item {
  int entry;
  int row;    ///< its first query; below 0 for rows that there are not
  int count;  ///< key tiles that its rows see
  int queries, keys;
  int first_query, first_key;  ///< rows of the entry's first ones in packed tensors, else 0
  int all_queries;             ///< rows of Q in all, where it is packed
};

/// The list, in the workspace.
struct alignas(16) Fa3WorkList {
  int items;
  int unused[3];

  __host__ __device__ static std::size_t bytes(std::int64_t most_items) {
    return sizeof(Fa3WorkList) + static_cast<std::size_t>(most_items) * sizeof(Fa3Item);
  }
  __device__ Fa3Item* first() { return reinterpret_cast<Fa3Item*>(this + 1); }
  __device__ const Fa3Item* first() const { return reinterpret_cast<const Fa3Item*>(this + 1); }
};

/// The first row of an entry's first output tile: less the rows that the queries do not fill, in
/// whole warpgroups, so that under a causal mask the tile with the fewest keys is the short one.
ATTEST_HOST_DEVICE inline int fa3_first_row(const Problem& problem, int queries, int tile_rows) {
  constexpr int group_rows = 64;
  if (problem.mask == Mask::none) return 0;
  const int rows = (queries + tile_rows - 1) / tile_rows * tile_rows;
  return (queries - rows) / group_rows * group_rows;
}

/// Queries and keys of one entry, as the device's arrays say.
struct Fa3Entry : CausalKeys<Fa3Entry> {
  int queries, keys, reach, tiles, tile_rows, key_tile;
  int first_query = 0, first_key = 0;

  __device__ Fa3Entry(const ForwardArguments& a, int entry, int tile_rows_, int key_tile_)
      : queries(static_cast<int>(a.problem.query_len)),
        keys(static_cast<int>(a.problem.key_len)),
        tile_rows(tile_rows_),
        key_tile(key_tile_) {
    if (a.query_starts != nullptr) {
      first_query = a.query_starts[entry];
      queries = a.query_starts[entry + 1] - first_query;
    }
    if (a.page_table.page_size > 0) {
      keys = static_cast<int>(a.page_table.key_len(entry));
    } else if (a.key_starts != nullptr) {
      first_key = a.key_starts[entry];
      keys = a.key_starts[entry + 1] - first_key;
    }
    reach = causal_reach(a.problem, queries, keys);
    tiles = (queries + tile_rows - 1) / tile_rows;
  }
  /// Key tiles of the output tile that begins with `row`.
  __device__ int key_tiles(int row) const {
    return (past_key(min(row + tile_rows, queries) - 1) + key_tile - 1) / key_tile;
  }
  /// Key tiles of the longest output tile.
  __device__ int most_key_tiles() const {
    return (past_key(queries - 1) + key_tile - 1) / key_tile;
  }
};

inline constexpr int fa3_list_threads = 512;

/// Entries are sorted by so many sizes: every number of key tiles below 32, then 16 sizes between
/// two powers of two.
inline __device__ int fa3_size_class(int key_tiles) {
  if (key_tiles < 32) return key_tiles;
  const int exponent = 31 - __clz(key_tiles);
  return 32 + 16 * (exponent - 5) + (key_tiles >> (exponent - 4) & 15);
}

/// Makes the list: one block.
template <Executor home>
__global__ void __launch_bounds__(fa3_list_threads)
    fa3_list_work(ForwardArguments a, Fa3WorkList* list, int tile_rows, int key_tile) {
  __shared__ int places[fa3_list_threads];  // of a size's next item
  __shared__ int sums[fa3_list_threads / 32];
  const int thread = static_cast<int>(threadIdx.x), lane = thread % 32, warp = thread / 32;
  const int batch = static_cast<int>(a.problem.batch);
  let_successor_begin();  // it waits for all of this launch
  places[thread] = 0;
  __syncthreads();
  for (int b = thread; b < batch; b += fa3_list_threads) {
    const Fa3Entry entry(a, b, tile_rows, key_tile);
    if (entry.tiles > 0) atomicAdd(&places[fa3_size_class(entry.most_key_tiles())], entry.tiles);
  }
  __syncthreads();
  // The items of all larger sizes come before: thread t adds those of size `last - t`.
  const int size = fa3_list_threads - 1 - thread, items = places[size];
  int sum = items;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
    if (lane >= distance) sum += other;
  }
  if (lane == 31) sums[warp] = sum;
  __syncthreads();
  for (int i = 0; i < warp; ++i) sum += sums[i];
  places[size] = sum - items;
  if (thread == fa3_list_threads - 1) list->items = sum;
  __syncthreads();
  for (int b = warp; b < batch; b += fa3_list_threads / 32) {
    const Fa3Entry entry(a, b, tile_rows, key_tile);
    if (entry.tiles == 0) continue;
    int place = 0;
    if (lane == 0) {
      place = atomicAdd(&places[fa3_size_class(entry.most_key_tiles())], entry.tiles);
    }
    place = __shfl_sync(0xffffffffU, place, 0);
    const int first_row = fa3_first_row(a.problem, entry.queries, tile_rows);
    const int all = a.query_starts != nullptr ? a.query_starts[batch] : 0;
    for (int i = lane; i < entry.tiles; i += 32) {
      const int row = first_row + (entry.tiles - 1 - i) * tile_rows;
      list->first()[place + i] = {b,
                                  row,
                                  entry.key_tiles(row),
                                  entry.queries,
                                  entry.keys,
                                  entry.first_query,
                                  entry.first_key,
                                  all};
    }
  }
}

}  // namespace attest
