#pragma once

#include "gpu/kernels/mla_wgmma/softmax.cuh"
#include "gpu/kernels/mla_wgmma/work.cuh"
#include "gpu/primitives/async_copy.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/warpgroup.cuh"
#include "gpu/primitives/wgmma.cuh"

namespace attest {

/// What a warpgroup does around scores [64, 64] of a key tile, whoever multiplies their weights.
template <typename Shape>
class MlaScores {
  using T = typename Shape::T;

 public:
  static constexpr int steps = Shape::tile_keys / 16;  ///< of a product of weights

  static __device__ __forceinline__ int lane() { return static_cast<int>(threadIdx.x & 31U); }
  static __device__ __forceinline__ int warp() { return static_cast<int>(threadIdx.x >> 5 & 3U); }
  /// The lane's upper row of the tile; its other row is 8 below.
  static __device__ __forceinline__ int row() { return 16 * warp() + lane() / 4; }

  /// Where Q of the unit's rows begins, which are packed row `n` and following.
  static __device__ __forceinline__ const T* queries(const MlaParameters& p, const MlaWork& work) {
    const DecodeUnit& unit = work.unit;
    return static_cast<const T*>(p.a.q) +
           p.a.q_strides.offset(p.a.query_starts != nullptr ? 0 : unit.entry,
                                unit.kv_head * p.sizes.group, unit.of.q_start);
  }
  static __device__ __forceinline__ const T* query(const MlaParameters& p, const MlaWork& work,
                                                   const T* queries, int row) {
    const int n = work.first_row + row;
    return queries + n / p.sizes.group * p.a.q_strides.row + n % p.sizes.group * p.a.q_strides.head;
  }

  /// Rows of tile `n` of the block past its `keys` keys become zeros. `id`: a named barrier of the
  /// warpgroup.
  static __device__ __forceinline__ void clear_tail(const MlaShared<Shape>& shared, unsigned n,
                                                    int keys, int id) {
    constexpr int chunks = panel_row_bytes / 16;
    const int each = (Shape::tile_keys - keys) * chunks;
    for (int panel = 0; panel < Shape::panels; ++panel) {
      const int part = panel / Shape::part_panels, within = panel % Shape::part_panels;
      shared.full(n, part, within).wait(shared.parity(n, part));
      unsigned char* const from = shared.first + shared.part_at(n, part) +
                                  within * Shape::panel_bytes + keys * panel_row_bytes;
      for (int i = static_cast<int>(threadIdx.x % warpgroup_threads); i < each;
           i += warpgroup_threads) {
        *reinterpret_cast<uint4*>(from + i * 16) = uint4{0, 0, 0, 0};
      }
    }
    fence_async_shared();
    sync_named(id, warpgroup_threads);
  }

  /// Scores become weights, in registers. True where O must be rescaled.
  static __device__ __forceinline__ bool weigh(const MlaParameters& p, const MlaWork& work,
                                               MlaSoftmax& softmax, int tile,
                                               float (&s)[Shape::tile_keys / 2],
                                               unsigned (&weights)[steps][4]) {
    if (p.factor != 1.0F) {
#pragma unroll
      for (float& x : s) x *= p.factor;
    }
    const int first_key = work.first_key + tile * Shape::tile_keys;
    if (first_key + Shape::tile_keys > work.all_see_to) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        const int n = work.first_row + row() + 8 * h;
        const int query = min(n / p.sizes.group, work.unit.of.queries - 1);
        const int past = min(work.unit.of.reach.past_key(query), work.past_key);
        hide_scores(s, h, past - first_key - 2 * (lane() % 4));
      }
    }
    const bool rescales = softmax.weigh(s, p.c);
#pragma unroll
    for (int i = 0; i < steps; ++i) {
#pragma unroll
      for (int part = 0; part < 4; ++part) {
        weights[i][part] = packed<T>(s[8 * i + 2 * part], s[8 * i + 2 * part + 1]);
      }
    }
    return rescales;
  }

  /// Leaves weights and references for other warpgroups; who says that they are there follows.
  static __device__ __forceinline__ void store(SharedAddress to, float* references,
                                               const MlaSoftmax& softmax,
                                               const unsigned (&weights)[steps][4]) {
#pragma unroll
    for (int i = 0; i < steps; ++i) {
      store_matrices(to + swizzled_chunk(16 * warp() + lane() % 16, 2 * i + lane() / 16),
                     weights[i]);
    }
    if (lane() % 4 == 0) {
      references[row()] = softmax.r[0];
      references[row() + 8] = softmax.r[1];
    }
    fence_async_shared();
  }
};

}  // namespace attest
