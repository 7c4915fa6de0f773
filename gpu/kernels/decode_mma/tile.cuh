#pragma once

// What a block does: tiles of rows against chunks of keys, one after the other.
//
// Each warp takes tiles of Bc keys for itself, of every step's Shape::warps tiles one, and keeps
// its own running softmax of all rows: in the loop no warp waits for another, and what is in flight
// is nearly all of the block's shared memory. While a warp comes to the end of a unit, its copies
// go on with the next one, so that memory is read while results are stored. At the end of a unit
// the warps' results are added in the order of the warps. A row's arithmetic is its own: which
// other rows lie in the tile changes no bit of it.

#include <cfloat>
#include <cstdint>
#include <numbers>
#include <type_traits>

#include "gpu/kernels/decode_mma/key_scales.cuh"
#include "gpu/kernels/decode_mma/loader.cuh"
#include "gpu/kernels/decode_mma/merge.cuh"
#include "gpu/kernels/decode_mma/products.cuh"
#include "gpu/kernels/decode_mma/shape.cuh"
#include "gpu/kernels/decode_mma/unit_lists.cuh"
#include "gpu/kernels/fa2_mma/scoring.cuh"
#include "gpu/kernels/fa2_mma/softmax.cuh"
#include "gpu/primitives/ordered_count.cuh"

namespace attest {

/// Rows and keys of a unit.
template <typename Shape>
struct DecodeSpan {
  int group;  ///< query heads of a kv head
  int first_row, rows;
  int chunk_first, chunk_past;
  int from, to;          ///< keys of the chunk that some row sees
  int all_from, all_to;  ///< that every row sees
  int first_step, steps;

  __device__ DecodeSpan(const DecodeSizes& sizes, const DecodeUnit& unit) {
    const DecodeEntry& entry = unit.of;
    group = sizes.group;
    first_row = unit.row_tile * Shape::rows;
    rows = min(Shape::rows, entry.queries * group - first_row);
    const int first_query = sizes.by_group.quotient(first_row),
              last_query = sizes.by_group.quotient(first_row + rows - 1);
    chunk_first = unit.chunk_first;
    chunk_past = unit.chunk_past;
    from = max(chunk_first, entry.reach.first_key(first_query));
    to = min(chunk_past, entry.reach.past_key(last_query));
    all_from = max(chunk_first, entry.reach.first_key(last_query));
    all_to = min(chunk_past, entry.reach.past_key(first_query));
    // Steps begin at multiples of their keys, so that what a row gets depends on no other row.
    first_step = from / Shape::step_keys;
    const int seen = from < to ? (to + Shape::step_keys - 1) / Shape::step_keys - first_step : 0;
    steps = max(seen, Shape::stages - 1);  // copies are one unit ahead, and no more
  }
};

/// `List` says which units there are: UnitList, ClusterList or PrefixList.
template <typename Shape, bool is_paged, typename List>
class DecodeBlock {
  using T = typename Shape::T;
  using Arguments = typename Shape::Arguments;
  using Row = typename Shape::Row;
  using Products = typename Shape::template ProductsOf<Shape>;
  using Scales = typename Shape::template KeyScalesOf<Shape>;
  using Softmax = typename Shape::template SoftmaxOf<Shape>;
  using Span = DecodeSpan<Shape>;
  using Loader = KeyLoader<Shape, is_paged>;
  static constexpr int D = Shape::D, Bc = Shape::Bc, stages = Shape::stages;
  static constexpr bool is_prefix = std::is_same_v<List, PrefixList>;
  static constexpr bool is_cluster = std::is_same_v<List, ClusterList>;

