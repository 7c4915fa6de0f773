#pragma once

// Which keys a block reads: the chunks of an entry, and which chunk is whose.

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
  int prefix_chunks = 0;   ///< of the keys that entries share, under a Cascade
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
  /// Units of the keys that entries share.
  [[nodiscard]] std::int64_t prefix_units() const {
    return ceil_div(std::int64_t{batch} * queries * group, tile_rows) * kv_heads * prefix_chunks;
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
  int first_chunk = 0, chunks = 0;  ///< that some row sees; one where no row sees any key
  int prefix_chunks = 0;            ///< before them, which PrefixList gives to somebody else
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
    first_chunk = chunk_of(from);
    chunks = from < to ? chunk_of(to - 1) - first_chunk + 1 : 1;
    const int prefix = sizes.prefix_chunks;
    if (prefix == 0 || reach.past_key(0) < prefix * chunk_keys || chunks <= prefix) return;
    prefix_chunks = first_chunk = prefix;
    chunks -= prefix;
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

  /// The entry's chunk that it says: of those that begin at multiples of chunk_keys.
  __device__ void place_chunk() {
    chunk_first = (of.first_chunk + chunk) * of.chunk_keys;
    chunk_past = chunk_first + of.chunk_keys;
  }
};

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
    unit.chunk_first = (unit.of.first_chunk + step) * chunk_step;
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
    all_.reach.keys = sizes.prefix_chunks * sizes.chunk_keys;
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
    at_ += static_cast<int>(gridDim.x);
    return true;
  }

 private:
  const DecodeSizes& sizes_;
  DecodeEntry all_;
  int owner_ = -1;  ///< an entry in whose table the shared pages stand
  int at_;          ///< number of the next unit
};

/// Starts the launch of the chunks that entries share. The launch of the others may begin before it
/// has ended, and must not end before.
using PrefixLaunch = void (*)(const ForwardArguments&, const DecodeSizes&, Device&);

}  // namespace attest
