#include "core/attention/tensor_core_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstring>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr int largest_step = 64;
constexpr int largest_fraction_bits = 28;  // a product below 2^(F + 2) then fits 31 bits

// Sums of two exponents of finite values lie in [-252, 254]. These two leave that range whatever
// they are added to.
constexpr std::int32_t zero_exponent = -600;
constexpr std::int32_t special_exponent = 1500;    // NaN and infinity
constexpr std::int32_t smallest_alignment = -133;  // as recorded on an H200
constexpr std::int32_t all_zeros = -400;           // below it: only zeros take part
constexpr std::int32_t largest_finite_sum = 300;
constexpr std::int32_t fp32_smallest_exponent = -126;

std::int32_t smallest_exponent(ElementType type) {
  return std::ilogb(format_of(type).min_normal);
}

[[gnu::always_inline]] inline std::int32_t exponent_of(float value, std::int32_t smallest) {
  const std::uint32_t magnitude = std::bit_cast<std::uint32_t>(value) & 0x7fffffffU;
  const auto biased = static_cast<std::int32_t>(magnitude >> 23U);
  const std::int32_t exponent = std::max(biased - 127, smallest);
  return magnitude == 0 ? zero_exponent : biased == 255 ? special_exponent : exponent;
}

/// Toward zero, subnormals included, to what `mask` leaves of fp32. Branch-free so that it
/// vectorises.
[[gnu::always_inline]] inline float truncate_to_float(double value, std::uint32_t mask) {
  const auto nearest = static_cast<float>(value);
  const double excess = std::abs(static_cast<double>(nearest)) - std::abs(value);
  const std::uint32_t step = excess > 0 && std::abs(value) < 0x1p128 ? 1U : 0U;
  return std::bit_cast<float>((std::bit_cast<std::uint32_t>(nearest) - step) & mask);
}

/// Bits of fp32 that are 0 in numbers of at most 12 significant bits, whose products fp32 holds.
constexpr std::uint32_t wide_bits = 0xfffU;

/// One step of the tensor core over a chunk of lanes.
struct Step {
  const float* left;
  const std::int32_t* left_exponents;
  int terms;
  const float* right;
  const std::int32_t* right_exponents;
  std::int64_t stride;  // between rows of `right`
  int fraction_bits;
  std::uint32_t sum_mask;  // bits of fp32 that a sum keeps
  bool fits_32_bits;       // no factor has wide_bits, and no sum of products exceeds 2^31
};

constexpr std::size_t chunk = 64;

/// False, with nothing changed, if a NaN or an infinity takes part.
[[gnu::always_inline]] inline bool finite_step(const Step& step, float* sum, std::size_t lanes) {
  std::array<std::int32_t, chunk> exponent;
  std::array<double, chunk> scale;
  std::array<double, chunk> total;
  for (std::size_t i = 0; i < lanes; ++i) exponent[i] = exponent_of(sum[i], fp32_smallest_exponent);
  for (int t = 0; t < step.terms; ++t) {
    const std::int32_t* right = step.right_exponents + t * step.stride;
    const std::int32_t left = step.left_exponents[t];
    for (std::size_t i = 0; i < lanes; ++i) exponent[i] = std::max(exponent[i], left + right[i]);
  }
  std::int32_t largest = 0;
  for (std::size_t i = 0; i < lanes; ++i) largest = std::max(largest, exponent[i]);
  if (largest > largest_finite_sum) return false;
  // All scaling is by powers of two and all products have at most 48 bits: exact in double. The
  // conversion to an integer is the truncation.
  for (std::size_t i = 0; i < lanes; ++i) {
    const std::int32_t aligned = std::max(exponent[i], smallest_alignment);
    const auto biased = static_cast<std::uint64_t>(1023 + step.fraction_bits - aligned);
    scale[i] = std::bit_cast<double>(biased << 52U);
    total[i] =
        static_cast<double>(static_cast<std::int32_t>(static_cast<double>(sum[i]) * scale[i]));
  }
  for (int t = 0; t < step.terms; ++t) {
    const float* right = step.right + t * step.stride;
    const auto left = static_cast<double>(step.left[t]);
    for (std::size_t i = 0; i < lanes; ++i) {
      const double product = left * static_cast<double>(right[i]) * scale[i];
      total[i] += static_cast<double>(static_cast<std::int32_t>(product));
    }
  }
  // Adding 0 makes +0 of -0: a tensor core has no negative zero.
  for (std::size_t i = 0; i < lanes; ++i) {
    sum[i] = truncate_to_float(total[i] / scale[i], step.sum_mask) + 0.0F;
  }
  return true;
}

