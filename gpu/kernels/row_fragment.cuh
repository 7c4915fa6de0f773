#pragma once

// Rows of scores or of O as tensor cores leave them, and what an online softmax does with a row.
//
// A warp has 16 rows; lane 4 g + t has two of them, row g (h = 0) and row g + 8 (h = 1), and of
// each the columns 8 j + 2 t + e for e = 0, 1. The four lanes of a row are neighbours. A fragment
// is the array of a lane's elements: float[4 n], or float[n][4] of n groups of 8 columns.

#include <cfloat>
#include <cmath>
#include <type_traits>

namespace attest {

/// Groups of 8 columns in a fragment.
template <typename Fragment>
inline constexpr int column_groups = static_cast<int>(sizeof(Fragment) / (4 * sizeof(float)));

/// Element (j, h, e) of a fragment, in the letters at the head of row_fragment.cuh.
template <typename Fragment>
__device__ __forceinline__ auto& element(Fragment& s, int j, int h, int e) {
  if constexpr (std::rank_v<Fragment> == 2) {
    return s[j][2 * h + e];
  } else {
    return s[4 * j + 2 * h + e];
  }
}

/// Sum over a row's four lanes, in each of them.
__device__ __forceinline__ float row_sum(float x) {
  x += __shfl_xor_sync(0xffffffffU, x, 1);
  return x + __shfl_xor_sync(0xffffffffU, x, 2);
}
/// Maximum over a row's four lanes, in each of them.
__device__ __forceinline__ float row_max(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xffffffffU, x, 2));
}

/// Scores of row h become -inf from the lane's key `past` on and, where `has_first`, below its key
/// `first`. A lane's keys are counted from its first.
template <bool has_first = false, typename Fragment>
__device__ __forceinline__ void hide_scores(Fragment& s, int h, int past, int first = 0) {
#pragma unroll
  for (int j = 0; j < column_groups<Fragment>; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) {
      const int key = 8 * j + e;
      if (key >= past || (has_first && key < first)) element(s, j, h, e) = -INFINITY;
    }
  }
}

/// Scores of both rows become -inf from the lane's key past[h] on. Column by column: row by row,
/// ptxas orders the instructions of fp32_wgmma otherwise.
template <typename Fragment>
__device__ __forceinline__ void hide_scores(Fragment& s, const int (&past)[2]) {
#pragma unroll
  for (int j = 0; j < column_groups<Fragment>; ++j) {
#pragma unroll
    for (int h = 0; h < 2; ++h) {
#pragma unroll
      for (int e = 0; e < 2; ++e) {
        if (8 * j + e >= past[h]) element(s, j, h, e) = -INFINITY;
      }
    }
  }
}

/// The lane's largest score of row h, NaN left out.
template <typename Fragment>
__device__ __forceinline__ float largest_score(const Fragment& s, int h) {
  float even = fmaxf(element(s, 0, h, 0), element(s, 0, h, 1));  // two chains: half the latency
  float odd = fmaxf(element(s, 1, h, 0), element(s, 1, h, 1));
#pragma unroll
  for (int j = 2; j < column_groups<Fragment>; j += 2) {
    even = fmaxf(even, fmaxf(element(s, j, h, 0), element(s, j, h, 1)));
    odd = fmaxf(odd, fmaxf(element(s, j + 1, h, 0), element(s, j + 1, h, 1)));
  }
  return fmaxf(even, odd);
}

// References. Weights of a row are 2^(c s - r), c being scale * log2(e) and r the row's reference,
// which is -FLT_MAX before its first key.

/// Largest |r| for which c s - r is formed in one rounding. Past it that would differ from rounded
/// c s minus r by more than 2^-8, and a weight could leave its format.
inline constexpr float large_reference = 0x1p16F;

__device__ __forceinline__ bool is_large_reference(float r) {
  return fabsf(r) > large_reference && r > -FLT_MAX;
}
/// Number that is subtracted from c s after round_large_scores(): r, or 0 for a large r.
__device__ __forceinline__ float subtracted_reference(float r) {
  return fabsf(r) > large_reference ? 0.0F : r;
}
/// Scores of row h, whose reference r is large, become (fl(c s) - r) / c: nothing is left to
/// subtract. The quotient's roundings are small beside that of fl(c s).
template <typename Fragment>
__device__ __forceinline__ void round_large_scores(Fragment& s, int h, float c, float per_c,
                                                   float r) {
#pragma unroll
  for (int j = 0; j < column_groups<Fragment>; ++j) {
#pragma unroll
    for (int e = 0; e < 2; ++e) element(s, j, h, e) = (element(s, j, h, e) * c - r) * per_c;
  }
}

}  // namespace attest
