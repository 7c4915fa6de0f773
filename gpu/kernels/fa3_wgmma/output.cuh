#pragma once

#include <cfloat>
#include <cmath>
#include <cstdint>
#include <numbers>

#include "gpu/kernels/fa3_wgmma/ring_cursor.cuh"
#include "gpu/kernels/fa3_wgmma/softmax.cuh"
#include "gpu/kernels/key_splits.cuh"
#include "gpu/primitives/cuda_type.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/tma.cuh"
#include "gpu/primitives/warpgroup.cuh"

namespace attest {

/// Writes O and LSE of one warpgroup's 64 rows, or their partial results with key splits. O is put
/// in order in shared memory first: in panels of its own, or where a finished Q lies.
template <typename Shape>
struct Fa3Output : Fa3Thread {
  using T = typename Shape::T;
  using Work = typename Shape::Work;
  static constexpr int DV = Shape::DV;
  static constexpr bool has_panels = Shape::choice.o_panels > 0;
  static constexpr bool orders_in_q = !has_panels && !Shape::choice.splits;
  static constexpr bool has_sinks = Shape::choice.ended || Shape::choice.masked;
  /// At 256 columns O leaves no room for what the gate and the residual take: ptxas spilled.
  static constexpr bool has_epilogues = has_sinks && DV <= 128;
  static constexpr int ordered_panels = has_panels ? Shape::choice.o_panels : Shape::output_panels;
  static_assert(!orders_in_q || (Shape::q_stages > 1 && DV <= Shape::D));

  using Parameters = typename Shape::Parameters;
  /// Neighbours in a row of the gate or the residual, in memory and in registers.
  struct alignas(2 * sizeof(T)) StoredPair {
    T first, second;
  };
  struct OperandPair {
    float first, second;
  };
  const Parameters& p;
  const Fa3RingCursor<Shape>& cursor;

  __device__ __forceinline__ Fa3Output(const Parameters& p_, const Fa3RingCursor<Shape>& cursor_)
      : p(p_), cursor(cursor_) {}

  /// The calling lane's first row; its other row is 8 below.
  static __device__ __forceinline__ int row_of(const Work& work) {
    return work.row + 16 * warp() + lane() / 4;
  }

