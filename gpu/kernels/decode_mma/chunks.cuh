#pragma once

// Into which chunks the keys of an entry are cut, as the host and the device know them. Which block
// takes which is in unit_lists.cuh.

#include <algorithm>
#include <cstdint>

#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/divisor.hpp"
#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/tile_plan.hpp"

namespace attest {

/// Chunks begin at multiples of so many keys where a Plan says how many there are.
inline constexpr int chunk_step = 64;
/// Keys of a step of Overlap::yes, of which shared chunks are multiples.
inline constexpr int prefix_tile_keys = 128;
/// Chunks, over all heads and row tiles, into which KeySplitRule::own cuts one entry at the most,
/// and blocks of KeySplitRule::stream: two for every SM of the largest GPU there is.
inline constexpr int most_blocks = 264;
/// Blocks of a cluster, and so chunks of an entry under Combine::cluster: what every GPU with
/// clusters takes.
inline constexpr int most_in_cluster = 8;

/// Sizes of a launch that the host knows, in the 32 bits that a block counts in: a division of 64
/// bits takes a GPU as long as a load. Of 32 bits it takes 100 clocks, and a block begins with ten
/// that wait for each other, so the host prepares them.
struct DecodeSizes {
  int batch = 0, query_heads = 0, kv_heads = 0, group = 0;
  int queries = 0, keys = 0;  ///< of an entry, at the most
  int tile_rows = 0, most_row_tiles = 0;
  /// Keys of a chunk: chunk i holds keys [i chunk_keys, (i + 1) chunk_keys); 0: the length of an
  /// entry says it.
  int chunk_keys = 0;
  int most_chunks = 1;     ///< of an entry
  bool is_stream = false;  ///< blocks cut keys where their shares of the whole batch end
  /// Under a Cascade: keys that entries share and that are done once, and their chunks.
  /// Overlap::yes takes all but the last few, so that its last chunk may be shorter than others.
  int prefix_keys = 0, prefix_chunks = 0;
  Divisor by_group, by_kv_heads, by_row_tiles, by_chunks, by_chunk_keys;
  Divisor by_page;  ///< by the keys of a page, which no Problem says

  static DecodeSizes of(const Problem& problem, const Plan& plan) {
    DecodeSizes sizes;
    sizes.batch = static_cast<int>(problem.batch);
    sizes.query_heads = static_cast<int>(problem.query_heads);
    sizes.kv_heads = static_cast<int>(problem.kv_heads);
    sizes.group = sizes.query_heads / sizes.kv_heads;
    sizes.queries = static_cast<int>(problem.query_len);
    sizes.keys = static_cast<int>(problem.key_len);
    sizes.tile_rows = static_cast<int>(std::max<std::int64_t>(1, plan.query_tile));
    sizes.most_row_tiles =
        static_cast<int>(ceil_div(problem.query_len * sizes.group, sizes.tile_rows));
    if (plan.key_split_rule == KeySplitRule::own) {
      sizes.most_chunks =
          std::max(1, most_blocks / std::max(1, sizes.kv_heads * sizes.most_row_tiles));
    } else if (plan.key_split_rule == KeySplitRule::stream) {
      sizes.is_stream = true;
      sizes.chunk_keys = chunk_step;  // the least that a block takes of a row
      sizes.most_chunks = static_cast<int>(
          std::clamp<std::int64_t>(ceil_div(problem.key_len, chunk_step), 1, most_blocks));
    } else if (plan.key_split_rule == KeySplitRule::even) {
      sizes.most_chunks = static_cast<int>(plan.key_splits);
    } else {
      sizes.chunk_keys = static_cast<int>(std::max<std::int64_t>(1, plan.split_keys));
      sizes.most_chunks =
          std::max(1, static_cast<int>(ceil_div(problem.key_len, sizes.chunk_keys)));
      if (plan.overlap == Overlap::yes) ++sizes.most_chunks;  // shared keys may end within a chunk
    }
    const auto by = [](int divisor) { return Divisor(std::max(1, divisor)); };
    sizes.by_group = by(sizes.group);
    sizes.by_kv_heads = by(sizes.kv_heads);
    sizes.by_row_tiles = by(sizes.most_row_tiles);
    sizes.by_chunks = by(sizes.most_chunks);
    sizes.by_chunk_keys = by(sizes.chunk_keys);
    return sizes;
  }
  /// Units at the most: lengths on the device may ask for fewer.
  [[nodiscard]] std::int64_t most_units() const {
    const std::int64_t lines = std::int64_t{batch} * kv_heads * most_row_tiles;
    return is_stream ? lines * std::max<std::int64_t>(1, ceil_div(keys, chunk_step))
                     : lines * most_chunks;
  }
  /// Rows of all partial results.
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t partial_rows() const {
    if (is_stream) return std::int64_t{2} * most_blocks * tile_rows;
    return std::int64_t{most_chunks} * batch * query_heads * queries;
  }
  /// Takes chunks of the first `shared` keys out of entries' own work.
  void share(std::int64_t shared, const Plan& plan) {
    const int step = plan.overlap == Overlap::yes ? prefix_tile_keys : chunk_keys;
    prefix_keys = static_cast<int>(shared / step * step);
    prefix_chunks = static_cast<int>(ceil_div(prefix_keys, chunk_keys));
  }
  /// Units of the keys that entries share, in tiles of so many rows of all entries.
  [[nodiscard]] std::int64_t prefix_units(std::int64_t rows) const {
    return ceil_div(std::int64_t{batch} * queries * group, rows) * kv_heads * prefix_chunks;
  }
  /// Keys of a chunk of an entry with so many keys.
  [[nodiscard]] ATTEST_HOST_DEVICE int keys_of_chunk(int length) const {
    if (chunk_keys > 0) return chunk_keys;
    const int share = (length + most_chunks - 1) / most_chunks;
    const int steps = (share + chunk_step - 1) / chunk_step;
    return chunk_step * (steps > 1 ? steps : 1);
  }
};

/// True if arrays on the device say how long an entry is.
__device__ inline bool has_own_lengths(const ForwardArguments& a) {
  return a.query_starts != nullptr || a.page_table.page_size > 0;
}

/// Rows and keys of one entry of the batch, as the device's arrays say.
struct DecodeEntry {
  int q_start = 0, k_start = 0;  ///< its first rows in packed tensors
  int queries = 0;
  int row_tiles = 0;  ///< of a kv head
  int chunk_keys = 1;
  int first_key = 0;      ///< of the first chunk that some row sees
  int chunks = 0;         ///< that some row sees; one where no row sees any key
  int prefix_chunks = 0;  ///< before them, which PrefixList gives to somebody else
  KeyReach reach{};

