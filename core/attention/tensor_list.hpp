#pragma once

#include <concepts>
#include <cstddef>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/attention/tensor.hpp"

namespace attest {

/// Number of an input of an operation, in the order of Operation::tensors.
struct InputIndex {
  std::size_t number = 0;
  friend constexpr bool operator==(InputIndex, InputIndex) = default;
};
/// Number of an output of an operation: 0 is the first tensor that is no input.
struct OutputIndex {
  std::size_t number = 0;
  friend constexpr bool operator==(OutputIndex, OutputIndex) = default;
};

/// List of one item for each input, or for each output, of an operation.
template <typename T, typename Index>
class IndexedList {
 public:
  IndexedList() = default;
  template <typename... Items>
  requires(sizeof...(Items) > 0 && (std::same_as<T, std::remove_cvref_t<Items>> && ...))
      IndexedList(Items&&... items) {
    items_.reserve(sizeof...(Items));
    (items_.push_back(std::forward<Items>(items)), ...);
  }

  /// The list grows to hold the index.
  [[nodiscard]] T& operator[](Index index) {
    if (index.number >= items_.size()) items_.resize(index.number + 1);
    return items_[index.number];
  }
  [[nodiscard]] const T& operator[](Index index) const { return items_.at(index.number); }

  [[nodiscard]] std::size_t size() const { return items_.size(); }
  [[nodiscard]] auto begin() { return items_.begin(); }
  [[nodiscard]] auto end() { return items_.end(); }
  [[nodiscard]] auto begin() const { return items_.begin(); }
  [[nodiscard]] auto end() const { return items_.end(); }

 private:
  std::vector<T> items_;
};

/// The list with change(item) for each item.
template <typename T, typename Index, typename Change>
[[nodiscard]] IndexedList<T, Index> mapped(const IndexedList<T, Index>& list,
                                           const Change& change) {
  IndexedList<T, Index> result;
  for (std::size_t i = 0; i < list.size(); ++i) result[Index{i}] = change(list[Index{i}]);
  return result;
}

/// The values of a problem's inputs, each in the shape that its operation gives it and exactly
/// representable in its format. fp32 holds every fp16 and bf16 value, so one host type serves all.
using Inputs = IndexedList<Tensor<float>, InputIndex>;

/// Inputs whose values are not those of a format: numbers that codes and their scales stand for.
using RealInputs = IndexedList<Tensor<double>, InputIndex>;

/// Outputs that a kernel returned. An output that it does not give holds NaN.
using Outputs = IndexedList<Tensor<float>, OutputIndex>;

}  // namespace attest
