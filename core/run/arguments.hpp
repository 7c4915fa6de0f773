#pragma once

#include <array>
#include <cstdint>

#include "core/attention/key_lists.hpp"
#include "core/attention/layout.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// More tensors than any operation has.
inline constexpr std::size_t most_tensors = 16;

/// A tensor that a launch reads.
struct InputArgument {
  const void* data = nullptr;  ///< element (0, 0, 0, 0); of the format that the operation says
  Strides strides;             ///< of the stored tensor (core/attention/storage.hpp), in units
};

/// A tensor that a launch writes.
struct OutputArgument {
  void* data = nullptr;  ///< null: the kernel does not give it
  Strides strides;
};

/// Page table of K and V: the pages of the pools that hold the keys of each entry, dense or CSR.
/// All arrays are on the launch's device. A kernel with KernelInfo::reads_lengths finds only there
/// how many keys there are: lengths in Problem are then upper bounds.
struct PageTable {
  std::int64_t page_size = 0;   ///< keys of a page; 0: K and V lie in no pages
  std::int64_t pool_pages = 0;  ///< what lies behind is no page
  /// Keys at the beginning of every entry whose pages are the same: a multiple of page_size.
  std::int64_t shared_keys = 0;
  std::int64_t columns = 0;               ///< of a row of the dense table; 0: CSR
  std::int64_t table_size = 0;            ///< numbers in `pages`
  const std::int32_t* pages = nullptr;    ///< dense [batch, columns]; CSR: of all entries
  const std::int32_t* starts = nullptr;   ///< CSR [batch + 1]: where an entry's pages begin
  const std::int32_t* lengths = nullptr;  ///< [batch] keys of the entry; CSR: in its last page

  /// The pages of an entry.
  [[nodiscard]] ATTEST_HOST_DEVICE const std::int32_t* of(std::int64_t entry) const {
    return pages + (starts == nullptr ? entry * columns : std::int64_t{starts[entry]});
  }
  [[nodiscard]] ATTEST_HOST_DEVICE std::int64_t key_len(std::int64_t entry) const {
    if (starts == nullptr) return lengths[entry];
    const std::int64_t count = starts[entry + 1] - starts[entry];
    return count == 0 ? 0 : (count - 1) * page_size + lengths[entry];
  }
};

/// Arguments of a launch: addresses on its device, a tensor by its number in the operation.
struct Arguments {
  Problem problem;
  Plan plan;
  std::array<InputArgument, most_tensors> inputs;
  std::array<OutputArgument, most_tensors> outputs;
  void* workspace = nullptr;  ///< workspace_bytes() of memory holding NaN
  /// counter_bytes() of zeros: a launch leaves them as it found them. No two launches that may run
  /// at a time have the same ones.
  unsigned* counters = nullptr;
  const std::int32_t* query_starts = nullptr;  ///< [batch + 1], cu_seqlens; null without lengths
  const std::int32_t* key_starts = nullptr;    ///< cu_seqlens of tensors whose rows are keys
  /// Rows of nobody behind every packed entry, of kernels that take them
  /// (LayoutNeeds::takes_entry_gaps): an entry is then as long as the following say.
  std::int64_t entry_gap = 0;
  const std::int32_t* query_lengths = nullptr;  ///< [batch]; null where entry_gap is 0
  const std::int32_t* key_lengths = nullptr;    ///< [batch], of tensors whose rows are keys
  const std::uint8_t* key_mask =
      nullptr;  ///< [batch, key_len], 1: not hidden; null without padding
  const std::int32_t* prefix_lengths = nullptr;  ///< [batch]; null without a prefix
  /// [batch, query_len] and [batch, key_len], ascending in an entry; null without documents.
  const std::int32_t *query_documents = nullptr, *key_documents = nullptr;
  KeyLists key_lists;  ///< not used without lists
  PageTable
      page_table;  ///< of tensors whose rows are keys: [pool_pages, heads, page_size, columns]

  [[nodiscard]] InputArgument& operator[](InputIndex index) { return inputs.at(index.number); }
  [[nodiscard]] OutputArgument& operator[](OutputIndex index) { return outputs.at(index.number); }
  [[nodiscard]] const InputArgument& operator[](InputIndex index) const {
    return inputs.at(index.number);
  }
  [[nodiscard]] const OutputArgument& operator[](OutputIndex index) const {
    return outputs.at(index.number);
  }
};

}  // namespace attest
