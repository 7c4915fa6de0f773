#pragma once

#include <cfloat>
#include <cmath>

#include "gpu/kernels/lagging_softmax.cuh"

namespace attest {

/// A reference lies this far below its row's largest score when it is set, and then as much
/// further below as later scores pass that one: weights are up to 2^8 where e4m3 ends at 448, and
/// those of e4m3 below 2^-6 lose bits.
inline constexpr int fp8_weight_shift = 3, fp8_reference_lag = 5;

/// Online softmax of a warp's 16 rows. A tile is weighed below the references that there are,
/// before its maximum is known: where the sum of a lane's weights is at most the largest weight,
/// each of them is. Only elsewhere are the scores searched, references raised, and O and l
/// rescaled. `c` of a row: scale * log2(e) times the scales of Q and K.
struct Fp8Softmax : LaggingRows<WeightSums::afterwards> {
  static constexpr float largest_weight = 1U << (fp8_weight_shift + fp8_reference_lag);

  bool is_special;    ///< some row of the warp has no reference yet, or a large one
  int seen_from = 0;  ///< of key tiles from this on scores are searched first

  /// The lane's scores [first, last) become weights below the references as they are, which `sum`
  /// adds. No row is special.
  template <int first, int last, int scores>
  __device__ __forceinline__ void weigh_unseen(float (&s)[scores], const float (&c)[2],
                                               float (&sum)[2]) const {
    weigh_below<first, last>(s, c, r, sum);
  }
  /// Adds the weights of weigh_unseen() to l. False, and nothing added, where one is too large or
  /// NaN, in any row of the warp.
  __device__ __forceinline__ bool takes(const float (&sum)[2]) {
    const bool fits = sum[0] <= largest_weight && sum[1] <= largest_weight;
    if (!__all_sync(0xffffffffU, fits)) return false;
    l[0] += sum[0];
    l[1] += sum[1];
    return true;
  }
  /// Rows that takes() refused: they alone get larger references.
  __device__ __forceinline__ void find_misfits(const float (&sum)[2], int lane,
                                               bool (&misfit)[2]) const {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const unsigned misfits = __ballot_sync(0xffffffffU, !(sum[h] <= largest_weight));
      misfit[h] = (misfits >> (lane & ~3) & 0xfU) != 0;
    }
  }

  /// Scores become weights, for the rows `seen` below references that are raised where a score is
  /// the largest yet. Weights of other rows are of no use: they have been formed before, and `sum`
  /// is theirs. l adds those of all rows, before they are rounded. True where O must be multiplied
  /// by keep.
  template <int scores>
  __device__ __forceinline__ bool weigh(float (&s)[scores], const float (&c)[2],
                                        const bool (&seen)[2], const float (&sum)[2]) {
    bool has_risen = false, special = false;
#pragma unroll
    for (int h = 0; h < 2; ++h) {
      const float top = row_max(largest_score(s, h)) * c[h] - static_cast<float>(fp8_weight_shift);
      const float risen = seen[h] && top > r[h] ? top : r[h];
      has_risen |= risen > r[h];
      keep[h] = HardwareExp2::of(r[h] - risen);  // 1 for a row that stays
      r[h] = risen;
      l[h] *= keep[h];
      special |= !(fabsf(risen) <= large_reference);
      if (is_large_reference(r[h])) round_large_scores(s, h, c[h], 1.0F / c[h], r[h]);
    }
    is_special = __any_sync(0xffffffffU, special);
    const float below[2] = {subtracted_reference(r[0]), subtracted_reference(r[1])};
    float of_seen[2] = {0.0F, 0.0F};
    weigh_below<0, scores>(s, c, below, of_seen);
#pragma unroll
    for (int h = 0; h < 2; ++h) l[h] += seen[h] ? of_seen[h] : sum[h];
    return __any_sync(0xffffffffU, has_risen);
  }

 private:
  template <int first, int last, int scores>
  static __device__ __forceinline__ void weigh_below(float (&s)[scores], const float (&c)[2],
                                                     const float (&below)[2], float (&sum)[2]) {
#pragma unroll
    for (int i = first; i < last; ++i) {
      s[i] = HardwareExp2::of(fmaf(s[i], c[i / 2 % 2], -below[i / 2 % 2]));
    }
    float odd[2] = {0.0F, 0.0F};  // a chain of their own: half the latency
#pragma unroll
    for (int i = first; i < last; i += 2) {
      sum[i / 2 % 2] += s[i];
      odd[i / 2 % 2] += s[i + 1];
    }
    sum[0] += odd[0];
    sum[1] += odd[1];
  }
};

}  // namespace attest
