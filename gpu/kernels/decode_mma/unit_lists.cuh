#pragma once

// Which units, each a tile of rows and a chunk of keys, a block takes: lists of those of single
// entries, and of the prefix that entries share.

#include "gpu/kernels/decode_mma/chunks.cuh"

namespace attest {

/// Numbers what entries have to do, one after the other, and finds the entry of a number. All lanes
/// of every warp ask alike, for larger and larger numbers; lanes look at the lengths of 32 entries
/// at a time.
class EntryScan {
 public:
  __device__ EntryScan(const ForwardArguments& a, const DecodeSizes& sizes)
      : a_(a),
        sizes_(sizes),
        are_alike_(!has_own_lengths(a)),
        lane_entry_(entry_at(are_alike_ ? 0 : lane())),
        total_if_alike_(sizes.batch * lane_entry_.units(sizes.kv_heads)) {}

  /// DecodeEntry::units() of all entries.
  __device__ int total() const {
    if (are_alike_) return total_if_alike_;
    int sum = 0;
    for (int entry = lane(); entry < sizes_.batch; entry += 32) {
      sum += entry_at(entry).units(sizes_.kv_heads);
    }
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(0xffffffffU, sum, distance);
    }
    return sum;
  }

  /// Finds the entry that owns unit `number` and its index there; false if none.
  __device__ bool find(int number, DecodeUnit& unit, int& within) {
    if (are_alike_) {
      if (number >= total_if_alike_) return false;
      const int each = lane_entry_.units(sizes_.kv_heads);
      unit.entry = number < each ? 0 : number / each;
      within = number - unit.entry * each;
      unit.of = lane_entry_;
      return true;
    }
    while (true) {
      const int units = first_ + lane() < sizes_.batch ? lane_entry_.units(sizes_.kv_heads) : 0;
      int sum = units;  // of this lane's entry and those before
#pragma unroll
      for (int distance = 1; distance < 32; distance *= 2) {
        const int other = __shfl_up_sync(0xffffffffU, sum, static_cast<unsigned>(distance));
        if (lane() >= distance) sum += other;
      }
      const unsigned past = __ballot_sync(0xffffffffU, number < before_ + sum);
      if (past != 0) {
        const int owner = __ffs(static_cast<int>(past)) - 1;
        within = number - before_ - __shfl_sync(0xffffffffU, sum - units, owner);
        unit.entry = first_ + owner;
        unit.of = entry_at(unit.entry);
        return true;
      }
      before_ += __shfl_sync(0xffffffffU, sum, 31);
      first_ += 32;
      if (first_ >= sizes_.batch) return false;
      lane_entry_ = entry_at(first_ + lane());
    }
  }

 private:
  static __device__ int lane() {
    return static_cast<int>(threadIdx.x) % 32;
  }
  __device__ DecodeEntry entry_at(int entry) const {
    return entry < sizes_.batch ? DecodeEntry(a_, sizes_, entry) : DecodeEntry();
  }

  const ForwardArguments& a_;
  const DecodeSizes& sizes_;
  const bool are_alike_;
  DecodeEntry lane_entry_;
  const int total_if_alike_;
  int first_ = 0,
      before_ = 0;  ///< of the 32 entries that lanes look at: the first, units before it
};

/// Units that are chunks at places of their own, by number. All lanes of every warp ask alike, for
/// larger and larger numbers.
class ChunkList {
 public:
  __device__ ChunkList(const ForwardArguments& a, const DecodeSizes& sizes)
      : sizes_(sizes), scan_(a, sizes) {}

  /// Finds the unit of that number; false: there is none. Heads first: their keys lie beside each
  /// other.
  __device__ bool find(int number, DecodeUnit& unit) {
    int within = 0;
    if (!scan_.find(number, unit, within)) return false;
    const int tile = sizes_.by_kv_heads.quotient(within), tiles = unit.of.row_tiles;
    unit.kv_head = within - tile * sizes_.kv_heads;
    unit.chunk = tiles == sizes_.most_row_tiles ? sizes_.by_row_tiles.quotient(tile) : tile / tiles;
    unit.row_tile = tile - unit.chunk * tiles;
    unit.place_chunk();
    return true;
  }

 protected:
  const DecodeSizes& sizes_;
  EntryScan scan_;
};

/// Gives a block its units: chunks, or under KeySplitRule::stream its share of all keys. All lanes
/// of every warp ask alike.
class UnitList : ChunkList {
 public:
  __device__ UnitList(const ForwardArguments& a, const DecodeSizes& sizes)
      : ChunkList(a, sizes), at_(static_cast<int>(blockIdx.x)) {
    if (!sizes.is_stream) return;
    const auto blocks = static_cast<int>(gridDim.x);
    share_ = max(least_share, (scan_.total() + blocks - 1) / blocks);
    at_ *= share_;
  }

