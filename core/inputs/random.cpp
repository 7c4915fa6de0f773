#include "core/inputs/random.hpp"

#include <Random123/philox.h>

#include <bit>
#include <cmath>

namespace attest {
namespace {

/// ln x for x in (0, 1), from IEEE additions, multiplications and divisions only: x = f 2^e, ln f
/// by its atanh series.
double portable_log(double x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(x);
  const auto exponent = static_cast<int>(bits >> 52U) - 1023;
  const double f = std::bit_cast<double>((bits & 0xfffffffffffffULL) | 0x3ff0000000000000ULL);
  const double t = (f - 1.0) / (f + 1.0);  // in [0, 1/3): 18 terms reach 2^-53
  const double t2 = t * t;
  double series = 0;
  for (int k = 37; k >= 1; k -= 2) series = series * t2 + 1.0 / k;
  constexpr double ln2 = 0x1.62e42fefa39efp-1;
  return exponent * ln2 + 2.0 * t * series;
}

/// Quantile of N(0, 1) at p in (0, 1): Acklam's rational approximations, central and tail.
double normal_quantile(double p) {
  constexpr double a[] = {-3.969683028665376e+01, 2.209460984245205e+02,  -2.759285104469687e+02,
                          1.383577518672690e+02,  -3.066479806614716e+01, 2.506628277459239e+00};
  constexpr double b[] = {-5.447609879822406e+01, 1.615858368580409e+02, -1.556989798598866e+02,
                          6.680131188771972e+01, -1.328068155288572e+01};
  constexpr double c[] = {-7.784894002430293e-03, -3.223964580411365e-01, -2.400758277161838e+00,
                          -2.549732539343734e+00, 4.374664141464968e+00,  2.938163982698783e+00};
  constexpr double d[] = {7.784695709041462e-03, 3.224671290700398e-01, 2.445134137142996e+00,
                          3.754408661907416e+00};
  constexpr double tail = 0.02425;
  if (p < tail || p > 1.0 - tail) {
    const double q = std::sqrt(-2.0 * portable_log(p < tail ? p : 1.0 - p));
    const double value = (((((c[0] * q + c[1]) * q + c[2]) * q + c[3]) * q + c[4]) * q + c[5]) /
                         ((((d[0] * q + d[1]) * q + d[2]) * q + d[3]) * q + 1.0);
    return p < tail ? value : -value;
  }
  const double q = p - 0.5;
  const double r = q * q;
  return (((((a[0] * r + a[1]) * r + a[2]) * r + a[3]) * r + a[4]) * r + a[5]) * q /
         (((((b[0] * r + b[1]) * r + b[2]) * r + b[3]) * r + b[4]) * r + 1.0);
}

}  // namespace

std::uint64_t random_bits(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  const auto low = [](std::uint64_t x) { return static_cast<std::uint32_t>(x); };
  const auto high = [](std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); };
  const r123::Philox4x32::ctr_type counter{{low(index), high(index), low(stream), high(stream)}};
  const r123::Philox4x32::key_type key{{low(seed), high(seed)}};
  const auto block = r123::Philox4x32{}(counter, key);
  return static_cast<std::uint64_t>(block[1]) << 32U | block[0];
}

double random_uniform(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  return static_cast<double>(random_bits(seed, stream, index) >> 11U) * 0x1p-53;
}

std::int64_t random_below(std::uint64_t seed, std::uint64_t stream, std::uint64_t index,
                          std::int64_t bound) {
  __extension__ using Wide = unsigned __int128;
  const auto product =
      static_cast<Wide>(random_bits(seed, stream, index)) * static_cast<std::uint64_t>(bound);
  return static_cast<std::int64_t>(product >> 64U);
}

double random_normal(std::uint64_t seed, std::uint64_t stream, std::uint64_t index) {
  // Half a step inside the grid of uniforms: never 0 or 1.
  return normal_quantile(random_uniform(seed, stream, index) + 0x1p-54);
}

}  // namespace attest
