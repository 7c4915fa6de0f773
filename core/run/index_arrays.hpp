#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/paging.hpp"
#include "core/run/arguments.hpp"
#include "core/run/device.hpp"
#include "core/run/guarded_buffer.hpp"

namespace attest {

/// The small arrays that a problem with lengths, padding, prefixes, documents, lists of keys or
/// pages needs on the device, each between guards: query_starts, key_starts, key_mask,
/// prefix_lengths, query_documents, key_documents, list_items, list_counts and those of the page
/// table.
class IndexArrays {
 public:
  /// The shortened length: half of an entry's keys; in CSR form, one key of its last page.
  static std::int32_t shorter_length(TableForm form, std::int32_t length) {
    return form == TableForm::dense ? length / 2 : std::min<std::int32_t>(length, 1);
  }

  IndexArrays() = default;
  IndexArrays(const IndexArrays&) = delete;
  IndexArrays& operator=(const IndexArrays&) = delete;

  /// Uploads what the problem needs and sets the pointers in `arguments`. `ends_at_page`: nothing
  /// that can be touched follows an array but for less than 16 bytes, see Placement.
  /// `arguments` say how far apart packed entries lie.
  void upload(const Problem& problem, const Paging& paging, Device& device, Arguments& arguments,
              bool ends_at_page = false);
  /// Gives every entry that lies in pages shorter_length() of its keys, in the arrays where they
  /// are; nothing else in them changes.
  void shorten(Device& device);
  void restore(Device& device);
  /// Any byte that changed is a modified input.
  void check(Device& device, MemoryReport& report) const;
  void release(Device& device) noexcept;

 private:
  struct Array {
    BufferImage image;
    std::byte* device = nullptr;
  };
  /// `is_rewritten`: shorten() may write to it, so that its pages cannot be read-only.
  const std::byte* add(std::string name, std::vector<std::byte> bytes, Device& device,
                       bool ends_at_page, bool is_rewritten = false);

  std::vector<Array> arrays_;
  std::size_t lengths_ = 0;  ///< the array of a page table's lengths
  TableForm form_ = TableForm::dense;
};

}  // namespace attest
