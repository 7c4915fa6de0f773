#pragma once

#include "core/operations/quantised_arguments.hpp"
#include "gpu/kernels/decode_mma/chunks.cuh"
#include "gpu/kernels/decode_mma/merge.cuh"

namespace attest {

/// Keys that are numbers themselves.
template <typename Shape>
struct NoKeyScales {
  __device__ NoKeyScales(const ForwardArguments& /*a*/, const DecodeUnit& /*unit*/, int /*to*/) {}
  __device__ void look_ahead(int /*first_key*/) {}
  __device__ float of_all() const { return 1.0F; }
  __device__ void apply(typename Shape::Scores& /*s*/) const {}
};

/// Factors of the scores of a unit for the codes of its keys: one number, which becomes part of the
/// scale of the scores, or one for each key. Lane i looks up key i of the warp's next tile while
/// the one before is at work.
template <typename Shape>
class KeyScales {
 public:
  __device__ KeyScales(const QuantisedArguments& a, const DecodeUnit& unit, int to)
      : is_by_key_(a.problem.codes.k_scales == Scales::block ||
                   a.problem.codes.k_scales == Scales::row),
        shift_(a.problem.codes.k_scales == Scales::block ? block_shift : 0),
        to_(to),
        row_(a.k_scale_strides.row),
        first_(a.k_scale + a.k_scale_strides.offset(unit.entry, unit.kv_head, 0)) {
    if (a.problem.codes.k_scales == Scales::head) of_all_ = *first_;
  }

  /// Loads the scales of the tile that apply() will be asked for next.
  __device__ __forceinline__ void look_ahead(int first_key) {
    const int key = first_key + static_cast<int>(threadIdx.x) % 32;
    if (is_by_key_ && key < to_) mine_ = first_[(key >> shift_) * row_];
  }
  __device__ float of_all() const { return of_all_; }
  __device__ __forceinline__ void apply(typename Shape::Scores& s) const {
    if (!is_by_key_) return;
    const int t = static_cast<int>(threadIdx.x) % 4;
#pragma unroll
    for (int j = 0; j < Shape::Bc / 8; ++j) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        const float scale = __shfl_sync(0xffffffffU, mine_, 8 * j + 2 * t + e);
#pragma unroll
        for (int i = 0; i < Shape::row_tiles; ++i) {
          s[i][j][e] *= scale;
          s[i][j][2 + e] *= scale;
        }
      }
    }
  }

 private:
  static constexpr int block_shift = 7;
  static_assert(1 << block_shift == scale_block && Shape::Bc <= 32);

  bool is_by_key_;
  int shift_, to_;
  std::int64_t row_;
  const float* first_;
  float of_all_ = 1.0F;
  float mine_ = 1.0F;  ///< of key `lane` of the tile
};

/// A row of O that V's scales multiply: one for all columns, or one for each.
template <typename T_>
struct CodeRow : DecodeRow<T_> {
  const float* scales = nullptr;  ///< null: there are none
  int step = 0;                   ///< between columns

  __device__ CodeRow(const QuantisedArguments& a, const DecodeSizes& sizes, const DecodeUnit& unit,
                     int n)
      : DecodeRow<T_>(a, sizes, unit, n) {
    const Scales kind = a.problem.codes.v_scales;
    if (kind == Scales::none) return;
    scales = a.v_scale + a.v_scale_strides.offset(unit.entry, unit.kv_head, 0);
    step = kind == Scales::column ? 1 : 0;
  }
  __device__ float scaled(float x, int column) const {
    return scales == nullptr ? x : x * scales[column * step];
  }
};

}  // namespace attest
