#pragma once

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/layout.hpp"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/primitives/wgmma_descriptor.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/tensor_map.hpp"

namespace attest {

/// A tensor [batch, head, row, column] and how boxes of it are moved.
struct Boxed {
  Shape shape;
  TensorLayout layout = {};
  int box_rows = 64;

  [[nodiscard]] Strides strides() const { return strides_of(shape, layout); }
  [[nodiscard]] std::size_t place(std::int64_t b, std::int64_t h, std::int64_t n,
                                  std::int64_t c) const {
    return static_cast<std::size_t>(first() + strides().offset(b, h, n) + c);
  }
  /// Element of the memory that is the tensor's first; what lies before it is a guard.
  [[nodiscard]] std::int64_t first() const { return 512 + layout.base_offset; }
  [[nodiscard]] std::string words() const {
    return fmt::format("{} {} gaps {}/{}/{} box {}", fmt::join(shape, "x"), name_of(layout.order),
                       layout.row_gap, layout.plane_gap, layout.outer_gap, box_rows);
  }
};

// Row strides are multiples of 16 bytes, head dims need not be: 100 columns lie in rows of 104.
inline const std::vector<Boxed>& boxed_tensors() {
  static const std::vector<Boxed> tensors{
      {.shape = {2, 3, 200, 128}},
      {.shape = {2, 3, 65, 64}, .layout = {.order = DimOrder::bnhd}},
      {.shape = {1, 2, 127, 256}, .layout = {.order = DimOrder::bnhd}, .box_rows = 128},
      {.shape = {2, 1, 64, 96}, .box_rows = 8},
      {.shape = {1, 1, 63, 40}},
      {.shape = {1, 1, 1, 40}, .layout = {.lone_stride = 3}},
      {.shape = {3, 2, 1, 72}, .layout = {.order = DimOrder::nbhd, .row_gap = 8, .plane_gap = 16}},
      {.shape = {2, 2, 130, 100}, .layout = {.row_gap = 4, .base_offset = 8}, .box_rows = 256},
      {.shape = {2, 3, 70, 100},
       .layout = {.order = DimOrder::bnhd, .row_gap = 12, .plane_gap = 8, .outer_gap = 24}},
      {.shape = {2, 2, 80, 72},
       .layout = {.order = DimOrder::hbnd, .row_gap = 56, .outer_gap = 64, .lone_stride = 5},
       .box_rows = 80}};
  return tensors;
}

/// Boxes that cover the tensor from (0, 0) on, and some that begin before or past its rows.
template <typename Word>
std::vector<BoxCorner> covering_boxes(const Boxed& t) {
  constexpr int box_columns = panel_row_bytes / sizeof(Word);
  const auto [batch, heads, rows, columns] = t.shape;
  std::vector<BoxCorner> corners;
  for (int b = 0; b < batch; ++b) {
    for (int h = 0; h < heads; ++h) {
      for (int c = 0; c < columns; c += box_columns) {
        for (int n = 0; n < rows; n += t.box_rows) corners.push_back({c, n, h, b});
        corners.push_back({c, -3, h, b});
        corners.push_back({c, static_cast<int>(rows), h, b});
      }
    }
  }
  return corners;
}

/// A value for each element, its neighbours' and its heads' all different.
template <typename Word>
Word value_of(std::size_t place) {
  return static_cast<Word>((place + 1) * 40507U % 0xff00U);
}
template <typename Word>
inline constexpr Word poison = static_cast<Word>(~0U);  ///< NaN in each of the formats

template <typename Word>
constexpr ElementType type_of = sizeof(Word) == 2 ? ElementType::bf16 : ElementType::fp32;

/// The tensor in memory, guards on both sides, poison wherever no element is.
template <typename Word>
std::vector<Word> picture_of(const Boxed& t) {
  constexpr std::size_t guard = 512;
  const auto span = static_cast<std::size_t>(t.first() + span_of(t.shape, t.layout));
  std::vector<Word> picture(span + guard, poison<Word>);
  const auto [batch, heads, rows, columns] = t.shape;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int n = 0; n < rows; ++n)
        for (int c = 0; c < columns; ++c)
          picture[t.place(b, h, n, c)] = value_of<Word>(t.place(b, h, n, c));
  return picture;
}

template <typename Word>
CUtensorMap map_of(const Boxed& t, const DeviceBuffer<Word>& memory) {
  return tensor_map({.first = memory.data() + t.first(),
                     .type = type_of<Word>,
                     .batch = t.shape[0],
                     .heads = t.shape[1],
                     .rows = t.shape[2],
                     .columns = t.shape[3],
                     .strides = t.strides(),
                     .box_rows = t.box_rows});
}

/// Calls at(index within the box as it lies in shared memory, place in the tensor's memory) for all
/// of its elements; the place is nothing where an element is outside the tensor.
template <typename Word, typename At>
void for_each_element(const Boxed& t, const BoxCorner& corner, const At& at) {
  constexpr int columns = panel_row_bytes / sizeof(Word), chunk = 16 / sizeof(Word);
  for (int r = 0; r < t.box_rows; ++r) {
    for (int c = 0; c < columns; ++c) {
      const auto place = static_cast<std::size_t>(swizzled_chunk(r, c / chunk)) / sizeof(Word) +
                         static_cast<std::size_t>(c % chunk);
      const int column = corner[0] + c, row = corner[1] + r;
      const bool is_inside = row >= 0 && row < t.shape[2] && column < t.shape[3];
      at(place, is_inside ? std::optional(t.place(corner[3], corner[2], row, column))
                          : std::optional<std::size_t>());
    }
  }
}

}  // namespace attest
