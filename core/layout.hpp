#pragma once

#include <cstdint>
#include <string>

#include "core/host_device.hpp"
#include "core/problem.hpp"

namespace attest {

/// Element strides of a [batch, head, row, dim] tensor whose last dimension is contiguous.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  ATTEST_HOST_DEVICE constexpr std::int64_t offset(std::int64_t b, std::int64_t h,
                                                   std::int64_t n) const {
    return b * batch + h * head + n * row;
  }
};

/// Which of head and row varies faster in memory.
enum class DimOrder : int { bhnd, bnhd };

/// Where the elements of one tensor lie. Changes no answer; the gaps are filled with NaN and must
/// survive a launch.
struct TensorLayout {
  DimOrder order = DimOrder::bhnd;
  std::int64_t row_gap = 0;  ///< unused elements after every row
  std::int64_t base_offset =
      0;  ///< unused elements before the first one: misaligns the base pointer

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

/// Independent layouts, because using one tensor's strides for another is a classic bug
/// (FlagAttention#45).
struct Layouts {
  TensorLayout q = {}, k = {}, v = {}, o = {};

  friend bool operator==(const Layouts&, const Layouts&) = default;
};

[[nodiscard]] Strides strides_of(const Shape& shape, const TensorLayout& layout);
/// Elements from the first to one past the last of the tensor; base_offset is not counted. 0 for an
/// empty tensor.
[[nodiscard]] std::int64_t span_of(const Shape& shape, const TensorLayout& layout);
/// `contiguous`, or e.g. `q:bnhd+3@1 v:bhnd+8`.
[[nodiscard]] std::string to_string(const Layouts& layouts);

}  // namespace attest