  /// Writes O and LSE of the Q that came last.
  template <typename Softmax>
  __device__ __forceinline__ void store(float (&o)[DV / 2], const Softmax& softmax) const {
    const Work work = cursor.last_work();  // again, instead of keeping it in registers
    const int row = row_of(work), t = lane() % 4;
    float sum[2] = {row_sum(softmax.l[0]), row_sum(softmax.l[1])};
    if constexpr (Shape::choice.splits) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row + 8 * h >= bounds_of(p, work).queries) continue;
        partials().store(partial_row(work, row + 8 * h), t, o, h, softmax.r[h], sum[h]);
      }
      return;
    }
    float r[2] = {softmax.r[0], softmax.r[1]};
    const float sink = sink_of(work);
    float factor[2] = {factor_of(sink, r[0], sum[0]), factor_of(sink, r[1], sum[1])};
    if constexpr (Shape::choice.modified) {
      factor[0] *= p.kept_scale;
      factor[1] *= p.kept_scale;
    }
    if constexpr (has_epilogues) {
      const bool has_any = p.gate != nullptr || p.residual != nullptr;
      if (has_any && p.columns % 2 == 0) finish<true>(o, work, factor);
      if (has_any && p.columns % 2 != 0) finish<false>(o, work, factor);
    }
    store_output(o, work, factor);
    if (t == 0) {
#pragma unroll
      for (int h = 0; h < 2; ++h) {
        if (row + 8 * h < bounds_of(p, work).queries) {
          lse_of(work, row + 8 * h) =
              has_sinks && sum[h] == 0.0F ? sink : log_sum_exp2(r[h], sum[h]);
        }
      }
    }
  }

  /// Writes the results of rows that see no key, of this split at least.
  __device__ __forceinline__ void store_nothing(const Work& work) const {
#pragma unroll 1
    for (int h = 0; h < 2; ++h) {
      const int row = row_of(work) + 8 * h;
      if (!has_row(work, row)) continue;
      const int t = lane() % 4;
      if constexpr (Shape::choice.splits) {
        partials().store_nothing(partial_row(work, row), t);
      } else {
        T* const to = output_row(work, row);
        for (int column = t; column < p.columns; column += 4)
          to[column] = nothing_at(work, row, column);
        if (t == 0) lse_of(work, row) = sink_of(work);
      }
    }
  }

  /// Gives back the memory of the Q that came last, once the copy engine has read O from it. It is
  /// called once for each Q, when the next one is being worked on.
  __device__ __forceinline__ void release_last_q() const {
    if (!orders_in_q || cursor.q_tiles == 0) return;
    __syncwarp();
    if (lane() == 0) {
      wait_until_stores_have_read();
      cursor.last_empty_q().arrive();
    }
    __syncwarp();
  }

 private:
  /// The sink of the work's rows; -infinity where they have none.
  __device__ __forceinline__ float sink_of(const Work& work) const {
    if constexpr (has_sinks) {
      if (p.sinks != nullptr) return p.sinks[work.head];
    }
    return -INFINITY;
  }
  /// Factor by which O of a row, whose keys have all been seen, is multiplied. Its sink joins the
  /// sum now, as a last key of value 0 would: where it is larger than the reference, that rises to
  /// it. The sum of a row without keys stays 0.
  static __device__ __forceinline__ float factor_of(float sink, float& r, float& sum) {
    if constexpr (has_sinks) {
      if (sum == 0.0F) return 1.0F;
      const float score = sink * std::numbers::log2e_v<float>, risen = fmaxf(r, score);
      const float keep = HardwareExp2::of(r - risen);  // 1 where the sink is -infinity
      sum = fmaf(sum, keep, HardwareExp2::of(score - risen));
      r = risen;
      return keep * (1.0F / sum);
    }
    return 1.0F / divisor_of(sum);
  }
  /// First element of a row of the gate and the residual.
  __device__ __forceinline__ std::int64_t operand_row(const Work& work, int row) const {
    return (plane_of(work) * p.queries + row) * p.columns;
  }
  /// Two neighbours of a row of the gate or the residual, or the row's last element and `none`;
  /// `none` twice without the tensor.
  template <bool is_even>
  static __device__ __forceinline__ OperandPair operand_pair(const void* operand, std::int64_t at,
                                                             bool has_second, float none) {
    if (operand == nullptr) return {none, none};
    const T* const from = static_cast<const T*>(operand) + at;
    if constexpr (is_even) {
      const auto pair = *reinterpret_cast<const StoredPair*>(from);
      return {to_float(pair.first), to_float(pair.second)};
    }
    return {to_float(from[0]), has_second ? to_float(from[1]) : none};
  }
  /// Applies the factors, the gate and the residual to O, in fp32 and with one rounding for the
  /// latter two: 1 and -0, where there is none, change no bit. The factors are 1 afterwards. Rows
  /// of the operands begin at multiples of 4 bytes if their columns are even.
  template <bool is_even>
  __device__ __forceinline__ void finish(float (&o)[DV / 2], const Work& work,
                                         float (&factor)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = row_of(work) + 8 * h;
      const std::int64_t first = operand_row(work, row);
#pragma unroll
      for (int i = 0; i < DV / 8; ++i) {
        const int column = 8 * i + 2 * (lane() % 4), at = 4 * i + 2 * h;
        if (!has_row(work, row) || column >= p.columns) continue;
        const bool has_second = column + 1 < p.columns;
        const OperandPair gate = operand_pair<is_even>(p.gate, first + column, has_second, 1.0F);
        const OperandPair residual =
            operand_pair<is_even>(p.residual, first + column, has_second, -0.0F);
        o[at] = fmaf(o[at] * factor[h], gate.first, residual.first);
        o[at + 1] = fmaf(o[at + 1] * factor[h], gate.second, residual.second);
      }
      factor[h] = 1.0F;
    }
  }
  /// An element of O of a row that sees no key: 0, or what its gate and residual make of it.
  __device__ __forceinline__ T nothing_at(const Work& work, int row, int column) const {
    if constexpr (has_epilogues) {
      const std::int64_t at = operand_row(work, row) + column;
      const float gate = operand_pair<false>(p.gate, at, false, 1.0F).first;
      return from_float<T>(
          fmaf(0.0F, gate, operand_pair<false>(p.residual, at, false, -0.0F).first));
    }
    return T(0.0F);
  }
  __device__ __forceinline__ bool has_row(const Work& work, int row) const {
    return static_cast<unsigned>(row) < static_cast<unsigned>(bounds_of(p, work).queries);
  }
  static __device__ __forceinline__ unsigned output_pair(const float (&o)[DV / 2], int i, int h,
                                                         float factor) {
    return packed<T>(o[4 * i + 2 * h] * factor, o[4 * i + 2 * h + 1] * factor);
  }

  /// Each warp puts its own 16 rows in order in shared memory, some panels at a time; from there
  /// whole lines are written.
  __device__ __forceinline__ void store_output(const float (&o)[DV / 2], const Work& work,
                                               const float (&factor)[2]) const {
    const SharedAddress ordered =
        has_panels ? cursor.rings.output(cursor.group) : cursor.last_q_tile();
#pragma unroll
    for (int first = 0; first < Shape::output_panels; first += ordered_panels) {
      __syncwarp();  // everybody has read what was there
#pragma unroll
      for (int i = 8 * first; i < min(8 * (first + ordered_panels), DV / 8); i += 2) {
        if constexpr (Shape::interleaves_columns) {
          store_neighbours(o, i / 2, ordered + (i / 8 - first) * Shape::q_panel_bytes, factor);
          continue;
        }
        const unsigned pairs[4] = {output_pair(o, i, 0, factor[0]), output_pair(o, i, 1, factor[1]),
                                   output_pair(o, i + 1, 0, factor[0]),
                                   output_pair(o, i + 1, 1, factor[1])};
        store_matrices(ordered + ((i / 8 - first) * Shape::q_panel_bytes +
                                  swizzled_chunk(16 * warp() + lane() % 16, i % 8 + lane() / 16)),
                       pairs);
      }
      if (orders_in_q && p.stores_boxes && has_box(work)) {
        store_boxes(work, ordered);
      } else {
        store_lines(work, ordered, first);
      }
    }
  }
  /// Puts the lane's four columns of columns 16 i to 16 i + 15 into their panel.
  __device__ __forceinline__ static void store_neighbours(const float (&o)[DV / 2], int i,
                                                          SharedAddress panel,
                                                          const float (&factor)[2]) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const int row = 16 * warp() + lane() / 4 + 8 * h, t = lane() % 4, at = 8 * i + 2 * h;
      store_8_bytes(panel + (swizzled_chunk(row, i % 4 * 2 + t / 2) + t % 2 * 8),
                    packed<T>(o[at] * factor[h], o[at + 4] * factor[h]),
                    packed<T>(o[at + 1] * factor[h], o[at + 5] * factor[h]));
    }
  }
  /// True if the warp's 16 rows may be written as a box. Past the end of an entry another one
  /// begins.
  __device__ __forceinline__ bool has_box(const Work& work) const {
    if constexpr (!Shape::choice.ragged) return true;  // the tensor ends there
    return work.row + 16 * warp() + 16 <= bounds_of(p, work).queries;
  }
  /// The copy engine writes O, which it reads while this warp goes on.
  __device__ __forceinline__ void store_boxes(const Work& work, SharedAddress ordered) const {
    fence_async_shared();
    __syncwarp();
    if (lane() != 0) return;
    const int row = 16 * warp();
#pragma unroll
    for (int panel = 0; panel < Shape::output_panels; ++panel) {
      store_box(
          p.o,
          {panel * panel_columns, first_query_of(work) + work.row + row, work.head, work.entry},
          ordered + (panel * Shape::q_panel_bytes + row * panel_row_bytes));
    }
    commit_stores();
  }
  /// The warp itself writes the ordered panels, of which `first` is the first. Memory that is
  /// wanted back at once must not wait for the copy engine, which first loads the key tiles that it
  /// was asked for before.
  __device__ __forceinline__ void store_lines(const Work& work, SharedAddress ordered,
                                              int first) const {
    __syncwarp();
    // A row's 128 bytes of a panel are for 8 lanes.
    const int row = 16 * warp() + lane() / 8, column = first * panel_columns + 8 * (lane() % 8);
#pragma unroll
    for (int panel = 0; panel < ordered_panels; ++panel) {
#pragma unroll
      for (int i = 0; i < 16; i += 4) {
        const uint4 chunk = load_16_bytes(
            ordered + (panel * Shape::q_panel_bytes + swizzled_chunk(row + i, lane() % 8)));
        const int query = work.row + row + i;
        if (query < bounds_of(p, work).queries && column + panel * panel_columns < p.columns)
          store_columns(output_row(work, query), column + panel * panel_columns, chunk);
      }
    }
  }
  /// Writes 8 columns from `column` on, as far as there are.
  __device__ __forceinline__ void store_columns(T* row, int column, const uint4& chunk) const {
    if (column + 8 <= p.columns) {
      *reinterpret_cast<uint4*>(row + column) = chunk;
      return;
    }
    const std::uint64_t low = chunk.x | std::uint64_t{chunk.y} << 32;
    const std::uint64_t high = chunk.z | std::uint64_t{chunk.w} << 32;
    auto* const bits = reinterpret_cast<unsigned short*>(row);
#pragma unroll 1
    for (int i = 0; column + i < p.columns; ++i) {
      bits[column + i] = static_cast<unsigned short>((i < 4 ? low : high) >> 16 * (i % 4));
    }
  }

  __device__ __forceinline__ T* output_row(const Work& work, int row) const {
    return static_cast<T*>(p.output) +
           p.o_strides.offset(work.entry, work.head, first_query_of(work) + row);
  }
  __device__ __forceinline__ std::int64_t plane_of(const Work& work) const {
    return static_cast<std::int64_t>(work.entry) * p.heads + work.head;
  }
  __device__ __forceinline__ float& lse_of(const Work& work, int row) const {
    if constexpr (Shape::choice.ragged) {
      return p.lse[work.first_lse + row];
    } else {
      return p.lse[plane_of(work) * p.queries + row];
    }
  }
  __device__ __forceinline__ auto partials() const {
    return PartialResults<int>{p.partial, p.grid.heads * p.queries, p.columns};
  }
  __device__ __forceinline__ float* partial_row(const Work& work, int row) const {
    return partials().row(work.part, plane_of(work) * p.queries + row);
  }
};

}  // namespace attest
