#pragma once

#include <cstring>

#include "gpu/primitives/wgmma.cuh"

namespace attest {

// fp32 numbers as sums of 16-bit ones: part 0 is the number rounded to the format, part 1 what part
// 0 leaves of it, and so on. Each difference is exact. Of two numbers the pairs (i, j) of parts
// with i + j < count are multiplied, the smallest products first.

struct PartPair {
  int left, right;
};

/// hi + lo, 22 bits; numbers must be scaled into fp16's range: nothing below 2^-25 is held.
struct Fp16Parts {
  using T = __half;
  static constexpr int count = 2, pairs = 3;
  static constexpr bool is_scaled = true;
  static __host__ __device__ constexpr PartPair pair(int n) {
    constexpr PartPair all[pairs] = {{1, 0}, {0, 1}, {0, 0}};
    return all[n];
  }
  /// Splits two numbers into their parts, the first number in the lower halves.
  static __device__ __forceinline__ void split(float a, float b, unsigned (&parts)[count]) {
    const __half2 hi = __floats2half2_rn(a, b);
    const __half2 lo = __floats2half2_rn(a - __low2float(hi), b - __high2float(hi));
    memcpy(&parts[0], &hi, sizeof hi);
    memcpy(&parts[1], &lo, sizeof lo);
  }
};

/// Three parts hold every bit of a finite fp32 number above 2^-110.
struct Bf16Parts {
  using T = __nv_bfloat16;
  static constexpr int count = 3, pairs = 6;
  static constexpr bool is_scaled = false;
  static __host__ __device__ constexpr PartPair pair(int n) {
    constexpr PartPair all[pairs] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    return all[n];
  }
  static __device__ __forceinline__ void split(float a, float b, unsigned (&parts)[count]) {
#pragma unroll
    for (unsigned& part : parts) {
      const __nv_bfloat162 of_both = __floats2bfloat162_rn(a, b);
      memcpy(&part, &of_both, sizeof part);
      a -= __low2float(of_both);
      b -= __high2float(of_both);
    }
  }
};

}  // namespace attest
