#pragma once

#include <cfloat>
#include <cmath>

#include "gpu/kernels/lagging_softmax.cuh"
#include "gpu/primitives/mma.cuh"
#include "gpu/primitives/online_softmax.cuh"
#include "gpu/primitives/shared_address.cuh"
#include "gpu/primitives/wgmma_descriptor.hpp"

namespace attest {

/// A weight may be up to 2^this: so much below its row's largest score a reference may lie.
inline constexpr int fa3_reference_lag = 8;

/// Online softmax of a warp's 16 rows. The reference r of a row lies at most lag =
/// fa3_reference_lag below its largest c s so far. So a tile is weighed before its maximum is
/// known: where the sum of a lane's weights is at most 2^lag, each of them is. Only elsewhere are
/// the scores searched, references raised, and O and l rescaled.
template <int Bc>
struct Fa3Softmax : LaggingRows<WeightSums::afterwards> {
  static constexpr int scores = Bc / 2;
  static constexpr float largest_weight = 1U << fa3_reference_lag;

  bool is_special = true;  ///< some row of the warp has no reference yet, or a large one

  /// Scores become weights, l adds them before they are rounded. True where references were raised:
  /// O must then be multiplied by keep. References are raised to the largest score; after
  /// weigh_unseen() only those of rows for which it would have failed alone, so that no row's bits
  /// hang on its neighbours.
  __device__ __forceinline__ bool weigh(float (&s)[scores], float c, bool is_unseen) {
    bool may_rise[2] = {true, true};
    if (is_unseen) find_misfits(s, c, may_rise);
    const bool has_risen = see(s, c, may_rise);
    add(s, c);
    return has_risen;
  }

  /// Scores become weights below the references as they are. False where a score passes its
  /// reference by more than the lag or is NaN, or where a row is special. Then l is as before and s
  /// is lost.
  __device__ __forceinline__ bool weigh_unseen(float (&s)[scores], float c) {
    if (is_special) return false;
    float sum[2];
    weigh_below<WeightSums::afterwards>(s, c, r, sum);
    const bool fits = sum[0] <= largest_weight && sum[1] <= largest_weight;
    if (!__all_sync(0xffffffffU, fits)) return false;
    l[0] += sum[0];
    l[1] += sum[1];
    return true;
  }

 private:
  /// Rows for which weigh_unseen() fails.
  __device__ __forceinline__ void find_misfits(const float (&s)[scores], float c,
                                               bool (&misfit)[2]) const {
    float sum[2];
    float weights[scores];
#pragma unroll
    for (int i = 0; i < scores; ++i) weights[i] = s[i];
    weigh_below<WeightSums::afterwards>(weights, c, r, sum);
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const bool fits = fabsf(r[h]) <= large_reference && sum[h] <= largest_weight;
      const unsigned misfits = __ballot_sync(0xffffffffU, !fits);
      misfit[h] = (misfits >> (threadIdx.x % 32 & ~3U) & 0xfU) != 0;
    }
  }

  __device__ __forceinline__ bool see(float (&s)[scores], float c, const bool (&may_rise)[2]) {
    float largest[2];
    bool has_risen = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      largest[h] = largest_score(s, h) * c;
      has_risen |= may_rise[h] && largest[h] > r[h];
    }
    const bool any = __any_sync(0xffffffffU, has_risen);
    if (any) raise(largest, may_rise);
    if (is_special) round_large(s, c);
    return any;
  }

  __device__ __forceinline__ void raise(const float (&largest)[2], const bool (&may_rise)[2]) {
    bool special = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = row_max(largest[h]);
      const float risen = may_rise[h] && top > r[h] ? top : r[h];
      keep[h] = HardwareExp2::of(r[h] - risen);  // 1 for a row that stays
      r[h] = risen;
      l[h] *= keep[h];
      special |= !(fabsf(risen) <= large_reference);
    }
    is_special = __any_sync(0xffffffffU, special);
  }

  /// The base's with a jump around the scores, which ptxas orders otherwise.
  __device__ __forceinline__ void round_large(float (&s)[scores], float c) const {
    const float per_c = 1.0F / c;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      if (!(fabsf(r[h]) > large_reference && r[h] > -FLT_MAX)) continue;
      round_large_scores(s, h, c, per_c, r[h]);
    }
  }
};

/// A warp forms its 16 rows of S = Q K^T once more, by mma.sync. Its bits are those of wgmma, since
/// both add in steps of 16. `q` is the warp's rows of a tile with `q_rows` rows, `k` a tile of Bc
/// rows, both as in wgmma_descriptor.hpp. Bc is a multiple of 16.
template <typename T, int D, int Bc, int q_rows>
__device__ __forceinline__ void form_scores_again(float (&s)[Bc / 2], SharedAddress q,
                                                  SharedAddress k) {
  const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
  for (float& x : s) x = 0.0F;
#pragma unroll 1
  for (int step = 0; step < D / 16; ++step) {
    const int panel = step / 4, chunk = step % 4 * 2;
    unsigned a[4];
    load_matrices(
        a, q + (panel * q_rows * panel_row_bytes + swizzled_chunk(lane % 16, chunk + lane / 16)));
#pragma unroll
    for (int j = 0; j < Bc / 8; ++j) {
      unsigned b[2];  // keys 8 j to 8 j + 7, both halves of the step
      load_matrices(b, k + (panel * Bc * panel_row_bytes +
                            swizzled_chunk(8 * j + lane % 8, chunk + lane / 8 % 2)));
      float d[4] = {s[4 * j], s[4 * j + 1], s[4 * j + 2], s[4 * j + 3]};
      mma_16x8x16<T>(d, a, b);
#pragma unroll
      for (int i = 0; i < 4; ++i) s[4 * j + i] = d[i];
    }
  }
}

}  // namespace attest
