#pragma once

// Sums of dQ as integers (core/attention/dq_units.hpp): a row's unit, and parts in it.

#include <cmath>
#include <cstdint>

#include "core/attention/dq_units.hpp"
#include "gpu/kernels/bwd_wgmma/parameters.cuh"
#include "gpu/primitives/launch.cuh"

namespace attest {

/// NaN if one of them is.
__device__ __forceinline__ float larger_or_nan(float a, float b) {
#ifdef __CUDACC__
  float larger;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(larger) : "f"(a), "f"(b));
  return larger;
#else
  return a != a || b != b ? NAN : max(a, b);
#endif
}
__device__ __forceinline__ float2 larger_or_nan(const float2& a, const float2& b) {
  return {larger_or_nan(a.x, b.x), larger_or_nan(a.y, b.y)};
}
/// Over the lane's `lanes` neighbours, a power of two.
template <int lanes>
__device__ __forceinline__ float2 largest_of_lanes(float2 most) {
#pragma unroll
  for (int step = 1; step < lanes; step *= 2) {
    most = larger_or_nan(most, {__shfl_xor_sync(0xffffffffU, most.x, step),
                                __shfl_xor_sync(0xffffffffU, most.y, step)});
  }
  return most;
}

/// Largest |k| and |v| of keys [first, past) of a KV head, by `lanes` lanes together. No other key
/// has a say: what a row does not see changes none of its bits.
template <int lanes>
__device__ __forceinline__ float2 largest_seen(const BwdSums& sums, int kv_plane, int first,
                                               int past, int lane) {
  const float2* const blocks = sums.block_sizes + std::int64_t{kv_plane} * sums.key_blocks;
  const float2* const keys =
      sums.key_sizes + std::int64_t{kv_plane} * sums.key_blocks * bwd_key_block;
  const int first_block = (first + bwd_key_block - 1) / bwd_key_block;
  const int past_block = past / bwd_key_block;
  const int before_blocks = min(past, first_block * bwd_key_block);
  float2 most{0.0F, 0.0F};
  for (int key = first + lane; key < before_blocks; key += lanes) {
    most = larger_or_nan(most, keys[key]);
  }
  for (int block = first_block + lane; block < past_block; block += lanes) {
    most = larger_or_nan(most, blocks[block]);
  }
  for (int key = max(before_blocks, past_block * bwd_key_block) + lane; key < past; key += lanes) {
    most = larger_or_nan(most, keys[key]);
  }
  return largest_of_lanes<lanes>(most);
}

/// Units in 1, a power of two, of a row of this size; NaN if that is not finite.
__device__ __forceinline__ float units_in_one(float size) {
  constexpr int bias = 127, beyond_all = 255;
  const int exponent = __float_as_int(size) >> 23 & beyond_all;
  if (exponent == beyond_all) return NAN;
  // The size is below 2^(exponent - bias + 1).
  constexpr int of_zero = 2 * bias - 1 + dq_unit_bits, most = bias - least_dq_unit_exponent;
  return __int_as_float((of_zero - max(exponent, of_zero - most)) << 23);
}
__device__ __forceinline__ float unit_of(float units_in_one) {
  constexpr int twice_one = 254 << 23;  // exponents add up to that
  return __int_as_float(twice_one - __float_as_int(units_in_one));
}

/// Scales numbers of two rows, as wgmma leaves them, by the rows' units in one. The largest of
/// each.
template <int n>
__device__ __forceinline__ float2 scale_to_units(float (&x)[n], float2 units_in_one) {
  float2 most{0.0F, 0.0F};
#pragma unroll
  for (int i = 0; i < n; i += 4) {
    x[i] *= units_in_one.x;
    x[i + 1] *= units_in_one.x;
    x[i + 2] *= units_in_one.y;
    x[i + 3] *= units_in_one.y;
    most = larger_or_nan(most, {larger_or_nan(fabsf(x[i]), fabsf(x[i + 1])),
                                larger_or_nan(fabsf(x[i + 2]), fabsf(x[i + 3]))});
  }
  return most;
}
/// Below it an integer is left in the low bits of a sum with 1.5 * 2^23.
constexpr float small_integers = 0x1p22F;
/// The bits of the integer next to x, ties to even. An H100 converts 16 numbers a clk of an SM and
/// adds 128; `is_small`: |x| is below small_integers.
template <bool is_small>
__device__ __forceinline__ float as_integer(float x) {
  if constexpr (is_small) {
    constexpr float shift = 0x1.8p23F;
    return __int_as_float(__float_as_int(x + shift) - __float_as_int(shift));
  } else {
    return __int_as_float(__float2int_rn(x));
  }
}
/// Steps of a row's range (core/attention/dq_units.hpp) that a part of dQ uses, rounded up; `most`
/// is its largest number in the row, in units. dq_range where that is too large or NaN.
__device__ __forceinline__ unsigned used_of_range(float most) {
  constexpr float steps_in_unit = 1.0F / (1 << dq_range_step_bits);
  return most < 0x1p31F ? __float2uint_ru(most * steps_in_unit) : dq_range;
}

}  // namespace attest
