#pragma once

#include <cstdint>
#include <variant>
#include <vector>

#include "core/attention/operation.hpp"
#include "core/attention/paging.hpp"

namespace attest {

/// Entry (b, h, n, d) of a tensor lies where the tensor's strides say.
struct Strided {};

/// The entries of the batch follow each other along the sequence: row n of entry b is row
/// starts[b] + n of a strided tensor [1, heads, starts[batch], columns]. Rows between an entry's
/// last and the next one's first are nobody's.
struct Packed {
  std::vector<std::int32_t> starts;        ///< [batch + 1]: cu_seqlens
  std::vector<std::int32_t> lengths = {};  ///< [batch]; empty: entries end where the next begin

  [[nodiscard]] std::int64_t rows_of(std::int64_t entry) const {
    const auto b = static_cast<std::size_t>(entry);
    return lengths.empty() ? starts[b + 1] - starts[b] : lengths[b];
  }
};

/// Packing of tensors with these rows under a problem with lengths: `entry_gap` unused rows lie
/// behind every entry.
[[nodiscard]] Packed packed_entries(const Problem& problem, Rows rows, std::int64_t entry_gap);

/// Row n of entry b is slot n % page_size of page pages[b][n / page_size] of a strided tensor
/// [pool_pages, heads, page_size, columns].
struct Paged {
  PageMap map;
};

/// Rule by which the rows of a tensor are found in memory. On the host every tensor keeps the shape
/// that its operation gives it.
using Storage = std::variant<Strided, Packed, Paged>;

/// Paged where the paging is used and rows are keys; packed where the problem has lengths, with
/// `entry_gap` rows of nobody behind every entry.
[[nodiscard]] Storage storage_of(const TensorSpec& tensor, const Problem& problem,
                                 const Paging& paging, std::int64_t entry_gap = 0);
/// Shape in memory of a strided tensor whose rows are found so.
[[nodiscard]] Shape stored_shape(const Storage& storage, const Shape& shape);
/// Shape with rows in units (ElementFormat), which strides and layouts count.
[[nodiscard]] Shape in_units(const Shape& stored, ElementType type);
/// Shape in memory of an operation's tensor, rows in units.
[[nodiscard]] Shape stored_shape(const TensorSpec& tensor, const Problem& problem,
                                 const Paging& paging, std::int64_t entry_gap = 0);
/// Shape in memory of an input of the problem's operation, rows in units.
[[nodiscard]] Shape stored_shape(const Problem& problem, InputIndex index, const Paging& paging);
[[nodiscard]] Shape stored_shape(const Problem& problem, OutputIndex index, const Paging& paging);

/// The tensor as it lies in memory. Slots of pages and rows that are nobody's hold `unused`.
[[nodiscard]] Tensor<float> stored(const Storage& storage, const Tensor<float>& tensor,
                                   float unused);
/// Marks the steps of the stored tensor's first dimension that belong to an entry; empty: all of
/// them do.
[[nodiscard]] std::vector<bool> used_steps(const Storage& storage);
/// Marks the rows of a packed tensor that belong to an entry; empty: all of them do.
[[nodiscard]] std::vector<bool> used_rows(const Storage& storage);
/// Tensor of the operation's `shape`, inverse of stored(). Rows that do not exist hold `absent`.
[[nodiscard]] Tensor<float> restored(const Storage& storage, const Tensor<float>& tensor,
                                     const Shape& shape, float absent);

}  // namespace attest
