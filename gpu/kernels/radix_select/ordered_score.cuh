#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {
namespace radix_select {

/// Stands for a key that its query does not see: below all scores.
inline constexpr unsigned hidden = 0;

/// A score as a number whose order is that of scores: NaN first, 0 above -0. The bits of positive
/// numbers ascend with them, those of negative ones fall.
inline __device__ unsigned ordered_bits(float score) {
  if (score != score) return 0xffffffffU;
  const unsigned bits = __float_as_uint(score);
  return (bits & 0x80000000U) != 0 ? ~bits : bits | 0x80000000U;
}

/// The score whose ordered_bits() these are.
inline __device__ float score_of(unsigned ordered) {
  if (ordered == 0xffffffffU) return __uint_as_float(0x7fffffffU);
  return __uint_as_float((ordered & 0x80000000U) != 0 ? ordered & 0x7fffffffU : ~ordered);
}

}  // namespace radix_select
}  // namespace attest
