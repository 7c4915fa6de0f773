#pragma once

#include <cstdint>

#include "core/attention/grid_order.hpp"
#include "core/attention/key_lists.hpp"
#include "core/attention/layout.hpp"
#include "gpu/kernels/visible_keys.cuh"
#include "gpu/primitives/tma.cuh"

namespace attest {

/// Parameters of a launch, for its blocks: a `const __grid_constant__` parameter, since the copy
/// engine reads the maps in place. Lengths are in 32 bits.
struct Fa3Parameters : CausalKeys<Fa3Parameters> {
  TensorMap q, k, v;
  TensorMap o;   ///< boxes of 16 rows
  void* output;  ///< address of O
  Strides o_strides;
  float* lse;      ///< [batch, heads, queries]
  float* partial;  ///< with splits: [splits, batch * heads * queries, columns + 2], else null
  int heads;       ///< query heads
  int group;       ///< query heads of a kv head
  int queries, keys, columns;
  /// The first row of output tile 0, at most 0 and a multiple of a warpgroup's rows: under a causal
  /// mask the tile that the queries do not fill is the one with the fewest keys.
  int first_row;
  int reach;          ///< query i sees keys below min(keys, i + reach)
  float c;            ///< scale * log2(e), or 1 with factor
  float factor;       ///< scores are multiplied by it first; 1 where c is positive
  bool stores_boxes;  ///< O's rows end where a box's do: columns are a multiple of 8
  bool scales_first;  ///< factor is not 1
  /// Every tile's largest scores are looked for before it is weighed: references never lag.
  bool searches_first;
  TileGrid grid;  ///< batch * heads, query tiles times splits
  int splits;
  int tiles;  ///< all of them: grid.size()
  std::int64_t order, order_group;
  unsigned* counters;  ///< {tiles taken, blocks that ended}, 0 and left at 0; null: in turn
  unsigned delay_seed;
};

/// Keys of a unit of a list. A key tile is two of them, which may lie anywhere.
inline constexpr int fa3_unit_keys = 64;

/// Parameters where lists say which keys a block's rows see. An output tile has one list, whose
/// items are 2^item_shift units each.
struct Fa3ListedParameters : Fa3Parameters {
  KeyLists lists;
  int item_shift;
};

/// The keys that a row sees, one after the other: [first, past).
struct alignas(8) Fa3RowRange {
  int first, past;
};

/// Parameters where sums have a sink, or O a gate and a residual: what is done where a row ends.
struct Fa3EndedParameters : Fa3Parameters {
  const float* sinks;           ///< [heads]; null: none
  const void *gate, *residual;  ///< [batch, heads, queries, columns] in O's format; null: none
};

/// Parameters where rows see keys between two ends, of which padding may hide some, and scores may
/// have a softcap or terms of ALiBi, besides.
struct Fa3MaskedParameters : Fa3EndedParameters {
  int begin;                     ///< query i sees no key below i + begin
  const Fa3RowRange* ranges;     ///< [batch, queries]; null: begin and reach say what rows see
  const std::uint8_t* key_mask;  ///< [batch, keys], 0: hidden; null: none is
  float softcap;                 ///< 0: none; else c is 1, and factor log2(e)
  float per_softcap;             ///< scale / softcap
  const float* slopes;           ///< [heads]; null: none
  float slope_unit;              ///< what a natural logarithm counts in the scores slopes lower
  int diagonal;                  ///< key from which slopes count the distances of query 0

  /// Keys that `query` of an entry sees. Without a key, `first` may be any that is not below
  /// `past`.
  __device__ Fa3RowRange range_of(int entry, int query) const {
    if (ranges == nullptr) return {max(0, query + begin), past_key(query)};
    return ranges[static_cast<std::int64_t>(entry) * queries + max(0, query)];
  }
  /// True if some row does not see the first key.
  __device__ bool has_first_keys() const { return begin > -beyond_all_keys; }
};

/// Parameters where scores have a bias or weights fall, besides.
struct Fa3ModifiedParameters : Fa3MaskedParameters {
  const float* bias;  ///< null: none; -infinity hides a key
  Strides bias_strides;
  bool bias_in_pairs;  ///< two neighbouring numbers lie at a multiple of 8 bytes
  bool drops;
  unsigned last_fallen;  ///< weights fall whose word is at most this
  float kept_scale;      ///< what makes up for them; 1 where none falls
  std::uint64_t dropout_seed;
  unsigned dropout_offset;
};

/// One output tile or its part of a split, a block's or what of it is for a warpgroup. All that
/// takes a division is worked out by the thread that loads: nobody waits for it.
struct alignas(16) Fa3Work {
  int row;            ///< its first query; below 0 for rows that there are not
  int part;           ///< of the splits
  int entry;          ///< of the batch
  int head, kv_head;  ///< in the entry
  int first;          ///< key tile; later ones first: first is the lowest
  int count;          ///< key tiles; their last is first + count - 1; none_left: no more work
  int skipped;        ///< key tiles before them that the block has and this warpgroup does not see

  static constexpr int none_left = -1;
};

/// Work where entries have lengths of their own: `entry` is that of Q's and O's strides, 0 where
/// entries are packed.
struct alignas(16) Fa3RaggedWork : Fa3Work, CausalKeys<Fa3RaggedWork> {
  int queries, keys;       ///< of the entry
  int reach;               ///< as in Fa3Parameters, of the entry
  int first_query;         ///< its row in Q and O
  std::int64_t first_lse;  ///< that of its row 0 and this head
  std::int64_t unused;     ///< no byte of it is left out where it is copied
};

/// Work whose keys a list names: what Fa3Work counts are pairs of its units.
struct alignas(16) Fa3ListedWork : Fa3Work {
  const std::int32_t* items;
  int item_shift;
  int units;  ///< of the list; an odd one has the last pair to itself
};

/// The units whose keys a key tile holds.
struct Fa3KeyUnits {
  int unit[2];

  /// Stands for none: its keys lie behind all that there are, are read as zeros and hidden.
  static constexpr int none = (1 << 30) / fa3_unit_keys;
};

/// The key tile at a place of a piece of work.
__device__ __forceinline__ int key_tile_of(const Fa3Work&, int place) {
  return place;
}
__device__ __forceinline__ Fa3KeyUnits key_tile_of(const Fa3ListedWork& work, int place) {
  Fa3KeyUnits pair;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const int at = min(2 * place + i, work.units - 1);
    const int unit = (work.items[at >> work.item_shift] << work.item_shift) +
                     (at & ((1 << work.item_shift) - 1));
    pair.unit[i] = 2 * place + i < work.units ? unit : Fa3KeyUnits::none;
  }
  return pair;
}

/// Whose queries, keys and reach a piece of work has: the problem's, or its entry's.
__device__ __forceinline__ const Fa3Parameters& bounds_of(const Fa3Parameters& p, const Fa3Work&) {
  return p;
}
__device__ __forceinline__ const Fa3RaggedWork& bounds_of(const Fa3Parameters&,
                                                          const Fa3RaggedWork& work) {
  return work;
}
/// Row of Q and O in which query 0 lies.
__device__ __forceinline__ int first_query_of(const Fa3Work&) {
  return 0;
}
__device__ __forceinline__ int first_query_of(const Fa3RaggedWork& work) {
  return work.first_query;
}

}  // namespace attest
