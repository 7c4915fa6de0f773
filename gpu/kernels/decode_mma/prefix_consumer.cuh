#pragma once

// What a warpgroup that multiplies does with a chunk of the keys that entries share.
//
// Idea
//   Rows (entry, query, head of the group) of all entries are one long list; a block takes 128 of
//   them against a chunk of keys, a warpgroup 64. S of the next tile is issued before P V of this
//   one, and is weighed while P V runs:
//     S = Q K_0, P = weights(S)
//     each j > 0: issue S = Q K_j, issue O += P V_(j-1)
//                 wait for S: weights(S), while P V runs;  wait for O: rescale it
//     O += P V_last
// Resident
//   shared     Q [2, 64, D], K and V [stages, 128, D]
//   registers  S [64, 128], O [64, D] and P of the warpgroup; r, l of the rows
// Waits
//   full       a tile is read after its bytes have arrived
//   empty      a tile is given back when all warps have read it
// Tails
//   No key is hidden: entries that take part see all keys of all shared chunks. Rows that are not
//   there are zeros. Of entries that do not take part rows are computed and never stored: their own
//   chunks, which another launch may be at, lie there.

#include "gpu/kernels/decode_mma/merge.cuh"
#include "gpu/kernels/decode_mma/prefix_shape.cuh"
#include "gpu/kernels/decode_mma/prefix_softmax.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/wgmma.cuh"

namespace attest {

template <typename Shape>
class PrefixConsumer {
  using T = typename Shape::T;
  using Ring = PrefixRing<Shape>;
  static constexpr int D = Shape::D, tile_keys = Shape::tile_keys;

 public:
  __device__ __forceinline__ PrefixConsumer(const PrefixParameters& p,
                                            const PrefixShared<Shape>& shared, int group)
      : p_(p), shared_(shared), group_(group) {}

  __device__ __forceinline__ void run(const DecodeUnit& unit) {
    const int first_row = unit.row_tile * Shape::rows + group_ * Shape::group_rows;
    load_queries(first_row, unit.kv_head);
    const int tiles = (unit.chunk_past - unit.chunk_first) / tile_keys;
    PrefixSoftmax softmax;
#pragma unroll
    for (float& x : o_) x = 0.0F;
    shared_.k().full(0).wait(0);
    hold(s_);
    fence_products();
    issue_scores(0);
    commit_products();
    wait_for_products<0>();
    hold(s_);
    release(shared_.k(), 0);
    weigh(softmax);
    pack_weights();
#pragma unroll 1
    for (int tile = 1; tile < tiles; ++tile) step(softmax, tile);
    shared_.v().full(tiles - 1).wait(Ring::parity(tiles - 1));
    hold(o_);
    hold_weights();
    fence_products();
    issue_output(tiles - 1);
    commit_products();
    wait_for_products<0>();
    hold(o_);
    leave(softmax, first_row, unit.kv_head, unit.chunk);
  }

 private:
  static __device__ __forceinline__ int lane() {
    return static_cast<int>(threadIdx.x & 31U);
  }
  static __device__ __forceinline__ int warp() {
    return static_cast<int>(threadIdx.x >> 5 & 3U);
  }

  /// The warpgroup loads its own rows. Rows that are not there become zeros.
  __device__ __forceinline__ void load_queries(int first_row, int kv_head) const {
    constexpr int chunks = D / 8, panel_chunks = panel_columns / 8;
    const ForwardArguments& a = p_.a;
    const int group = p_.sizes.group, queries = p_.sizes.queries;
    const T* const first = static_cast<const T*>(a.q) + a.q_strides.offset(0, kv_head * group, 0);
#pragma unroll 2
    for (int i = static_cast<int>(threadIdx.x % warpgroup_threads); i < Shape::group_rows * chunks;
         i += warpgroup_threads) {
      const int row = i / chunks, chunk = i % chunks, n = first_row + row;
      const int entry = n / group / queries, query = n / group % queries;
      bool is_there = entry < p_.sizes.batch;
      std::int64_t offset = entry * a.q_strides.batch + query * a.q_strides.row;
      if (a.query_starts != nullptr && is_there) {
        const int start = a.query_starts[entry];
        is_there = query < a.query_starts[entry + 1] - start;
        offset = (start + query) * a.q_strides.row;
      }
      const T* const from = first + offset + n % group * a.q_strides.head + 8 * chunk;
      AsyncCopies::copy_or_zero<16>(
          shared_.queries(group_) + (chunk / panel_chunks * Shape::query_panel_bytes +
                                     swizzled_chunk(row, chunk % panel_chunks)),
          is_there ? from : first, is_there);
    }
    AsyncCopies::commit();
    AsyncCopies::wait<0>();
    fence_async_shared();
    sync_named(Shape::has_queries + group_, warpgroup_threads);
  }