constexpr std::size_t narrow_lanes = 8;
using Floats [[gnu::vector_size(32)]] = float;
using Integers [[gnu::vector_size(32)]] = std::int32_t;
using FourIntegers [[gnu::vector_size(16)]] = std::int32_t;
using FourFloats [[gnu::vector_size(16)]] = float;
using FourDoubles [[gnu::vector_size(32)]] = double;
using FourWords [[gnu::vector_size(32)]] = std::uint64_t;

template <typename Vector, typename Number>
[[gnu::always_inline]] inline void read_lanes(Vector& lanes, const Number* from) {
  std::memcpy(&lanes, from, sizeof lanes);
}

/// finite_step() of narrow_lanes lanes in fp32 and 32-bit integers, where step.fits_32_bits. False,
/// with nothing changed, also if an exponent is so large or small that fp32 does not do.
///
/// With alignments from F - 125 to F + 96: every product is exact in fp32, or below 2^-126. Scaled,
/// the first stays exact and the second is below 1, as it was in finite_step(), because no scale
/// exceeds 2^125. A total is below 2^32, so a sum that is not 0 lies in [2^-125, 2^128) and its
/// truncation drops bits of a double.
[[gnu::always_inline]] inline bool narrow_step(const Step& step, float* sum) {
  const std::int32_t least_alignment = step.fraction_bits - 125;
  const std::int32_t largest_alignment = step.fraction_bits + 96;
  Floats old;
  read_lanes(old, sum);
  const Integers biased = (reinterpret_cast<Integers>(old) & 0x7fffffff) >> 23;
  const Integers of_sum = biased == 0 ? Integers{} + fp32_smallest_exponent : biased - 127;
  Integers exponent = old == 0.0F ? Integers{} + zero_exponent : of_sum;
  for (int t = 0; t < step.terms; ++t) {
    Integers right;
    read_lanes(right, step.right_exponents + t * step.stride);
    right += step.left_exponents[t];
    exponent = right > exponent ? right : exponent;
  }
  // Where all terms are zeros any alignment does.
  const Integers aligned = exponent < all_zeros ? Integers{} + least_alignment : exponent;
  const Integers is_beyond = (aligned > largest_alignment) | (aligned < least_alignment);
  std::uint64_t any_beyond = 0;
  for (const std::uint64_t lanes : std::bit_cast<std::array<std::uint64_t, 4>>(is_beyond))
    any_beyond |= lanes;
  if (any_beyond != 0) return false;
  const auto scale = reinterpret_cast<Floats>((127 + step.fraction_bits - aligned) << 23);
  const auto unit = reinterpret_cast<Floats>((127 - step.fraction_bits + aligned) << 23);
  Integers products{};
  for (int t = 0; t < step.terms; ++t) {
    Floats right;
    read_lanes(right, step.right + t * step.stride);
    products += __builtin_convertvector(right * step.left[t] * scale, Integers);
  }
  const Integers olds = __builtin_convertvector(old * scale, Integers);
  const std::uint64_t kept = ~std::uint64_t{0} << 29 << std::countr_zero(step.sum_mask);
  const auto finish = [&](FourIntegers product, FourIntegers old_term, FourFloats unit_of_both,
                          float* to) __attribute__((always_inline)) {
    const FourDoubles total = __builtin_convertvector(product, FourDoubles) +
                              __builtin_convertvector(old_term, FourDoubles);
    const FourDoubles value = total * __builtin_convertvector(unit_of_both, FourDoubles);
    const auto cut = reinterpret_cast<FourDoubles>(reinterpret_cast<FourWords>(value) & kept);
    const FourFloats result = __builtin_convertvector(cut, FourFloats);
    std::memcpy(to, &result, sizeof result);
  };
#define ATTEST_HALF(v, first) __builtin_shufflevector(v, v, first, first + 1, first + 2, first + 3)
  finish(ATTEST_HALF(products, 0), ATTEST_HALF(olds, 0), ATTEST_HALF(unit, 0), sum);
  finish(ATTEST_HALF(products, 4), ATTEST_HALF(olds, 4), ATTEST_HALF(unit, 4), sum + 4);
#undef ATTEST_HALF
  return true;
}

float ieee_step(const Step& step, float sum) {
  double total = static_cast<double>(sum);
  for (int t = 0; t < step.terms; ++t) {
    total += static_cast<double>(step.left[t]) * static_cast<double>(step.right[t * step.stride]);
  }
  return std::isnan(total) ? std::bit_cast<float>(0x7fffffffU) : static_cast<float>(total);
}

