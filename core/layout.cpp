#include "core/layout.hpp"

#include <fmt/format.h>

namespace attest {
namespace {

void append(std::string& text, std::string_view name, const TensorLayout& layout) {
  if (layout == TensorLayout{}) return;
  text += fmt::format("{}{}:{}", text.empty() ? "" : " ", name,
                      layout.order == DimOrder::bhnd ? "bhnd" : "bnhd");
  if (layout.row_gap != 0) text += fmt::format("+{}", layout.row_gap);
  if (layout.base_offset != 0) text += fmt::format("@{}", layout.base_offset);
}

}  // namespace

Strides strides_of(const Shape& shape, const TensorLayout& layout) {
  const auto [batch, heads, rows, dim] = shape;
  const std::int64_t padded = dim + layout.row_gap;
  if (layout.order == DimOrder::bhnd) {
    return {.batch = heads * rows * padded, .head = rows * padded, .row = padded};
  }
  return {.batch = heads * rows * padded, .head = padded, .row = heads * padded};
}

std::int64_t span_of(const Shape& shape, const TensorLayout& layout) {
  const auto [batch, heads, rows, dim] = shape;
  if (batch * heads * rows * dim == 0) return 0;
  return strides_of(shape, layout).offset(batch - 1, heads - 1, rows - 1) + dim;
}

std::string to_string(const Layouts& layouts) {
  std::string text;
  append(text, "q", layouts.q);
  append(text, "k", layouts.k);
  append(text, "v", layouts.v);
  append(text, "o", layouts.o);
  return text.empty() ? "contiguous" : text;
}

}  // namespace attest