  __device__ __forceinline__ void issue_scores(int tile) {
    const MatrixDescriptor q = k_major_at(shared_.queries(group_));
    const MatrixDescriptor k = k_major_at(shared_.k().tile(tile));
#pragma unroll
    for (int i = 0; i < D / 16; ++i) {
      issue_product<T, Major::k, Major::k>(s_, q + k_major_step(i, Shape::group_rows),
                                           k + k_major_step(i, tile_keys), i > 0);
    }
  }
  __device__ __forceinline__ void issue_output(int tile) {
    const MatrixDescriptor v = mn_major_at(shared_.v().tile(tile), tile_keys);
#pragma unroll
    for (int i = 0; i < tile_keys / 16; ++i) {
      issue_product<T, Major::mn>(o_, weights_[i], v + mn_major_step(i), true);
    }
  }
  __device__ __forceinline__ void hold_weights() {
#pragma unroll
    for (int i = 0; i < tile_keys / 16; ++i) hold(weights_[i]);
  }
  __device__ __forceinline__ void release(const Ring& ring, int tile) const {
    if (lane() == 0) ring.empty(tile).arrive();
  }

  /// Scores become weights. True where O must be multiplied by softmax.keep.
  __device__ __forceinline__ bool weigh(PrefixSoftmax& softmax) {
    if (p_.factor != 1.0F) {
#pragma unroll
      for (float& x : s_) x *= p_.factor;
    }
    return softmax.weigh(s_, p_.c);
  }
  __device__ __forceinline__ void pack_weights() {
#pragma unroll
    for (int i = 0; i < tile_keys / 16; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        weights_[i][part] = packed<T>(s_[8 * i + 2 * part], s_[8 * i + 2 * part + 1]);
      }
    }
  }
  __device__ __forceinline__ void rescale(const float (&keep)[2]) {
#pragma unroll
    for (int i = 0; i < D / 2; ++i) o_[i] *= keep[i / 2 % 2];
  }

  /// Issues S of this tile and P V of the one before, and weighs S while P V runs.
  __device__ __forceinline__ void step(PrefixSoftmax& softmax, int tile) {
    shared_.k().full(tile).wait(Ring::parity(tile));
    hold(s_);
    hold(o_);
    hold_weights();
    fence_products();
    issue_scores(tile);
    commit_products();
    shared_.v().full(tile - 1).wait(Ring::parity(tile - 1));
    fence_products();
    issue_output(tile - 1);
    commit_products();
    wait_for_products<1>();
    hold(s_);
    release(shared_.k(), tile);
    const bool rescales = weigh(softmax);
    hold(s_);  // weights are formed before the wait, not where they are used
    wait_for_products<0>();
    hold(o_);
    hold_weights();
    release(shared_.v(), tile - 1);
    if (rescales) rescale(softmax.keep);
    pack_weights();
  }

  /// Stores the chunk's partial results of rows whose entries take part.
  __device__ __forceinline__ void leave(const PrefixSoftmax& softmax, int first_row, int kv_head,
                                        int chunk) const {
    const auto partials = DecodePartials<D>::of(p_.a, p_.sizes);
    const int group = p_.sizes.group, queries = p_.sizes.queries;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float l = row_sum(softmax.l[h]);
      const int n = first_row + 16 * warp() + lane() / 4 + 8 * h;
      const int entry = n / group / queries, query = n / group % queries;
      if (entry >= p_.sizes.batch) continue;
      const DecodeEntry of(p_.a, p_.sizes, entry);
      if (of.prefix_chunks == 0 || query >= of.queries) continue;
      const int head = kv_head * group + n % group;
      const std::int64_t number =
          (std::int64_t{entry} * p_.sizes.query_heads + head) * queries + query;
      float* const to = partials.acc_of(chunk, number) + 2 * (lane() % 4);
#pragma unroll
      for (int j = 0; j < D / 8; ++j) {
        *reinterpret_cast<float2*>(to + 8 * j) = {o_[4 * j + 2 * h], o_[4 * j + 2 * h + 1]};
      }
      if (lane() % 4 == 0) *partials.sums_of(chunk, number) = {softmax.r[h], l};
    }
  }

  const PrefixParameters& p_;
  const PrefixShared<Shape>& shared_;
  const int group_;
  float s_[tile_keys / 2];
  float o_[D / 2];
  unsigned weights_[tile_keys / 16][4];
};

}  // namespace attest
