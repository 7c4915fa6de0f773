#include "core/attention/layout.hpp"

#include <fmt/format.h>

#include <array>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::array<DimOrder, 6> orders{DimOrder::bhnd, DimOrder::bnhd, DimOrder::hbnd,
                                         DimOrder::hnbd, DimOrder::nbhd, DimOrder::nhbd};
constexpr std::array<std::string_view, 6> names{"bhnd", "bnhd", "hbnd", "hnbd", "nbhd", "nhbd"};
/// Positions in a Shape, slowest first.
constexpr std::array<std::array<std::size_t, 3>, 6> permutations{
    {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}}};

const std::array<std::size_t, 3>& permutation_of(DimOrder order) {
  return permutations[static_cast<std::size_t>(order)];
}

void append(std::string& text, std::string_view name, const TensorLayout& layout) {
  if (layout == TensorLayout{}) return;
  text += fmt::format("{}{}:{}", text.empty() ? "" : " ", name, name_of(layout.order));
  if (layout.row_gap + layout.plane_gap + layout.outer_gap != 0) {
    text += fmt::format("+{}", layout.row_gap);
  }
  if (layout.plane_gap + layout.outer_gap != 0) {
    text += fmt::format("/{}/{}", layout.plane_gap, layout.outer_gap);
  }
  if (layout.base_offset != 0) text += fmt::format("@{}", layout.base_offset);
  if (layout.lone_stride != 0) text += fmt::format("|{}", layout.lone_stride);
}

}  // namespace

std::string_view name_of(DimOrder order) {
  return names[static_cast<std::size_t>(order)];
}
std::span<const DimOrder> all_dim_orders() {
  return orders;
}

DimOrder dim_order_from_name(std::string_view name) {
  for (const DimOrder order : orders) {
    if (name_of(order) == name) return order;
  }
  throw InvalidInput(
      fmt::format("order '{}' is unknown; allowed: {}", name, fmt::join(names, ", ")));
}

int slowest_dim(DimOrder order) {
  return static_cast<int>(permutation_of(order)[0]);
}

Strides strides_of(const Shape& shape, const TensorLayout& layout) {
  const auto [slow, middle, fast] = permutation_of(layout.order);
  std::array<std::int64_t, 3> strides{};
  strides[fast] = shape[3] + layout.row_gap;
  strides[middle] = shape[fast] * strides[fast] + layout.plane_gap;
  strides[slow] = shape[middle] * strides[middle] + layout.outer_gap;
  for (std::size_t i = 0; i < 3; ++i) {
    if (shape[i] == 1 && layout.lone_stride != 0) strides[i] = layout.lone_stride;
  }
  return {.batch = strides[0], .head = strides[1], .row = strides[2]};
}

std::int64_t span_of(const Shape& shape, const TensorLayout& layout) {
  const auto [batch, heads, rows, dim] = shape;
  if (batch * heads * rows * dim == 0) return 0;
  return strides_of(shape, layout).offset(batch - 1, heads - 1, rows - 1) + dim;
}

JoinedPool joined_pool(const Shape& shape, const TensorLayout& layout) {
  const auto& order = permutation_of(layout.order);
  const auto place = [&](std::size_t dim) { return std::ranges::find(order, dim); };
  JoinedPool pool{.shape = shape, .joins_heads = place(1) < place(2)};
  pool.shape[pool.joins_heads ? 1 : 2] *= 2;
  pool.strides = strides_of(pool.shape, layout);
  pool.value_offset =
      pool.joins_heads ? pool.strides.offset(0, shape[1], 0) : pool.strides.offset(0, 0, shape[2]);
  return pool;
}

std::string to_string(const Layouts& layouts, const Operation& operation) {
  std::string text;
  for_each_tensor(operation, [&](const TensorSpec& tensor, auto index) {
    append(text, tensor.name, layouts[index]);
  });
  if (layouts.paging.is_used()) {
    text += fmt::format("{}{}", text.empty() ? "" : " ", to_string(layouts.paging));
  }
  return text.empty() ? "contiguous" : text;
}

}  // namespace attest