[[gnu::always_inline]] inline void run_step(const Step& step, float* sum, std::size_t lanes) {
  Step rest = step;
  const auto pass = [&](std::size_t done) {
    rest.right += done;
    rest.right_exponents += done;
    sum += done;
    lanes -= done;
  };
  while (lanes > 0) {
    while (step.fits_32_bits && lanes >= narrow_lanes && narrow_step(rest, sum)) pass(narrow_lanes);
    // Narrow lanes that could not be done so, or all of them.
    const std::size_t others = step.fits_32_bits ? std::min(lanes, narrow_lanes) : lanes;
    if (!finite_step(rest, sum, others)) {
      // Lane by lane, so that one with a NaN or an infinity does not change its neighbours.
      for (std::size_t i = 0; i < others; ++i) {
        Step lane = rest;
        lane.right += i;
        lane.right_exponents += i;
        if (!finite_step(lane, sum + i, 1)) sum[i] = ieee_step(lane, sum[i]);
      }
    }
    pass(others);
  }
}

void run_step_portable(const Step& step, float* sum, std::size_t lanes) {
  run_step(step, sum, lanes);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] void run_step_avx2(const Step& step, float* sum, std::size_t lanes) {
  run_step(step, sum, lanes);
}
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

void run_step_here(const Step& step, float* sum, std::size_t lanes) {
#if defined(__x86_64__)
  if (has_avx2) return run_step_avx2(step, sum, lanes);
#endif
  run_step_portable(step, sum, lanes);
}

/// Exponents of the values; true if one of them has wide_bits. Branch-free so that it vectorises.
bool find_exponents(std::span<const float> values, std::int32_t smallest, std::int32_t* exponents) {
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < values.size(); ++i) {
    exponents[i] = exponent_of(values[i], smallest);
    bits |= std::bit_cast<std::uint32_t>(values[i]);
  }
  return (bits & wide_bits) != 0;
}

}  // namespace

ProductOperand::ProductOperand(std::vector<float> values, std::int64_t lanes, ElementType type)
    : values_(std::move(values)), lanes_(lanes) {
  const std::int32_t smallest = smallest_exponent(type);
  exponents_.resize(values_.size());
  is_narrow_ = !find_exponents(values_, smallest, exponents_.data());
}

void accumulate_tensor_core(const Accumulation& accumulation, std::span<const float> left,
                            ElementType left_type, const ProductOperand& right, std::int64_t first,
                            std::span<float> sum) {
  if (accumulation.kind != Accumulation::Kind::tensor_core) {
    throw InvalidInput("the accumulation is not that of a tensor core");
  }
  if (accumulation.fused_terms < 1 || accumulation.fused_terms > largest_step) {
    throw InvalidInput(fmt::format("fused_terms is {}; allowed: 1 to {} (tensor-core accumulation)",
                                   accumulation.fused_terms, largest_step));
  }
  if (accumulation.fraction_bits < 1 || accumulation.fraction_bits > largest_fraction_bits) {
    throw InvalidInput(
        fmt::format("fraction_bits is {}; allowed: 1 to {} (tensor-core accumulation)",
                    accumulation.fraction_bits, largest_fraction_bits));
  }
  if (accumulation.sum_bits < 1 || accumulation.sum_bits > 23) {
    throw InvalidInput(fmt::format("sum_bits is {}; allowed: 1 to 23 (tensor-core accumulation)",
                                   accumulation.sum_bits));
  }
  const std::uint32_t sum_mask = ~0U << static_cast<unsigned>(23 - accumulation.sum_bits);
  const std::int32_t smallest = smallest_exponent(left_type);
  // Below 2^(F + 2) each.
  const bool fit_in_sum =
      accumulation.fused_terms <= 1 << std::max(29 - accumulation.fraction_bits, 0);
  std::array<std::int32_t, largest_step> left_exponents;
  for (std::size_t t = 0; t < left.size();) {
    const std::size_t terms =
        std::min(static_cast<std::size_t>(accumulation.fused_terms), left.size() - t);
    const auto factors = left.subspan(t, terms);
    const bool is_wide = find_exponents(factors, smallest, left_exponents.data());
    const bool fits = fit_in_sum && right.is_narrow() && !is_wide;
    const auto row = first + static_cast<std::int64_t>(t);
    for (std::size_t begin = 0; begin < sum.size(); begin += chunk) {
      run_step_here({.left = factors.data(),
                     .left_exponents = left_exponents.data(),
                     .terms = static_cast<int>(terms),
                     .right = right.row(row) + begin,
                     .right_exponents = right.exponents(row) + begin,
                     .stride = right.lanes(),
                     .fraction_bits = accumulation.fraction_bits,
                     .sum_mask = sum_mask,
                     .fits_32_bits = fits},
                    sum.data() + begin, std::min(chunk, sum.size() - begin));
    }
    t += terms;
  }
}

}  // namespace attest
