#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/operation.hpp"
#include "core/attention/paging.hpp"
#include "core/attention/problem.hpp"
#include "core/base/host_device.hpp"

namespace attest {

/// Strides of a [batch, head, row, dim] tensor whose last dimension is contiguous, in units of its
/// format (ElementFormat): elements, or bytes of elements of 4 bits.
struct Strides {
  std::int64_t batch = 0;
  std::int64_t head = 0;
  std::int64_t row = 0;

  ATTEST_HOST_DEVICE constexpr std::int64_t offset(std::int64_t b, std::int64_t h,
                                                   std::int64_t n) const {
    return b * batch + h * head + n * row;
  }
};

/// Batch, head and row in memory, slowest first; head_dim is always the fastest.
enum class DimOrder : int { bhnd, bnhd, hbnd, hnbd, nbhd, nhbd };
[[nodiscard]] std::string_view name_of(DimOrder order);
[[nodiscard]] std::span<const DimOrder> all_dim_orders();
/// Order of dimensions of a name. Throws InvalidInput listing the names.
[[nodiscard]] DimOrder dim_order_from_name(std::string_view name);
/// Position in a Shape (0 batch, 1 head, 2 row) of the slowest dimension.
[[nodiscard]] int slowest_dim(DimOrder order);

/// Offsets from here on do not fit into 32 bits.
inline constexpr std::int64_t far_elements = std::int64_t{1} << 31;

/// Position of a tensor's elements in memory. It changes no answer; the gaps are filled with NaN
/// and must survive a launch.
struct TensorLayout {
  DimOrder order = DimOrder::bhnd;
  std::int64_t row_gap = 0;      ///< unused elements after every head_dim elements
  std::int64_t base_offset = 0;  ///< unused elements before the first one: moves the base pointer
  std::int64_t plane_gap = 0;    ///< unused elements after every step of the middle dimension
  std::int64_t outer_gap =
      0;  ///< after every step of the slowest one; 2^31 puts elements far apart
  /// Stride of every dimension of size 1, if not 0: legal, because nothing may multiply it.
  std::int64_t lone_stride = 0;

  friend bool operator==(const TensorLayout&, const TensorLayout&) = default;
};

/// Independent layouts, because using one tensor's strides for another is a classic bug
/// (FlagAttention#45). A tensor that nothing was said of is contiguous.
class Layouts {
 public:
  Paging paging =
      {};  ///< of tensors whose rows are keys; their layouts are then those of the pools

  [[nodiscard]] TensorLayout& operator[](InputIndex index) { return at(inputs_, index.number); }
  [[nodiscard]] TensorLayout& operator[](OutputIndex index) { return at(outputs_, index.number); }
  [[nodiscard]] const TensorLayout& operator[](InputIndex index) const {
    return at(inputs_, index.number);
  }
  [[nodiscard]] const TensorLayout& operator[](OutputIndex index) const {
    return at(outputs_, index.number);
  }

  friend bool operator==(const Layouts& a, const Layouts& b) {
    return a.paging == b.paging && same(a.inputs_, b.inputs_) && same(a.outputs_, b.outputs_);
  }

 private:
  using List = std::vector<TensorLayout>;
  static TensorLayout& at(List& list, std::size_t number) {
    if (number >= list.size()) list.resize(number + 1);
    return list[number];
  }
  static const TensorLayout& at(const List& list, std::size_t number) {
    static const TensorLayout contiguous;
    return number < list.size() ? list[number] : contiguous;
  }
  static bool same(const List& a, const List& b) {
    for (std::size_t i = 0; i < std::max(a.size(), b.size()); ++i) {
      if (at(a, i) != at(b, i)) return false;
    }
    return true;
  }

  List inputs_, outputs_;
};

[[nodiscard]] Strides strides_of(const Shape& shape, const TensorLayout& layout);
/// Elements from the first to one past the last of the tensor; base_offset is not counted. 0 for an
/// empty tensor.
[[nodiscard]] std::int64_t span_of(const Shape& shape, const TensorLayout& layout);
/// K and V of a page side by side, in a tensor of K's layout: heads of V behind those of K, or
/// slots behind slots where the layout has slots outside of heads.
struct JoinedPool {
  Shape shape{};
  Strides strides = {};           ///< of K and of V
  std::int64_t value_offset = 0;  ///< elements from K's first one to V's
  bool joins_heads = false;
};
/// Joined pool of K and V, of which `shape` and `layout` are K's stored ones.
[[nodiscard]] JoinedPool joined_pool(const Shape& shape, const TensorLayout& layout);
/// `contiguous`, or e.g. `q:bnhd+3@1 v:bhnd+8/2/5|8589934592 paged16/csr`: order, gaps, base offset
/// after `@`, lone stride after `|`; the paging at the end.
[[nodiscard]] std::string to_string(const Layouts& layouts, const Operation& operation);

}  // namespace attest