 public:
  /// `shared`: Shape::shared_bytes.
  __device__ DecodeBlock(const Arguments& a, const DecodeSizes& sizes, unsigned char* shared)
      : a_(a),
        sizes_(sizes),
        list_(a, sizes),
        warp_(static_cast<int>(threadIdx.x) / 32),
        lane_(static_cast<int>(threadIdx.x) % 32),
        queries_(reinterpret_cast<T*>(shared)),
        exchange_(reinterpret_cast<float*>(shared + 2 * Shape::query_bytes)),
        tiles_(SharedAddress(shared + 2 * Shape::query_bytes + Shape::exchange_bytes) +
               warp_ * stages * Shape::stage_bytes) {}

  /// All threads of the block.
  __device__ __forceinline__ void run() {
    bool exists = list_.next(next_);
    if constexpr (!is_cluster) {
      if (sizes_.prefix_chunks == 0) wait_for_predecessor();
    }
    if (!exists) {
      if constexpr (is_cluster) merge_in_cluster(next_, 0);
      return;
    }
    Loader loader(a_, sizes_, next_, Span(sizes_, next_));
    begin_fetching(loader, 0);
#pragma unroll 1
    for (int i = 0; i < stages - 1; ++i) fetch(loader, i);
    int stage = 0;
    for (int buffer = 0; exists; buffer ^= 1) {
      const DecodeUnit unit = next_;
      const Span span(sizes_, unit);
      bool is_ahead = false;
      typename Shape::Outputs o = {};
      Softmax softmax;
      typename Products::Queries q;
      const T* const queries = queries_ + buffer * Shape::rows * D;
      Scales scales(a_, unit, span.to);
      scales.look_ahead(key_of(span.first_step));
      AsyncCopies::wait<stages - 2>();
      __syncthreads();  // all of Q is there
      Products::load_kept(q, queries, Products::query_offset(lane_));
#pragma unroll 1
      for (int step = span.first_step; step < span.first_step + span.steps; ++step) {
        AsyncCopies::wait<stages - 2>();
        __syncwarp();  // the tile is there for all lanes, and all have left the one before
        if (!is_ahead && fetch_step_ == fetch_past_) {
          is_ahead = true;
          exists = list_.next(next_);
          if (exists) {
            loader = Loader(a_, sizes_, next_, Span(sizes_, next_));
            begin_fetching(loader, buffer ^ 1);
          }
        }
        fetch(loader, stage == 0 ? stages - 1 : stage - 1);
        take_keys(span, unit.of, key_of(step), tiles_ + stage * Shape::stage_bytes, queries, scales,
                  q, softmax, o);
        stage = stage == stages - 1 ? 0 : stage + 1;
      }
      finish(unit, span, softmax, o);
    }
    AsyncCopies::wait<0>();
  }

 private:
  __device__ int key_of(int step) const {
    return step * Shape::step_keys + warp_ * Bc;
  }

  /// Goes on with next_: its queries go to a buffer, and keys follow from fetch().
  __device__ void begin_fetching(Loader& loader, int buffer) {
    const Span span(sizes_, next_);
    fetch_step_ = span.first_step;
    fetch_past_ = span.first_step + span.steps;
    loader.look_ahead(key_of(fetch_step_));
    load_queries(span, queries_ + buffer * Shape::rows * D);
  }

  /// Starts the copies of the next step's tile; where there is none, of nothing, so that waiting
  /// counts alike.
  __device__ __forceinline__ void fetch(Loader& loader, int stage) {
    if (fetch_step_ < fetch_past_) {
      loader.fetch(key_of(fetch_step_), tiles_ + stage * Shape::stage_bytes);
      ++fetch_step_;
      loader.look_ahead(key_of(fetch_step_));
    }
    AsyncCopies::commit();
  }

