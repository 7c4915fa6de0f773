#pragma once

#include "gpu/kernels/fa2_mma/products.cuh"

namespace attest {

/// The two products of a warp as decode_mma asks for them: where a lane reads, and in which columns
/// it then has O.
template <typename Shape>
struct DecodeProducts : Fa2Products<Shape> {
  using Lane = SwizzledLane<typename Shape::T, Shape::D>;

  static __device__ int query_offset(int lane) { return Lane::offset(lane); }
  static __device__ int key_offset(int lane) { return Lane::offset_by_rows(lane); }
  static __device__ int value_offset(int lane) { return Lane::offset(lane); }

  /// The lane's elements of row h of a fragment of O, to the row.
  static __device__ __forceinline__ void leave(const float (&o)[Shape::D / 8][4], int h, int lane,
                                               float* row) {
#pragma unroll
    for (int j = 0; j < Shape::D / 8; ++j) {
      *reinterpret_cast<float2*>(row + 8 * j + 2 * (lane % 4)) = {o[j][2 * h], o[j][2 * h + 1]};
    }
  }
};

}  // namespace attest
