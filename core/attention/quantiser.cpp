#include "core/attention/quantiser.hpp"

#include <algorithm>
#include <cmath>

namespace attest {
namespace {

struct Place {
  std::int64_t row, column;
};

/// Position of an element's scale in the scales of its head.
Place place_of(Scales kind, std::int64_t row, std::int64_t column) {
  switch (kind) {
    case Scales::none:
    case Scales::head:
      break;
    case Scales::block:
      return {row / scale_block, 0};
    case Scales::row:
      return {row, 0};
    case Scales::column:
      return {0, column};
  }
  return {0, 0};
}

/// Calls visit(b, h, n, column) for every element of the first rows_of(b) rows.
template <typename RowsOf, typename Visit>
void for_each_element(const Shape& shape, const RowsOf& rows_of, const Visit& visit) {
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const std::int64_t rows = std::min<std::int64_t>(shape[2], rows_of(b));
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < rows; ++n) {
        for (std::int64_t c = 0; c < shape[3]; ++c) visit(b, h, n, c);
      }
    }
  }
}

}  // namespace

Shape scales_shape(const Shape& shape, Scales scales) {
  const auto [batch, heads, rows, columns] = shape;
  switch (scales) {
    case Scales::none:
      break;
    case Scales::head:
      return {batch, heads, 1, 1};
    case Scales::block:
      return {batch, heads, (rows + scale_block - 1) / scale_block, 1};
    case Scales::row:
      return {batch, heads, rows, 1};
    case Scales::column:
      return {batch, heads, 1, columns};
  }
  return {batch, heads, 1, 0};
}

float scale_of(const Tensor<float>& scales, Scales kind, std::int64_t b, std::int64_t h,
               std::int64_t row, std::int64_t column) {
  if (kind == Scales::none) return 1;
  const Place place = place_of(kind, row, column);
  return scales.at(b, h, place.row, place.column);
}

float scale_for(float amax, ElementType code, ScaleFormat format) {
  if (amax == 0) return 1;
  const double largest = format_of(code).max_finite;
  if (format == ScaleFormat::fp32) {
    const float scale = amax / static_cast<float>(largest);
    return scale == 0 ? 1 : scale;
  }
  // M times a power of two is exact in double, so this is a comparison and no rounding.
  int exponent = -127;
  while (std::ldexp(largest, exponent) < static_cast<double>(amax)) ++exponent;
  return std::ldexp(1.0F, exponent);
}

QuantisedTensor quantise(const Tensor<float>& values, ElementType code, Scales kind,
                         const std::function<std::int64_t(std::int64_t)>& rows_of,
                         ScaleFormat format) {
  const Shape& shape = values.shape();
  QuantisedTensor result{Tensor<float>(shape), Tensor<float>(scales_shape(shape, kind))};
  if (kind != Scales::none) {
    for_each_element(shape, rows_of, [&](auto b, auto h, auto n, auto c) {
      const float magnitude = std::abs(values.at(b, h, n, c));
      if (!std::isfinite(magnitude)) return;
      const Place place = place_of(kind, n, c);
      float& amax = result.scales.at(b, h, place.row, place.column);
      amax = std::max(amax, magnitude);
    });
    for (float& scale : result.scales.values()) scale = scale_for(scale, code, format);
  }
  for_each_element(shape, rows_of, [&](auto b, auto h, auto n, auto c) {
    const float quotient = values.at(b, h, n, c) / scale_of(result.scales, kind, b, h, n, c);
    result.codes.at(b, h, n, c) = static_cast<float>(round_to(code, quotient));
  });
  return result;
}

Tensor<float> column_means(const Tensor<float>& values,
                           const std::function<std::int64_t(std::int64_t)>& rows_of) {
  const Shape& shape = values.shape();
  Tensor<double> sums({shape[0], shape[1], 1, shape[3]});
  for_each_element(shape, rows_of, [&](auto b, auto h, auto n, auto c) {
    sums.at(b, h, 0, c) += static_cast<double>(values.at(b, h, n, c));
  });
  Tensor<float> means(sums.shape());
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    const auto rows = static_cast<double>(std::min<std::int64_t>(shape[2], rows_of(b)));
    for (std::int64_t h = 0; h < shape[1] && rows > 0; ++h) {
      for (std::int64_t c = 0; c < shape[3]; ++c) {
        means.at(b, h, 0, c) = static_cast<float>(sums.at(b, h, 0, c) / rows);
      }
    }
  }
  return means;
}

Tensor<float> without_means(const Tensor<float>& values, const Tensor<float>& means,
                            const std::function<std::int64_t(std::int64_t)>& rows_of) {
  Tensor<float> result = values;
  for_each_element(values.shape(), rows_of, [&](auto b, auto h, auto n, auto c) {
    result.at(b, h, n, c) -= means.at(b, h, 0, c);
  });
  return result;
}

Tensor<double> dequantise(const Tensor<float>& codes, const Tensor<float>& scales, Scales kind) {
  Tensor<double> result(codes.shape());
  const auto all = [&](std::int64_t /*b*/) { return codes.shape()[2]; };
  for_each_element(codes.shape(), all, [&](auto b, auto h, auto n, auto c) {
    result.at(b, h, n, c) = static_cast<double>(codes.at(b, h, n, c)) *
                            static_cast<double>(scale_of(scales, kind, b, h, n, c));
  });
  return result;
}

}  // namespace attest