  __device__ void load_queries(const Span& span, T* tile) const {
    using Tile = SwizzledTile<T, D>;
    const bool is_packed = a_.query_starts != nullptr;
    const T* const first = static_cast<const T*>(a_.q) +
                           a_.q_strides.offset(is_packed || is_prefix ? 0 : next_.entry,
                                               next_.kv_head * span.group, next_.of.q_start);
#pragma unroll 1
    for (int i = static_cast<int>(threadIdx.x); i < Shape::rows * Tile::chunks;
         i += Shape::threads) {
      const int row = i / Tile::chunks, chunk = i % Tile::chunks, n = span.first_row + row;
      const int of_group = sizes_.by_group.quotient(n);
      bool is_there = row < span.rows;
      std::int64_t query = of_group * a_.q_strides.row;
      if constexpr (is_prefix) {
        const int entry = of_group / sizes_.queries, of_entry = of_group % sizes_.queries;
        query = entry * a_.q_strides.batch + of_entry * a_.q_strides.row;
        if (is_packed && is_there) {
          const int start = a_.query_starts[entry];
          is_there = of_entry < a_.query_starts[entry + 1] - start;
          query = (start + of_entry) * a_.q_strides.row;
        }
      }
      const T* const from = first + query + (n - of_group * span.group) * a_.q_strides.head;
      AsyncCopies::copy_or_zero<16>(tile + Tile::offset(row, chunk),
                                    is_there ? from + chunk * Tile::chunk : first, is_there);
    }
  }

  /// The warp's part of a step.
  __device__ __forceinline__ void take_keys(const Span& span, const DecodeEntry& entry,
                                            int first_key, SharedAddress keys, const T* queries,
                                            Scales& scales, typename Products::Queries& q,
                                            Softmax& softmax, typename Shape::Outputs& o) const {
    if (first_key >= span.to || first_key + Bc <= span.from) {
      scales.look_ahead(first_key + Shape::step_keys);
      return;
    }
    const float of_scores = a_.problem.scale * scales.of_all();
    const float scale = of_scores * std::numbers::log2e_v<float>;
    const bool is_plain = scale > 0.0F && a_.problem.softcap == 0.0F;
    const float c = is_plain ? scale : 1.0F;
    typename Shape::Scores s = {};
    Products::form_scores(q, queries, Products::query_offset(lane_), keys,
                          Products::key_offset(lane_), s);
    scales.apply(s);
    scales.look_ahead(first_key + Shape::step_keys);
    if (!is_plain) Fa2ScoreForm<Shape>::form(s, of_scores, a_.problem.softcap);
    if (first_key < span.all_from || first_key + Bc > span.all_to) {
      hide(s, span, entry, first_key + 2 * (lane_ % 4));
    }
    softmax.see(s, c, o);
    Products::add_values(softmax, s, c, keys + Shape::tile_bytes, Products::value_offset(lane_), o);
  }

  /// Scores of keys that a row does not see become -inf. `key`: the lane's first one.
  __device__ __forceinline__ void hide(typename Shape::Scores& s, const Span& span,
                                       const DecodeEntry& entry, int key) const {
#pragma unroll
    for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int row = span.first_row + lane_ / 4 + 16 * i + 8 * h;
        const int query = min(sizes_.by_group.quotient(row), entry.queries - 1);
        hide_scores<true>(s[i], h, min(entry.reach.past_key(query), span.chunk_past) - key,
                          max(entry.reach.first_key(query), span.chunk_first) - key);
      }
    }
  }

  /// Adds what the warps have, a few rows at a time, and stores it: the answer where the chunk is
  /// the only one, else the chunk's partial result.
  __device__ __forceinline__ void finish(const DecodeUnit& unit, const Span& span, Softmax& softmax,
                                         const typename Shape::Outputs& o) const {
    const auto partials = DecodePartials<D>::of(a_, sizes_);
#pragma unroll
    for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll
      for (int h = 0; h < 2; ++h) softmax.l[i][h] = row_sum(softmax.l[i][h]);
    }
