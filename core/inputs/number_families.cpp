#include <array>
#include <cmath>
#include <limits>
#include <vector>

#include "core/attention/operation.hpp"
#include "core/inputs/families.hpp"
#include "core/inputs/input_fill.hpp"
#include "core/operations/quantise.hpp"

namespace attest {
namespace {

/// A power of two from 2^-5 to 2^5, drawn by the number of a row, column or head.
double power(std::uint64_t seed, std::uint64_t kind, std::int64_t number) {
  const std::uint64_t counter = 3 * static_cast<std::uint64_t>(number) + kind;
  return std::ldexp(1.0, static_cast<int>(random_below(seed, stream_choice, counter, 11)) - 5);
}

std::int64_t head_of(const Problem& problem, const ElementPlace& at) {
  return at.b * problem.kv_heads + at.h;
}

/// Numbers of the format from 0 on, ascending.
std::vector<double> numbers_from_zero(ElementType code) {
  std::vector<double> numbers;
  for (std::uint32_t bits = 0; bits < pattern_count(code) / 2; ++bits) {
    const float number = decode(code, bits);
    if (std::isfinite(number)) numbers.push_back(number);
  }
  return numbers;
}

}  // namespace

Inputs numbers_far_apart(const Problem& problem, const InputSpec& spec) {
  return {filled(key_shape(problem), [&](const ElementPlace& at) {
    const double factor = power(spec.seed, 0, at.n) * power(spec.seed, 1, at.d) *
                          power(spec.seed, 2, head_of(problem, at));
    return spec.magnitude * factor * random_normal(spec.seed, stream_k, at.index);
  })};
}

Inputs numbers_below_zero(const Problem& problem, const InputSpec& spec) {
  return {filled(key_shape(problem), [&](const ElementPlace& at) {
    const double x = random_normal(spec.seed, stream_k, at.index);
    // The diagonals, wrapped, meet every row and every column.
    const bool is_peak = at.n % problem.head_dim == at.d || at.d % problem.key_len == at.n;
    return is_peak ? -spec.magnitude * (1 + std::abs(x) / 8) : x;
  })};
}

Inputs numbers_between_codes(const Problem& problem, const InputSpec& spec) {
  const ElementType code = quantise_operation[quantising::codes].format(problem);
  const std::vector<double> numbers = numbers_from_zero(is_code(code) ? code : ElementType::e4m3);
  const auto largest = static_cast<float>(numbers.back());
  return {filled(key_shape(problem), [&](const ElementPlace& at) {
    const auto head = static_cast<std::uint64_t>(head_of(problem, at));
    const auto exponent = static_cast<int>(random_below(spec.seed, stream_choice, head, 5)) - 6;
    const double digits =
        spec.magnitude < 2 ? 1.0 : 1.0 + random_uniform(spec.seed, stream_outlier, head);
    const float amax = largest * static_cast<float>(std::ldexp(digits, exponent));
    const std::uint64_t bits = random_bits(spec.seed, stream_k, at.index);
    const double sign = bits % 2 == 0 ? 1 : -1;
    if (at.d == 0 || at.n % 32 == 0) return sign * static_cast<double>(amax);
    const std::size_t below = (bits >> 8U) % (numbers.size() - 1);
    const double scale = amax / largest;  // of fp32, as the definition has it
    return sign * scale * (numbers[below] + numbers[below + 1]) / 2;
  })};
}

Inputs numbers_of_zeros(const Problem& problem, const InputSpec& spec) {
  return {filled(key_shape(problem), [&](const ElementPlace& at) {
    const double x = random_normal(spec.seed, stream_k, at.index);
    const bool is_zero = head_of(problem, at) % 3 == 0 || at.n % 2 == 1;
    return is_zero ? std::copysign(0.0, x) : spec.magnitude * x;
  })};
}

Inputs numbers_near_zero(const Problem& problem, const InputSpec& spec) {
  return {normals(key_shape(problem), spec.seed, stream_k, spec.magnitude)};
}

Inputs numbers_not_finite(const Problem& problem, const InputSpec& spec) {
  constexpr float infinity = std::numeric_limits<float>::infinity();
  constexpr std::array<float, 4> others{std::numeric_limits<float>::quiet_NaN(), infinity,
                                        -infinity, -std::numeric_limits<float>::quiet_NaN()};
  return {filled(key_shape(problem), [&](const ElementPlace& at) {
    const std::uint64_t draw = random_bits(spec.seed, stream_outlier, at.index) % 64;
    if (draw < others.size()) return static_cast<double>(others[draw]);
    return spec.magnitude * random_normal(spec.seed, stream_k, at.index);
  })};
}

}  // namespace attest