  DecodeEntry() = default;
  __device__ DecodeEntry(const ForwardArguments& a, const DecodeSizes& sizes, int entry)
      : queries(sizes.queries) {
    int keys = sizes.keys;
    if (a.query_starts != nullptr) {
      q_start = a.query_starts[entry];
      queries = a.query_starts[entry + 1] - q_start;
    }
    if (a.page_table.page_size > 0) {
      keys = static_cast<int>(a.page_table.key_len(entry));
    } else if (a.key_starts != nullptr) {
      k_start = a.key_starts[entry];
      keys = a.key_starts[entry + 1] - k_start;
    }
    row_tiles = queries == sizes.queries
                    ? sizes.most_row_tiles
                    : (queries * sizes.group + sizes.tile_rows - 1) / sizes.tile_rows;
    if (row_tiles == 0) return;
    reach = KeyReach(a.problem, queries, keys);
    chunk_keys = sizes.keys_of_chunk(keys);
    const int from = reach.first_key(0), to = reach.past_key(queries - 1);
    const auto chunk_of = [&](int key) {
      return sizes.chunk_keys > 0 ? sizes.by_chunk_keys.quotient(key) : key / chunk_keys;
    };
    const int shared = sizes.prefix_keys;
    if (shared > 0 && reach.past_key(0) >= shared && shared < to) {
      prefix_chunks = sizes.prefix_chunks;
      first_key = shared;
      chunks = chunk_of(to - 1 - shared) + 1;
      return;
    }
    const int first_chunk = chunk_of(from);
    first_key = first_chunk * chunk_keys;
    chunks = from < to ? chunk_of(to - 1) - first_chunk + 1 : 1;
  }
  /// All chunks of a row: so many partial results are merged.
  __device__ int all_chunks() const { return prefix_chunks + chunks; }
  /// Units of work that blocks have to do for the entry.
  __device__ int units(int kv_heads) const { return row_tiles * kv_heads * chunks; }
};

/// One thing to do: a tile of rows and a chunk of keys.
struct DecodeUnit {
  DecodeEntry of;
  int entry = 0, kv_head = 0, row_tile = 0;
  int chunk = 0;        ///< counted from the entry's first one
  int first_block = 0;  ///< KeySplitRule::stream: the block that has the row tile's first chunk
  int chunk_first = 0, chunk_past = 0;  ///< keys of the chunk

  /// The entry's chunk that it says.
  __device__ void place_chunk() {
    chunk_first = of.first_key + chunk * of.chunk_keys;
    chunk_past = chunk_first + of.chunk_keys;
  }
};

/// Starts the launch of the chunks that entries share, and says how many blocks of it run at once.
/// The launch of the others may begin before it has ended, and must not end before.
using PrefixLaunch = std::int64_t (*)(const ForwardArguments&, const DecodeSizes&, Device&);

}  // namespace attest
