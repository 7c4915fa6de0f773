#pragma once

#include "core/attention/codes.hpp"
#include "core/operations/quantised_arguments.hpp"
#include "gpu/kernels/fa3_wgmma/parameters.cuh"

namespace attest {

/// Scales of a tensor whose rows are known by number: that of row r of a head is `first[r >>
/// shift]` rows on. A tensor without scales, and one with a scale a head, have only row 0.
struct RowScales {
  const float* first;  ///< null: all are 1
  Strides strides;
  int shift;  ///< log2 of the rows that share a scale

  static RowScales of(Scales kind, const float* first, const Strides& strides) {
    static_assert(scale_block == 128);
    const int shift = kind == Scales::row ? 0 : kind == Scales::block ? 7 : 31;
    return {kind == Scales::none ? nullptr : first, strides, shift};
  }
  /// The scales of a head; null: all are 1.
  __device__ __forceinline__ const float* of_head(int entry, int head) const {
    return first == nullptr ? nullptr : first + strides.offset(entry, head, 0);
  }
  __device__ __forceinline__ float at(const float* of_head, int row) const {
    return of_head == nullptr ? 1.0F : of_head[(row >> shift) * strides.row];
  }
};

struct Fp8Parameters : Fa3Parameters {
  RowScales q_scales, k_scales;
  const float* v_scales;  ///< null: all are 1
  Strides v_scale_strides;
  int v_scale_step;  ///< from a column's to the next: 1, or 0 where a head has one
};

}  // namespace attest
