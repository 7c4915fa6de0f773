#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/attention/operation.hpp"

namespace attest {

/// Entry (b, h, n, d) of a tensor lies where the tensor's strides say.
struct Strided {};

/// The entries of the batch follow each other along the sequence: row n of entry b is row
/// starts[b] + n of a strided tensor [1, heads, starts[batch], columns].
struct Packed {
  std::vector<std::int32_t> starts;  ///< [batch + 1]: cu_seqlens
};

/// How the rows of a tensor are found in memory. On the host every tensor keeps the shape that its
/// operation gives it.
using Storage = std::variant<Strided, Packed>;

/// Packed where the problem has lengths.
[[nodiscard]] Storage storage_of(const TensorSpec& tensor, const Problem& problem);
/// Shape of the strided tensor in memory.
[[nodiscard]] Shape stored_shape(const Storage& storage, const Shape& shape);
[[nodiscard]] Shape stored_shape(const TensorSpec& tensor, const Problem& problem);
/// The shape in which an input of the problem's operation is stored.
[[nodiscard]] Shape stored_shape(const Problem& problem, InputIndex index);
[[nodiscard]] Shape stored_shape(const Problem& problem, OutputIndex index);

/// The tensor as it lies in memory.
[[nodiscard]] Tensor<float> stored(const Storage& storage, const Tensor<float>& tensor);
/// Inverse: a tensor of the operation's `shape`. Rows that do not exist hold `absent`.
[[nodiscard]] Tensor<float> restored(const Storage& storage, const Tensor<float>& tensor,
                                     const Shape& shape, float absent);

}  // namespace attest
