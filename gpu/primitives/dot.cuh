#pragma once

namespace attest {

/// start + sum of a[k] * b[k * b_stride] over k in [0, length): one chain of FMAs in ascending
/// order.
inline __device__ float dot(const float* a, const float* b, int b_stride, int length,
                            float start = 0.0F) {
  float sum = start;
  for (int k = 0; k < length; ++k) sum = fmaf(a[k], b[k * b_stride], sum);
  return sum;
}

}  // namespace attest
