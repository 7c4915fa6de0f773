#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// Non-owning [batch, head, row, dim] view with arbitrary element strides, 0 and negative ones
/// included.
template <typename T>
struct TensorView {
  T* data = nullptr;
  Shape shape{};
  Shape strides{};

  [[nodiscard]] T& at(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) const {
    return data[b * strides[0] + h * strides[1] + n * strides[2] + d * strides[3]];
  }
};

/// Owning contiguous [batch, head, row, dim] tensor. Rows of LSE are stored with a last dimension
/// of 1.
template <typename T>
class Tensor {
 public:
  Tensor() = default;
  explicit Tensor(const Shape& shape, T fill = T{})
      : shape_(shape),
        values_(static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]), fill) {}

  [[nodiscard]] const Shape& shape() const { return shape_; }
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(values_.size()); }
  [[nodiscard]] std::span<T> values() { return values_; }
  [[nodiscard]] std::span<const T> values() const { return values_; }

  [[nodiscard]] TensorView<T> view() { return {values_.data(), shape_, contiguous_strides()}; }
  [[nodiscard]] TensorView<const T> view() const {
    return {values_.data(), shape_, contiguous_strides()};
  }
  [[nodiscard]] T& at(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
    return values_[index(b, h, n, d)];
  }
  [[nodiscard]] const T& at(std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) const {
    return values_[index(b, h, n, d)];
  }
  /// The contiguous elements of row (b, h, n).
  [[nodiscard]] std::span<T> row(std::int64_t b, std::int64_t h, std::int64_t n) {
    return std::span<T>(values_).subspan(index(b, h, n, 0), static_cast<std::size_t>(shape_[3]));
  }
  [[nodiscard]] std::span<const T> row(std::int64_t b, std::int64_t h, std::int64_t n) const {
    return std::span<const T>(values_).subspan(index(b, h, n, 0),
                                               static_cast<std::size_t>(shape_[3]));
  }

 private:
  [[nodiscard]] std::size_t index(std::int64_t b, std::int64_t h, std::int64_t n,
                                  std::int64_t d) const {
    return static_cast<std::size_t>(((b * shape_[1] + h) * shape_[2] + n) * shape_[3] + d);
  }
  [[nodiscard]] Shape contiguous_strides() const {
    return {shape_[1] * shape_[2] * shape_[3], shape_[2] * shape_[3], shape_[3], 1};
  }

  Shape shape_{};
  std::vector<T> values_;
};

}  // namespace attest
