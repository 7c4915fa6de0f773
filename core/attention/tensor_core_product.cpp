#include "core/attention/tensor_core_product.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstddef>
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

bool finite_step_portable(const Step& step, float* sum, std::size_t lanes) {
  return finite_step(step, sum, lanes);
}

#if defined(__x86_64__)
[[gnu::target("avx2")]] bool finite_step_avx2(const Step& step, float* sum, std::size_t lanes) {
  return finite_step(step, sum, lanes);
}
const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
#endif

bool try_finite_step(const Step& step, float* sum, std::size_t lanes) {
#if defined(__x86_64__)
  if (has_avx2) return finite_step_avx2(step, sum, lanes);
#endif
  return finite_step_portable(step, sum, lanes);
}

float ieee_step(const Step& step, float sum) {
  double total = static_cast<double>(sum);
  for (int t = 0; t < step.terms; ++t) {
    total += static_cast<double>(step.left[t]) * static_cast<double>(step.right[t * step.stride]);
  }
  return std::isnan(total) ? std::bit_cast<float>(0x7fffffffU) : static_cast<float>(total);
}

void run_step(const Step& step, float* sum, std::size_t lanes) {
  if (try_finite_step(step, sum, lanes)) return;
  // Lane by lane, so that one with a NaN or an infinity does not change its neighbours.
  for (std::size_t i = 0; i < lanes; ++i) {
    Step lane = step;
    lane.right += i;
    lane.right_exponents += i;
    if (!try_finite_step(lane, sum + i, 1)) sum[i] = ieee_step(lane, sum[i]);
  }
}

}  // namespace

ProductOperand::ProductOperand(std::vector<float> values, std::int64_t lanes, ElementType type)
    : values_(std::move(values)), lanes_(lanes) {
  const std::int32_t smallest = smallest_exponent(type);
  exponents_.reserve(values_.size());
  for (const float value : values_) exponents_.push_back(exponent_of(value, smallest));
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
  std::vector<std::int32_t> left_exponents;
  for (const float value : left) left_exponents.push_back(exponent_of(value, smallest));
  for (std::size_t begin = 0; begin < sum.size(); begin += chunk) {
    const std::size_t lanes = std::min(chunk, sum.size() - begin);
    for (std::size_t t = 0; t < left.size();) {
      const std::size_t terms =
          std::min(static_cast<std::size_t>(accumulation.fused_terms), left.size() - t);
      const auto row = first + static_cast<std::int64_t>(t);
      run_step({.left = left.data() + t,
                .left_exponents = left_exponents.data() + t,
                .terms = static_cast<int>(terms),
                .right = right.row(row) + begin,
                .right_exponents = right.exponents(row) + begin,
                .stride = right.lanes(),
                .fraction_bits = accumulation.fraction_bits,
                .sum_mask = sum_mask},
               sum.data() + begin, lanes);
      t += terms;
    }
  }
}

}  // namespace attest
