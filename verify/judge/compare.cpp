#include "verify/judge/compare.hpp"

#include <fmt/format.h>

#include <bit>
#include <cmath>
#include <limits>

namespace attest {
namespace {

Shape index_of(const Shape& shape, std::int64_t position) {
  Shape index{};
  for (std::size_t axis = 4; axis-- > 0;) {
    index[axis] = position % shape[axis];
    position /= shape[axis];
  }
  return index;
}

}  // namespace

bool within(double bound, double error) {
  return error <= bound;
}

void Comparison::add(const WorstElement& element) {
  ++elements;
  if (element.bound == std::numeric_limits<double>::infinity()) {
    ++vacuous;
    return;
  }
  if (!within(1.0, element.ratio)) ++outside;
  if (!(element.ratio <= worst.ratio) || elements == vacuous + 1) {
    worst = element;
  }
}

Comparison compare(const Tensor<float>& got, const Tensor<double>& want,
                   const Tensor<double>& bound) {
  Comparison result;
  for (std::size_t i = 0; i < want.values().size(); ++i) {
    const double limit = bound.values()[i];
    const WorstElement here{.index = index_of(want.shape(), static_cast<std::int64_t>(i)),
                            .got = got.values()[i],
                            .want = want.values()[i],
                            .bound = limit,
                            .ratio = error_over_bound(got.values()[i], want.values()[i], limit)};
    result.add(here);
  }
  return result;
}

bool same_bits_or_both_nan(float a, float b) {
  return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b) ||
         (std::isnan(a) && std::isnan(b));
}

std::string to_string(const Shape& index) {
  return fmt::format("[{}]", fmt::join(index, ", "));
}

}  // namespace attest
