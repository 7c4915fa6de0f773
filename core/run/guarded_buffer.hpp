#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/attention/layout.hpp"
#include "core/attention/tensor.hpp"
#include "core/run/device.hpp"

namespace attest {

/// Effects of a launch on memory besides writing its answer. Each list holds sentences; empty means
/// clean.
struct MemoryReport {
  std::vector<std::string>
      damaged_guards;  ///< bytes outside the tensors, or in the gaps of their strides, changed
  std::vector<std::string> unwritten_outputs;  ///< elements of O or LSE that still hold the poison
  std::vector<std::string> modified_inputs;    ///< Q, K or V changed
};

/// Position of a buffer in memory.
struct Placement {
  /// Bytes that divide the address of the first element of a tensor without a base offset; a power
  /// of two up to 256. A base offset moves the tensor away from such an address, and no less.
  std::size_t alignment = 256;
  /// Memory behind the tensor, but for less than the alignment, is no guard but cannot be touched.
  /// Only for devices that have such memory (Device::ends_buffers_at_pages).
  bool ends_at_page = false;
};

/// One tensor as it lies in a device buffer: strided, guards around it, guards and gaps filled with
/// NaN. Where the stride of the slowest dimension is huge, each of its steps is a piece of its own
/// between guards, and what lies between the pieces is neither written nor looked at.
class GuardedBuffer {
 public:
  /// Counters may be written, and hold afterwards what they held before.
  enum class Use { input, output, workspace, counters };

  /// `values` fill an input; an output or workspace passes nullptr and is poisoned. Steps of the
  /// first dimension that are not among `used_steps` are nobody's: to read them is a defect. Empty:
  /// all are used. Rows that are not among `used_rows` are gaps; empty: none.
  GuardedBuffer(std::string name, Use use, const Shape& shape, const TensorLayout& layout,
                ElementType type, const Tensor<float>* values, const Placement& placement = {},
                const std::vector<bool>& used_steps = {}, std::vector<bool> used_rows = {});

  [[nodiscard]] const BufferImage& image() const { return image_; }
  [[nodiscard]] const Strides& strides() const { return strides_; }
  /// Byte of element (0, 0, 0, 0) in the buffer.
  [[nodiscard]] std::size_t first_byte() const { return first_; }

  /// The bytes of every piece.
  using Contents = std::vector<std::vector<std::byte>>;
  [[nodiscard]] Contents download(Device& device, const std::byte* buffer) const;
  /// Compares with the image: what is outside the elements must not have changed; an input must not
  /// have changed at all; an output must have changed everywhere.
  void check(const Contents& now, MemoryReport& report) const;
  [[nodiscard]] Tensor<float> values(const Contents& now) const;

 private:
  /// Calls visit(b, h, n, piece, byte of the row's first element in that piece).
  template <typename Visit>
  void for_each_row(const Visit& visit) const;
  void add_pieces(const TensorLayout& layout);

  Use use_;
  std::vector<bool> used_rows_;
  Shape shape_;        ///< in elements
  Shape units_shape_;  ///< in units (ElementFormat), as strides and what is compared
  Strides strides_;
  ElementType type_;
  std::size_t element_size_;  ///< of a unit
  std::size_t first_;
  std::size_t slowest_;  ///< position in the shape of the dimension that walks over the pieces
  BufferImage image_;
};

}  // namespace attest
