// The answer of quantise_operation: a function of bits, so that its bound is 0.
#include "cpu_reference/reference.hpp"

#include <algorithm>
#include <bit>
#include <boost/multiprecision/cpp_bin_float.hpp>
#include <cmath>
#include <limits>

#include "core/attention/quantiser.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/quantise.hpp"

namespace attest {
namespace {

/// Products of two numbers of fp32, and their differences from a third, are exact in it wherever
/// they decide which of two neighbours is nearer.
using Quad = boost::multiprecision::number<boost::multiprecision::cpp_bin_float_quad::backend_type,
                                           boost::multiprecision::et_off>;

constexpr std::uint64_t certificate_stream = 0x7175616e;  // "quan"

OutputAnswer exact_values(const Tensor<float>& values) {
  const Tensor<double> zeros(values.shape());
  OutputAnswer answer{zeros, zeros, zeros};
  std::ranges::copy(values.values(), answer.value.values().begin());
  return answer;
}

Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& /*roundings*/) {
  const QuantisedTensor made = quantise(
      inputs[quantising::x], quantise_operation[quantising::codes].format(problem),
      problem.codes.k_scales, [&](std::int64_t entry) { return problem.key_len_of(entry); },
      problem.codes.scale_format);
  return {exact_values(made.codes), exact_values(made.scales)};
}

/// True if no neighbour of `quotient` is nearer to dividend / divisor, and of two that are as near
/// it is the even one. divisor > 0.
bool is_nearest_quotient(float quotient, float dividend, float divisor) {
  const auto distance = [&](float q) { return abs(Quad(q) * Quad(divisor) - Quad(dividend)); };
  constexpr float infinity = std::numeric_limits<float>::infinity();
  const Quad mine = distance(quotient);
  for (const float other :
       {std::nextafter(quotient, infinity), std::nextafter(quotient, -infinity)}) {
    if (!std::isfinite(other)) continue;
    const bool is_even = (std::bit_cast<std::uint32_t>(quotient) & 1U) == 0;
    const Quad theirs = distance(other);
    if (theirs < mine || (theirs == mine && !is_even)) return false;
  }
  return true;
}

/// True if no code of the format is nearer to the number, and of two that are as near it is the
/// even one: all 256 or 16 are asked. What lies past the largest is nearest to it.
bool is_nearest_code(ElementType format, float code, float number) {
  if (std::isnan(number)) return has_nan(format) ? std::isnan(code) : code == 0;
  const double limit = format_of(format).max_finite;
  const double target = std::clamp<double>(number, -limit, limit);
  const double mine = std::abs(code - target);
  if (!is_whole(format) && std::signbit(code) != std::signbit(number)) return false;
  const bool is_even = (encode(format, code) & 1U) == 0;
  for (std::uint32_t bits = 0; bits < pattern_count(format); ++bits) {
    const double other = decode(format, bits);
    if (!(std::abs(other) <= limit) || other == code) continue;  // NaN, and -128 or -8
    const double theirs = std::abs(other - target);
    if (theirs < mine || (theirs == mine && !is_even)) return false;
  }
  return mine <= 2 * limit;  // no NaN
}

/// True if 2^e, e from -127 on, is the least of which M times it is amax or more: half of it is not
/// enough, or there is no half.
bool is_least_power(float scale, float amax, float largest) {
  if (amax == 0) return scale == 1;
  int exponent = 0;
  const bool is_power = std::frexp(scale, &exponent) == 0.5F && scale >= 0x1p-127F;
  const Quad most = Quad(largest) * Quad(scale);
  return is_power && most >= Quad(amax) && (scale == 0x1p-127F || most / 2 < Quad(amax));
}

struct Element {
  std::int64_t b, h, n, c;
};

/// Do the two share a scale?
bool share_a_scale(Scales kind, const Element& a, std::int64_t n, std::int64_t c) {
  switch (kind) {
    case Scales::none:
      return false;
    case Scales::head:
      return true;
    case Scales::block:
      return n / scale_block == a.n / scale_block;
    case Scales::row:
      return n == a.n;
    case Scales::column:
      return c == a.c;
  }
  return false;
}

/// The definition once more, for one element: its scale among those that share it, and its code
/// among all codes.
bool is_as_defined(const Problem& problem, const Tensor<float>& x, const Answer& answer,
                   const Element& at) {
  const Scales kind = problem.codes.k_scales;
  const ElementType format = quantise_operation[quantising::codes].format(problem);
  const auto code = static_cast<float>(answer[quantising::codes].value.at(at.b, at.h, at.n, at.c));
  float amax = 0, scale = 1;
  for (std::int64_t n = 0; n < problem.key_len_of(at.b); ++n) {
    for (std::int64_t c = 0; c < problem.head_dim; ++c) {
      const float size = std::abs(x.at(at.b, at.h, n, c));
      if (share_a_scale(kind, at, n, c) && std::isfinite(size)) amax = std::max(amax, size);
    }
  }
  if (kind != Scales::none) {
    const Tensor<double>& scales = answer[quantising::scales].value;
    const Shape& shape = scales.shape();
    const std::int64_t row = shape[2] == 1 ? 0 : kind == Scales::block ? at.n / scale_block : at.n;
    scale = static_cast<float>(scales.at(at.b, at.h, row, shape[3] == 1 ? 0 : at.c));
    const auto largest = static_cast<float>(format_of(format).max_finite);
    const bool is_right = problem.codes.scale_format == ScaleFormat::ue8m0
                              ? is_least_power(scale, amax, largest)
                              : is_nearest_quotient(scale, amax, largest) ||
                                    (scale == 1 && is_nearest_quotient(0, amax, largest));
    if (!is_right) return false;
    if (!(scale > 0)) return false;
  }
  const float value = x.at(at.b, at.h, at.n, at.c);
  if (!std::isfinite(value)) return is_nearest_code(format, code, value);
  const float quotient = value / scale;
  return std::signbit(quotient) == std::signbit(value) &&
         is_nearest_quotient(quotient, value, scale) && is_nearest_code(format, code, quotient);
}

Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  const auto draw = [&](std::uint64_t axis, int row, std::int64_t below) {
    return random_below(seed, certificate_stream + axis, static_cast<std::uint64_t>(row), below);
  };
  for (int row = 0; row < rows; ++row) {
    const std::int64_t b = draw(0, row, problem.batch);
    const std::int64_t length = problem.key_len_of(b);
    if (length == 0) continue;
    const Element at{b, draw(1, row, problem.kv_heads), draw(2, row, length),
                     draw(3, row, problem.head_dim)};
    ++certificate.rows;
    if (!is_as_defined(problem, inputs[quantising::x], answer, at)) {
      certificate.worst_ratio = std::numeric_limits<double>::infinity();
    }
  }
  return certificate;
}

const ReferenceRegistration registration{
    {.operation = &quantise_operation, .exact = exact, .certify = certify}};

}  // namespace
}  // namespace attest
