#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "gpu/simt/execution.hpp"

// CUDA's device functions that the host's <cmath> lacks. Results are within the error that the CUDA
// C++ Programming Guide (mathematical functions appendix) allows the device: the error bound is
// computed for that, so the host's smaller error keeps every verdict valid.

inline float __int_as_float(int x) {
  return std::bit_cast<float>(x);
}
inline int __float_as_int(float x) {
  return std::bit_cast<int>(x);
}
inline float __uint_as_float(unsigned x) {
  return std::bit_cast<float>(x);
}
inline unsigned __float_as_uint(float x) {
  return std::bit_cast<unsigned>(x);
}

/// cvt: the nearest integer, or the next one above; NaN is 0, and what is beyond is the last one.
inline int __float2int_rn(float x) {
  if (x != x) return 0;
  if (x >= 0x1p31F) return 0x7fffffff;
  return x < -0x1p31F ? -0x7fffffff - 1 : static_cast<int>(std::nearbyint(x));
}
inline unsigned __float2uint_ru(float x) {
  if (!(x > 0.0F)) return 0;
  return x >= 0x1p32F ? 0xffffffffU : static_cast<unsigned>(std::ceil(x));
}
inline float __int2float_rn(int x) {
  return static_cast<float>(x);
}

// One rounding each. Objects are compiled with -ffp-contract=off, so + and * stay separate.
inline float __fadd_rn(float a, float b) {
  return a + b;
}
inline float __fsub_rn(float a, float b) {
  return a - b;
}
inline float __fmul_rn(float a, float b) {
  return a * b;
}
inline float __fdiv_rn(float a, float b) {
  return a / b;
}
inline float __frcp_rn(float a) {
  return 1.0F / a;
}
inline float __fsqrt_rn(float a) {
  return std::sqrt(a);
}
inline float __fmaf_rn(float a, float b, float c) {
  return attest::simt::fused_multiply_add(a, b, c);
}
inline float __fdividef(float a, float b) {
  return a / b;
}
inline float fdividef(float a, float b) {
  return a / b;
}
inline float rsqrtf(float a) {
  return 1.0F / std::sqrt(a);
}
inline float __frsqrt_rn(float a) {
  return static_cast<float>(1.0 / std::sqrt(double{a}));
}
inline float __saturatef(float a) {
  return a > 0.0F ? (a < 1.0F ? a : 1.0F) : 0.0F;
}

namespace attest::simt {
// The device multiplies by log2(e) in fp32 and looks 2^x up: the error grows with |x|. So does
// ours.
inline float fast_exp(float x) {
  return std::exp2(x * 1.44269504F);
}
inline float fast_log(float x) {
  return std::log2(x) * 0.693147182F;
}
inline float fast_log2(float x) {
  return std::log2(x);
}
inline float fast_pow(float x, float y) {
  return std::exp2(y * std::log2(x));
}
}  // namespace attest::simt
// The C library declares these names for itself, so ours are macros.
#define fmaf(a, b, c) ::attest::simt::fused_multiply_add(a, b, c)
#define __expf(x) ::attest::simt::fast_exp(x)
#define __logf(x) ::attest::simt::fast_log(x)
#define __log2f(x) ::attest::simt::fast_log2(x)
#define __powf(x, y) ::attest::simt::fast_pow(x, y)

#define ATTEST_MIN_MAX(type)           \
  constexpr type min(type a, type b) { \
    return b < a ? b : a;              \
  }                                    \
  constexpr type max(type a, type b) { \
    return a < b ? b : a;              \
  }
ATTEST_MIN_MAX(int)
ATTEST_MIN_MAX(unsigned)
ATTEST_MIN_MAX(long)
ATTEST_MIN_MAX(unsigned long)
ATTEST_MIN_MAX(long long)
ATTEST_MIN_MAX(unsigned long long)
#undef ATTEST_MIN_MAX
// As on the device: a NaN operand loses against a number.
inline float min(float a, float b) {
  return std::fmin(a, b);
}
inline float max(float a, float b) {
  return std::fmax(a, b);
}
inline double min(double a, double b) {
  return std::fmin(a, b);
}
inline double max(double a, double b) {
  return std::fmax(a, b);
}

inline int __popc(unsigned x) {
  return std::popcount(x);
}
inline int __popcll(unsigned long long x) {
  return std::popcount(x);
}
inline int __clz(int x) {
  return std::countl_zero(static_cast<unsigned>(x));
}
inline int __ffs(int x) {
  return x == 0 ? 0 : std::countr_zero(static_cast<unsigned>(x)) + 1;
}
inline int __mul24(int a, int b) {
  return a * b;
}

// Cache hints: plain loads and stores here.
template <typename T>
T __ldg(const T* address) {
  return *address;
}
template <typename T>
T __ldcg(const T* address) {
  return *address;
}
template <typename T>
T __ldcs(const T* address) {
  return *address;
}
template <typename T>
void __stcs(T* address, T value) {
  *address = value;
}
template <typename T>
void __stcg(T* address, T value) {
  *address = value;
}

#define CUDART_INF_F __builtin_huge_valf()
#define CUDART_NAN_F __builtin_nanf("")