  /// The block's next unit; false: there is none.
  __device__ bool next(DecodeUnit& unit) {
    if (share_ > 0) return at_ < past_share() && take_share(unit);
    if (!find(at_, unit)) return false;
    at_ += static_cast<int>(gridDim.x);
    return true;
  }

 private:
  static constexpr int least_share = 2;  ///< of chunk_step keys: less costs more than it saves

  __device__ int past_share() const { return (static_cast<int>(blockIdx.x) + 1) * share_; }
  /// Takes what the block's share has of a row tile. Row tiles follow each other, each with all of
  /// its steps, so that a block cuts two at the most.
  __device__ bool take_share(DecodeUnit& unit) {
    int within = 0;
    if (!scan_.find(at_, unit, within)) return false;
    const int steps = unit.of.chunks, step = within % steps, begin = at_ - step;
    const int taken = min(past_share() - at_, steps - step);
    unit.kv_head = within / steps % sizes_.kv_heads;
    unit.row_tile = within / steps / sizes_.kv_heads;
    unit.chunk_first = unit.of.first_key + step * chunk_step;
    unit.chunk_past = unit.chunk_first + taken * chunk_step;
    unit.first_block = begin / share_;
    unit.chunk = static_cast<int>(blockIdx.x) - unit.first_block;
    unit.of.chunks = (begin + steps - 1) / share_ - unit.first_block + 1;
    at_ += taken;
    return true;
  }

  int at_;         ///< number of the next unit; in shares, of the next step
  int share_ = 0;  ///< steps of a block; 0: units are chunks
};

/// Combine::cluster: one unit a block, by the block's number. The blocks of a cluster have the
/// chunks of one row tile; of an entry with fewer chunks than there may be some have none. Asked
/// like a UnitList.
class ClusterList {
 public:
  __device__ ClusterList(const ForwardArguments& a, const DecodeSizes& sizes)
      : a_(a), sizes_(sizes) {}

  /// True once at the most.
  __device__ bool next(DecodeUnit& unit) {
    if (is_asked_) return false;
    is_asked_ = true;
    const auto block = static_cast<int>(blockIdx.x);
    const int line = sizes_.by_chunks.quotient(block), tile = sizes_.by_kv_heads.quotient(line);
    unit.chunk = block - line * sizes_.most_chunks;
    unit.kv_head = line - tile * sizes_.kv_heads;
    unit.entry = sizes_.by_row_tiles.quotient(tile);
    unit.row_tile = tile - unit.entry * sizes_.most_row_tiles;
    unit.of = DecodeEntry(a_, sizes_, unit.entry);
    unit.place_chunk();
    return unit.row_tile < unit.of.row_tiles && unit.chunk < unit.of.chunks;
  }

 private:
  const ForwardArguments& a_;
  const DecodeSizes& sizes_;
  bool is_asked_ = false;
};

/// Units of the keys that entries share: chunks from key 0 on, whose tiles hold rows of all
/// entries, those of an entry that has not got all of the shared keys among them, though nobody
/// wants their results. Asked like a UnitList.
class PrefixList {
 public:
  __device__ PrefixList(const ForwardArguments& a, const DecodeSizes& sizes)
      : sizes_(sizes), at_(static_cast<int>(blockIdx.x)) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    for (int first = 0; first < sizes.batch && owner_ < 0; first += 32) {
      const int entry = first + lane;
      const bool is_member = entry < sizes.batch && DecodeEntry(a, sizes, entry).prefix_chunks > 0;
      const unsigned members = __ballot_sync(0xffffffffU, is_member);
      if (members != 0) owner_ = first + __ffs(static_cast<int>(members)) - 1;
    }
    all_.queries = sizes.batch * sizes.queries;
    all_.row_tiles = (all_.queries * sizes.group + sizes.tile_rows - 1) / sizes.tile_rows;
    all_.chunk_keys = sizes.chunk_keys;
    all_.chunks = sizes.prefix_chunks;
    all_.reach.begin = -beyond_all_keys;
    all_.reach.reach = beyond_all_keys;
    all_.reach.keys = sizes.prefix_keys;
  }
  /// Row tiles first: they read the same keys.
  __device__ bool next(DecodeUnit& unit) {
    if (owner_ < 0 || at_ >= all_.units(sizes_.kv_heads)) return false;
    unit.of = all_;
    unit.entry = owner_;
    unit.row_tile = at_ % all_.row_tiles;
    unit.kv_head = at_ / all_.row_tiles % sizes_.kv_heads;
    unit.chunk = at_ / all_.row_tiles / sizes_.kv_heads;
    unit.place_chunk();
    unit.chunk_past = min(unit.chunk_past, sizes_.prefix_keys);
    at_ += static_cast<int>(gridDim.x);
    return true;
  }

 private:
  const DecodeSizes& sizes_;
  DecodeEntry all_;
  int owner_ = -1;  ///< an entry in whose table the shared pages stand
  int at_;          ///< number of the next unit
};

}  // namespace attest
