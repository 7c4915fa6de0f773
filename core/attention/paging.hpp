#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// Form of the page table: the page numbers of all entries in memory.
enum class TableForm : int {
  dense,  ///< a row of equal width for every entry, and the entry's number of keys
  csr     ///< one after the other: where each entry's begin, and the keys in its last page
};
/// Content of slots and table entries that no key uses.
enum class Unused : int {
  nan,       ///< NaN; in the table -1
  infinity,  ///< +infinity; in the table a number far past the pool
  large      ///< large finite numbers; in the table pages of other entries
};
[[nodiscard]] std::span<const std::string_view> table_form_names();
[[nodiscard]] std::span<const std::string_view> unused_names();
/// Value of a slot that no key uses. Where a format has neither NaN nor infinity, its largest
/// number stands for them.
[[nodiscard]] float unused_value(Unused unused, ElementType type);

/// Pages of K and V in a pool [pages, kv_heads, page_size, columns], which a table finds. They
/// change no answer. The order of heads and slots, gaps and strides are those of the tensors' own
/// layouts, of which the pages are the batch: bhnd is what serving systems call HND, bnhd NHD.
struct Paging {
  std::int64_t page_size = 0;  ///< keys of a page; 0: K and V lie in no pages
  TableForm table = TableForm::dense;
  bool joins_kv = false;           ///< K and V of a page are neighbours, in one pool of K's layout
  bool shares_prefix = false;      ///< pages full of Problem::shared_keys lie in memory once
  std::int64_t spare_pages = 0;    ///< pages of the pool that belong to no entry
  std::int64_t spare_columns = 0;  ///< of a dense table, past what the longest entry needs
  std::uint64_t shuffle_seed = 0;  ///< draws which page is where; 0: in the order of the entries
  Unused unused = Unused::nan;

  [[nodiscard]] bool is_used() const { return page_size > 0; }
  friend bool operator==(const Paging&, const Paging&) = default;
};

/// `paged16/csr/joined/shared/spare3/columns2/shuffled7/infinity`; what has its default is left
/// out. Empty where there are no pages.
[[nodiscard]] std::string to_string(const Paging& paging);
/// Paging of a text, inverse of to_string(). Throws InvalidInput naming the part and what is
/// allowed.
[[nodiscard]] Paging paging_from_string(std::string_view text);
/// Throws InvalidInput naming the field, the value and the allowed range.
void validate(const Paging& paging, const Problem& problem);

/// Pages of the pool that hold the keys of each entry.
struct PageMap {
  std::int64_t page_size = 1;
  std::int64_t pool_pages = 0;
  std::int64_t shared_keys = 0;  ///< whose pages all entries that are long enough have in common
  std::vector<std::vector<std::int32_t>> pages = {};  ///< of every entry, in the order of its keys
  std::vector<std::int64_t> lengths = {};             ///< keys of every entry
};
[[nodiscard]] PageMap page_map(const Problem& problem, const Paging& paging);

/// The table as a kernel reads it (PageTable in core/run/arguments.hpp), with what lies in entries
/// that no key uses.
struct PageTableArrays {
  std::int64_t pool_pages = 0, shared_keys = 0;  ///< as in PageMap
  std::vector<std::int32_t> pages = {};          ///< dense: [batch, columns]; csr: of all entries
  std::int64_t columns = 0;                      ///< dense; 0: csr
  std::vector<std::int32_t> starts = {};         ///< csr: [batch + 1]
  std::vector<std::int32_t> lengths =
      {};  ///< dense: keys of an entry; csr: keys in its last page, or 0
};
[[nodiscard]] PageTableArrays page_table_arrays(const Problem& problem, const Paging& paging);

}  // namespace attest