#pragma unroll
    for (int i = 0; i < Shape::row_tiles; ++i) {
#pragma unroll 1
      for (int first = 0; first < 16 && 16 * i + first < span.rows;
           first += Shape::exchanged_rows) {
        leave(softmax, o, i, first);
        __syncthreads();
        const int rows = min(span.rows - 16 * i - first, Shape::exchanged_rows);
        for (int row = warp_; row < rows; row += Shape::warps) {
          const int n = span.first_row + 16 * i + first + row;
          if constexpr (is_prefix) {
            leave_for_entry(unit, partials, n, row);
          } else if (is_cluster && unit.of.chunks > 1) {
            row_of_warps(row).leave(left_for_cluster(16 * i + first + row), lane_);
          } else {
            add_warps(unit, partials, Row(a_, sizes_, unit, n), row);
          }
        }
        __syncthreads();
      }
    }
    if constexpr (is_cluster) return merge_in_cluster(unit, span.rows);
    if (is_prefix || unit.of.chunks < 2 || a_.plan.combine != Combine::last_block) return;
    if (!is_last_chunk(unit)) return;
    for (int row = warp_; row < span.rows; row += Shape::warps) {
      merge_in_workspace(partials, Row(a_, sizes_, unit, span.first_row + row), unit.of.chunks);
    }
  }

  /// Place where the block leaves a row for its cluster: that of tiles, which all warps have read.
  __device__ float* left_for_cluster(int row) const {
    static_assert(Shape::rows * Shape::row_pitch * static_cast<int>(sizeof(float)) <=
                  Shape::shared_bytes - 2 * Shape::query_bytes - Shape::exchange_bytes);
    return exchange_ + Shape::exchange_bytes / static_cast<int>(sizeof(float)) +
           row * Shape::row_pitch;
  }
  /// Merges some rows of the unit, which has `rows`, for all blocks of the cluster. Blocks without
  /// a unit come too: the barriers wait for them.
  __device__ __forceinline__ void merge_in_cluster(const DecodeUnit& unit, int rows) const {
    Cluster::arrive();
    Cluster::wait();
    const int chunks = unit.of.chunks;
    bool has_arrived = false;
    for (int row = unit.chunk + warp_ * chunks; chunks > 1 && row < rows;
         row += Shape::warps * chunks) {
      const MergedRow<D> sum =
          merge_chunks<D, most_in_cluster>(ClusterParts<D>{left_for_cluster(row)}, chunks);
      if (!has_arrived && row + Shape::warps * chunks >= rows) {
        has_arrived = true;
        Cluster::arrive();  // the last row has been read: results are stored meanwhile
      }
      sum.store(Row(a_, sizes_, unit, unit.row_tile * Shape::rows + row), lane_);
    }
    if (!has_arrived) Cluster::arrive();
    Cluster::wait();  // what this block left has been read
  }

  /// Place of what warp w leaves of a row: O, then r and l.
  __device__ float* exchanged(int w, int row) const {
    return exchange_ + (w * Shape::exchanged_rows + row) * Shape::row_pitch;
  }

  /// Leaves rows 16 i + first and following of the warp's O, and their r and l, for the others.
  __device__ __forceinline__ void leave(const Softmax& softmax, const typename Shape::Outputs& o,
                                        int i, int first) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = lane_ / 4 + 8 * h - first;
      if (row < 0 || row >= Shape::exchanged_rows) continue;
      float* const to = exchanged(warp_, row);
      Products::leave(o[i], h, lane_, to);
      if (lane_ % 4 == 0) {
        *reinterpret_cast<float2*>(to + D) = {softmax.r[i][h], softmax.l[i][h]};
      }
    }
  }

  /// One warp adds one row.
  __device__ __forceinline__ void add_warps(const DecodeUnit& unit,
                                            const DecodePartials<D>& partials, const Row& to,
                                            int row) const {
    const MergedRow<D> sum = row_of_warps(row);
    if (unit.of.all_chunks() == 1) {
      sum.store(to, lane_);
    } else {
      sum.leave(partials, to.part(unit.of.prefix_chunks + unit.chunk), to.number, lane_);
    }
  }

  /// Writes row `n` once an entry. Entries that lack a shared key ignore theirs: what such an entry
  /// has of its own comes to the same place later.
  __device__ __forceinline__ void leave_for_entry(const DecodeUnit& unit,
                                                  const DecodePartials<D>& partials, int n,
                                                  int row) const {
    const int query = n / sizes_.group, head = unit.kv_head * sizes_.group + n % sizes_.group;
    const std::int64_t entry = query / sizes_.queries;
    const std::int64_t number =
        (entry * sizes_.query_heads + head) * sizes_.queries + query % sizes_.queries;
    row_of_warps(row).leave(partials, unit.chunk, number, lane_);
  }

  /// The sum of what the warps left of a row.
  __device__ __forceinline__ MergedRow<D> row_of_warps(int row) const {
    MergedRow<D> sum;
    for (int w = 0; w < Shape::warps; ++w) {
      sum.top = fmaxf(sum.top, exchanged(w, row)[D]);
    }
#pragma unroll
    for (int w = 0; w < Shape::warps; ++w) {
      const float* const from = exchanged(w, row);
      const float2 sums = *reinterpret_cast<const float2*>(from + D);
      sum.add(sum.weight_of(sums.x), sums.y, RowPart<D>::load(from, lane_));
    }
    return sum;
  }

  /// True if this block is the last one that has left a chunk of its rows. The counter is then 0
  /// again. All threads of the block call it; what others left is seen by the block for which this
  /// is true.
  __device__ bool is_last_chunk(const DecodeUnit& unit) const {
    const auto last = static_cast<unsigned>(unit.of.chunks - 1);
    auto* const flag = reinterpret_cast<int*>(exchange_);
    __syncthreads();
    if (threadIdx.x == 0) {
      // One thread's count, behind the barrier, is everybody's: it waits for all copies of its warp
      // that are under way, and costs microseconds where all warps have one.
      const int number = (unit.entry * sizes_.kv_heads + unit.kv_head) * sizes_.most_row_tiles;
      *flag = count_in_order(a_.counters + number + unit.row_tile, last) == last;
    }
    __syncthreads();
    const bool is_last = *flag != 0;
    __syncthreads();  // the flag has been read
    return is_last;
  }

  const Arguments& a_;
  const DecodeSizes& sizes_;
  List list_;
  const int warp_, lane_;
  T* const queries_;  ///< of two units
  float* const exchange_;
  const SharedAddress tiles_;  ///< of this warp
  DecodeUnit next_;            ///< whose keys are fetched, or the one at work
  int fetch_step_ = 0, fetch_past_ = 0;
};

template <Executor home, typename Shape, bool is_paged, typename List>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks_on_sm)
    decode_mma(typename Shape::Arguments a, DecodeSizes sizes) {
  let_successor_begin();  // it waits for all of this launch
  // Lengths may come from the launch before, and are read at once; else the block first finds out
  // what it has to do. Shared chunks, where they are the launch before, write no lengths.
  const bool follows_prefix = sizes.prefix_chunks > 0;
  if (!std::is_same_v<List, ClusterList> && !follows_prefix && has_own_lengths(a)) {
    wait_for_predecessor();
  }
  DecodeBlock<Shape, is_paged, List>(a, sizes, dynamic_shared<unsigned char>()).run();
  if (follows_prefix)
    wait_for_predecessor();  // the merge, which waits for this launch, reads it too
}

/// Cascade::yes: the chunks that entries share, before decode_mma() does the others.
template <Executor home, typename Shape>
__global__ void __launch_bounds__(Shape::threads, Shape::blocks_on_sm)
    decode_prefix(ForwardArguments a, DecodeSizes sizes) {
  DecodeBlock<Shape, true, PrefixList>(a, sizes, dynamic_shared<unsigned char>()).run();
}

}  // namespace attest
