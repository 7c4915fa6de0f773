#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/base/json.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// A tensor of a launch as a Python process is told of it.
struct PythonTensor {
  std::string name;  ///< its operation's
  std::byte* here;   ///< contiguous, in this process; null: an output that is not given
  ElementType type;
  std::vector<std::int64_t> shape;  ///< of a number a row without the columns
  std::size_t bytes;
  bool is_output;
};

/// Those that have columns: packed [1, heads, total, columns] where entries have lengths, and pools
/// [pages, heads, page_size, columns] where keys lie in pages.
[[nodiscard]] std::vector<PythonTensor> python_tensors(const Arguments& arguments);

/// Pairs [batch, 1, query_len, key_len] of which 1 says that a query sees the key, where more hides
/// keys than a causal mask or a window: padding, a prefix, documents or lists; else empty. What all
/// of that leaves, the mask too.
[[nodiscard]] std::vector<std::uint8_t> visible_pairs(const Problem& problem);

/// Starts of packed entries, and the pages of each, as python/attest_kernels/packed.py and paged.py
/// read them; empty where there is neither.
[[nodiscard]] Json python_indices(const Arguments& arguments);

}  // namespace attest
