#pragma once

// dQ from its sums. A block that has added its parts to the sums of a row tile counts that; the one
// that finds itself the last turns them into the element type, while they are in the L2 cache, and
// leaves zeros for the launch that comes next.

#include <cstdint>

#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/kernels/bwd_wgmma/thread.cuh"
#include "gpu/kernels/bwd_wgmma/units.cuh"
#include "gpu/primitives/load_from_l2.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {

/// Key tiles of `key_tile` keys that some row of a row tile sees a key of: BwdRowTiles of each
/// holds the row tile.
__device__ __forceinline__ int bwd_parts(const BwdWork& work, int tile, int key_tile) {
  const int first_row = tile * bwd_query_tile;
  const int last_row = min(first_row + bwd_query_tile, work.queries) - 1;
  const int first_key = max(0, first_row + work.begin);
  const int past_key = min(work.keys, last_row + work.reach);
  return first_key < past_key ? (past_key - 1) / key_tile - first_key / key_tile + 1 : 0;
}

/// A warpgroup's part in it: warp w has rows 16 w on of every row tile. Group `group` of
/// Shape::finishers.
template <typename Shape>
struct BwdDqOut : BwdThread {
  using T = typename Shape::T;
  static constexpr bool in_units = Shape::choice.in_units;
  static constexpr int panels = Shape::D / panel_columns;
  static constexpr int panel_words = bwd_dq_panel_words<in_units>;

  const BwdParameters& p;
  const BwdWork& work;

  /// Counts this block's parts, which are in memory; writes the rows that it counted last.
  __device__ __forceinline__ void run(int group) const {
    __threadfence();  // who counts further may rely on them
    const int tiles = work.past - work.first, count = tiles * p.group;
#pragma unroll 1
    for (int first = group; first < count; first += 32 * Shape::finishers) {
      const int mine = first + Shape::finishers * lane();
      unsigned last =
          __ballot_sync(0xffffffffU, mine < count && is_last(mine / tiles, mine % tiles));
      if (last == 0) continue;
      __threadfence();  // the others' parts are in memory
#pragma unroll 1
      for (; last != 0; last &= last - 1) {
        const int i = first + Shape::finishers * (__ffs(static_cast<int>(last)) - 1);
        write(i / tiles, work.first + i % tiles);
      }
    }
  }

 private:
  __device__ __forceinline__ std::int64_t number(int head, int tile) const {
    return static_cast<std::int64_t>(work.plane + head) * p.sums.tiles + tile;
  }
  /// Of the warp's rows of a row tile, `i` from the first on.
  __device__ __forceinline__ bool is_last(int head, int i) const {
    const int tile = work.first + i;
    unsigned* const counted = p.sums.parts + 4 * number(head, tile) + warp();
    const auto parts = static_cast<unsigned>(bwd_parts(work, tile, Shape::Bc));
    if (atomicAdd(counted, 1U) + 1 < parts) return false;
    *counted = 0;
    return true;
  }
  __device__ __forceinline__ void write(int head, int tile) const {
    // The lane's rows of the tile are this one and 8 further.
    const int row = 16 * warp() + lane() / 4, query = tile * bwd_query_tile + row;
    const std::int64_t at = number(head, tile);
    float* const sums = p.sums.dq + at * (panels * panel_words);
    T* const out =
        static_cast<T*>(p.dq) + p.dq_strides.offset(work.entry, work.kv_head * p.group + head,
                                                    work.first_query_row + query);
    float2 unit{1.0F, 1.0F};
    if constexpr (in_units) unit = units_of(sums, p.sums.units_in_one + at * bwd_query_tile, row);
#pragma unroll 1
    for (int panel = 0; panel < panels; ++panel) {
      float4 x[panel_columns / 8];
      auto* const from = reinterpret_cast<float4*>(sums + panel * panel_words) + thread();
#pragma unroll
      for (int i = 0; i < panel_columns / 8; ++i) x[i] = load_from_l2(from + i * warpgroup_threads);
#pragma unroll
      for (int i = 0; i < panel_columns / 8; ++i) {
        from[i * warpgroup_threads] = float4{0.0F, 0.0F, 0.0F, 0.0F};
        x[i] = scaled(x[i], unit);
      }
#pragma unroll
      for (int i = 0; i < panel_columns / 8; i += 2) {
        const int column = panel * panel_columns + 8 * i;
        write_pairs(out, column, {packed<T>(x[i].x, x[i].y), packed<T>(x[i + 1].x, x[i + 1].y)},
                    query < work.queries);
        write_pairs(out + 8 * p.dq_strides.row, column,
                    {packed<T>(x[i].z, x[i].w), packed<T>(x[i + 1].z, x[i + 1].w)},
                    query + 8 < work.queries);
      }
    }
  }
  /// Of the lane's two rows; NaN where a sum may have left the range of integers.
  __device__ __forceinline__ float2 units_of(float* sums, const float* units_in_one,
                                             int row) const {
    float2 unit{unit_of(units_in_one[row]), unit_of(units_in_one[row + 8])};
#pragma unroll
    for (int panel = 0; panel < panels; ++panel) {
      float* const used = sums + (panel + 1) * panel_words - bwd_query_tile;
      if (__float_as_uint(load_from_l2(used + row)) >= dq_range) unit.x = NAN;
      if (__float_as_uint(load_from_l2(used + row + 8)) >= dq_range) unit.y = NAN;
      __syncwarp();  // all lanes of the row have read them
      if (lane() % 4 == 0) used[row] = used[row + 8] = 0.0F;
    }
    return unit;
  }
  __device__ __forceinline__ float4 scaled(float4 x, float2 unit) const {
    if constexpr (in_units) {
      x = {__int2float_rn(__float_as_int(x.x)) * unit.x,
           __int2float_rn(__float_as_int(x.y)) * unit.x,
           __int2float_rn(__float_as_int(x.z)) * unit.y,
           __int2float_rn(__float_as_int(x.w)) * unit.y};
    }
    return {x.x * p.scale, x.y * p.scale, x.z * p.scale, x.w * p.scale};
  }
  /// Two columns of each of 8 rows, and the two that are 8 further. Neighbouring lanes give each
  /// other one of them, so that each writes four columns, and four lanes 32 bytes of a row.
  __device__ __forceinline__ void write_pairs(T* row, int column, uint2 pairs, bool exists) const {
    const bool is_odd = lane() % 2 != 0;
    const unsigned got = __shfl_xor_sync(0xffffffffU, is_odd ? pairs.x : pairs.y, 1);
    pairs = is_odd ? uint2{got, pairs.y} : uint2{pairs.x, got};
    column += (is_odd ? 8 : 0) + lane() % 4 / 2 * 4;
    if (!exists || column >= p.columns) return;
    if (column + 4 <= p.columns) {
      *reinterpret_cast<uint2*>(row + column) = pairs;
      return;
    }
    auto* const bits = reinterpret_cast<unsigned short*>(row + column);
    bits[0] = static_cast<unsigned short>(pairs.x);
    if (column + 1 < p.columns) bits[1] = static_cast<unsigned short>(pairs.x >> 16);
    if (column + 2 < p.columns) bits[2] = static_cast<unsigned short>(pairs.y);
  }
};

}  // namespace attest
