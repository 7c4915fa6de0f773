#pragma once

#include <cstdint>

#include "core/attention/layout.hpp"
#include "core/attention/problem.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

inline constexpr int bwd_query_tile = 64;
inline constexpr float bwd_log2_e = 1.44269504088896340736F;
inline constexpr int bwd_key_block = 64;  ///< keys whose largest numbers are known together

/// Words of 32 bits that 64 columns of dQ of a row tile take in memory: their sums and, where these
/// are integers, behind them what each row has used of the range.
template <bool in_units>
inline constexpr int bwd_dq_panel_words = bwd_query_tile * 64 + (in_units ? bwd_query_tile : 0);

/// Queries that see a key, or keys that a query sees, one after the other: [first, past), none
/// where that is empty.
struct alignas(8) BwdSeen {
  int first, past;
};

/// Layout of the memory that the launches share: rows of every query head in tiles of 64, as many
/// tiles as the longest entry has.
struct BwdSums {
  float* dq;     ///< [heads of all entries, tiles, panels of 64 columns], a panel in the order of
                 ///< wgmma's results: fp32 or, in units, integers
  float* lse;    ///< [heads of all entries, tiles * 64]: LSE log2(e)
  float* delta;  ///< [heads of all entries, tiles * 64]: dO.O of the row, less dLSE
  int tiles;
  // In units alone (units.cuh).
  float* units_in_one;  ///< as lse
  float2* key_sizes;    ///< [KV heads of all entries, key_blocks, 64]: a key's max |k| and max |v|
  float2* block_sizes;  ///< [KV heads of all entries, key_blocks]: of 64 keys
  int key_blocks;       ///< as many as the longest entry has
  // Of every entry, where prefixes or documents have a say (ranges.cuh); else null.
  BwdSeen* keys_of_rows;  ///< [entries, queries]
  BwdSeen* rows_of_keys;  ///< [entries, keys]
  BwdSeen* row_tiles;     ///< [entries, key tiles]: row tiles with rows that see some of their keys
};

/// Parameters of a launch, for its blocks: a `const __grid_constant__` parameter, since the copy
/// engine reads the maps in place. Lengths are in 32 bits.
struct BwdParameters {
  TensorMap q, k, v, d_o;
  void *dk, *dv;
  Strides dk_strides, dv_strides;
  BwdSums sums;
  const std::int32_t *query_starts, *key_starts;  ///< null without lengths
  const std::uint8_t* key_mask;                   ///< [batch, keys], 0: hidden; null without
  Problem problem;
  int batch, heads, kv_heads, group, queries, keys, columns, value_columns;
  int key_tiles;    ///< of a KV head at the most
  int tiles;        ///< key tiles of all KV heads of all entries
  int section;      ///< KV heads whose tiles are taken together, the longest first; 0: in turn
  float c;          ///< scale * log2(e), or log2(e) times the softcap
  float per_score;  ///< scale / softcap
  float scale;
  const float* slopes;  ///< of ALiBi, [heads]; null: none
  unsigned* counters;   ///< {tiles taken, blocks that ended}, 0 and left at 0; null: in turn
};

/// One key tile of a KV head, as the thread that loads describes it to the others: all that takes a
/// division is worked out there.
struct alignas(16) BwdWork {
  int kv_head, entry;  ///< of K, V and their gradients; packed entries: 0
  int plane;           ///< of the first query head that shares the KV head, among all
  int key;             ///< the tile's first
  int first_query_row, first_key_row;  ///< in memory
  int queries, keys;                   ///< of the entry
  int begin, reach;                    ///< query i sees keys [i + begin, i + reach)
  int first, past;                     ///< row tiles in which some row may see a key of the tile
  int count;                           ///< none_left: no more work
  int next;                            ///< key tile that the block takes after this one
  int request;                         ///< entry of the batch
  int diagonal;                        ///< key from which ALiBi counts the distances of query 0

  static constexpr int none_left = -1;
};

/// Rows that see a key of the work's entry, as far as prefixes and documents have a say.
__device__ __forceinline__ BwdSeen bwd_rows_of_key(const BwdParameters& p, const BwdWork& work,
                                                   int key) {
  return p.sums.rows_of_keys[work.request * p.keys + key];
}

/// Row tiles [first, past).
struct BwdRowTiles {
  int first, past;

  /// Row tiles that hold rows [from, to).
  __device__ __forceinline__ BwdRowTiles(int from, int to)
      : first(from / bwd_query_tile),
        past(from < to ? (to + bwd_query_tile - 1) / bwd_query_tile : first) {}
};

/// Row tiles with rows that see some of the keys [key, past_key) by mask.
__device__ __forceinline__ BwdRowTiles bwd_tiles_by_mask(const BwdWork& work, int key,
                                                         int past_key) {
  past_key = min(past_key, work.keys);
  const int from = max(0, key - work.reach + 1);
  return {from, key < past_key ? min(work.queries, past_key - work.begin) : from};
}

/// True if every pair of `keys` keys from `key` on and the rows of a tile from `row` on is seen, as
/// far as no key is hidden.
__device__ __forceinline__ bool bwd_sees_all(const BwdParameters& p, const BwdWork& work, int key,
                                             int keys, int row) {
  const int last_key = key + keys - 1, last_row = row + bwd_query_tile - 1;
  const bool exist = last_key < work.keys && last_row < work.queries;
  if (p.sums.rows_of_keys != nullptr) {
    return exist && bwd_rows_of_key(p, work, last_key).first <= row &&
           bwd_rows_of_key(p, work, key).past > last_row;
  }
  return exist && last_key < row + work.reach && key >= last_row + work.begin;
}

}  // namespace attest
