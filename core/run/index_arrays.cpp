#include "core/run/index_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>

#include "core/attention/storage.hpp"

namespace attest {
namespace {

constexpr std::size_t array_guard_bytes = 512;
constexpr std::size_t array_alignment = 16;
/// No length, and as a mask no 0 or 1.
constexpr std::byte guard{0xa5};

template <typename T>
std::vector<std::byte> bytes_of(const std::vector<T>& values) {
  std::vector<std::byte> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<std::uint8_t> key_mask(const Problem& problem) {
  std::vector<std::uint8_t> mask;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    for (std::int64_t key = 0; key < problem.key_len; ++key) {
      mask.push_back(problem.is_padded(entry, key) ? 0 : 1);
    }
  }
  return mask;
}

/// Numbers of the documents of the rows of each entry, as many rows as the largest has; -1 past an
/// entry's length.
std::vector<std::int32_t> documents_of(const Problem& problem, Rows rows) {
  std::vector<std::int32_t> documents;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const std::int64_t queries = problem.query_len_of(entry), keys = problem.key_len_of(entry);
    const bool is_of_queries = rows == Rows::queries;
    const std::int64_t most = is_of_queries ? problem.query_len : problem.key_len;
    for (std::int64_t n = 0; n < most; ++n) {
      const bool exists = n < (is_of_queries ? queries : keys);
      const std::int64_t key = is_of_queries ? diagonal_key(problem.mask, queries, keys, n) : n;
      documents.push_back(exists ? static_cast<std::int32_t>(problem.document_number(entry, key))
                                 : -1);
    }
  }
  return documents;
}

}  // namespace

const std::byte* IndexArrays::add(std::string name, std::vector<std::byte> bytes, Device& device,
                                  bool ends_at_page, bool is_rewritten) {
  const std::size_t begin = array_guard_bytes, end = array_guard_bytes + bytes.size();
  const std::size_t guard_end = end + (ends_at_page ? 0 : array_guard_bytes);
  const std::size_t size = (guard_end + array_alignment - 1) / array_alignment * array_alignment;
  BufferImage::Piece piece{.bytes = std::vector<std::byte>(size, guard),
                           .accessible = {begin, end},
                           .initialised = {{begin, end}}};
  std::ranges::copy(bytes, piece.bytes.begin() + static_cast<std::ptrdiff_t>(begin));
  arrays_.push_back({.image = {.name = std::move(name),
                               .pieces = {std::move(piece)},
                               .alignment = array_alignment,
                               .is_input = !is_rewritten,
                               .ends_at_page = ends_at_page}});
  arrays_.back().device = device.upload(arrays_.back().image);
  return arrays_.back().device + begin;
}

void IndexArrays::upload(const Problem& problem, const Paging& paging, Device& device,
                         Arguments& arguments, bool ends_at_page) {
  const auto add_numbers = [&](const char* name, const std::vector<std::int32_t>& numbers,
                               bool is_rewritten = false) {
    return reinterpret_cast<const std::int32_t*>(
        add(name, bytes_of(numbers), device, ends_at_page, is_rewritten));
  };
  const auto add_packed = [&](const char* starts, const char* lengths, Rows rows,
                              const std::int32_t*& starts_at, const std::int32_t*& lengths_at) {
    const Packed packed = packed_entries(problem, rows, arguments.entry_gap);
    starts_at = add_numbers(starts, packed.starts);
    if (!packed.lengths.empty()) lengths_at = add_numbers(lengths, packed.lengths);
  };
  if (problem.length_seed != 0) {
    add_packed("query_starts", "query_lengths", Rows::queries, arguments.query_starts,
               arguments.query_lengths);
    if (!paging.is_used()) {
      add_packed("key_starts", "key_lengths", Rows::keys, arguments.key_starts,
                 arguments.key_lengths);
    }
  }
  if (problem.padding_seed != 0) {
    arguments.key_mask = reinterpret_cast<const std::uint8_t*>(
        add("key_mask", bytes_of(key_mask(problem)), device, ends_at_page));
  }
  if (problem.prefix_seed != 0) {
    std::vector<std::int32_t> lengths;
    for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
      lengths.push_back(static_cast<std::int32_t>(problem.prefix_len_of(entry)));
    }
    arguments.prefix_lengths = add_numbers("prefix_lengths", lengths);
  }
  if (problem.document_seed != 0) {
    arguments.query_documents =
        add_numbers("query_documents", documents_of(problem, Rows::queries));
    arguments.key_documents = add_numbers("key_documents", documents_of(problem, Rows::keys));
  }
  if (problem.list_seed != 0) {
    const KeyListArrays lists = key_list_arrays(problem);
    arguments.key_lists = {.rows = problem.list_rows,
                           .keys = problem.list_keys,
                           .lists = problem.lists(),
                           .room = lists.room,
                           .items = add_numbers("list_items", lists.items),
                           .counts = add_numbers("list_counts", lists.counts)};
  }
  if (!paging.is_used()) return;
  const PageTableArrays arrays = page_table_arrays(problem, paging);
  arguments.page_table = {.page_size = paging.page_size,
                          .pool_pages = arrays.pool_pages,
                          .shared_keys = arrays.shared_keys,
                          .columns = arrays.columns,
                          .table_size = std::ssize(arrays.pages),
                          .pages = add_numbers("page_table", arrays.pages)};
  const bool is_dense = arrays.starts.empty();
  if (!is_dense) arguments.page_table.starts = add_numbers("page_starts", arrays.starts);
  arguments.page_table.lengths =
      add_numbers(is_dense ? "key_lengths" : "last_page_lengths", arrays.lengths, true);
  form_ = paging.table;
  lengths_ = arrays_.size() - 1;
}

void IndexArrays::shorten(Device& device) {
  Array& array = arrays_.at(lengths_);
  const BufferImage::Piece& piece = array.image.pieces.front();
  std::vector<std::int32_t> lengths((piece.accessible.end - piece.accessible.begin) /
                                    sizeof(std::int32_t));
  std::memcpy(lengths.data(), piece.bytes.data() + piece.accessible.begin,
              lengths.size() * sizeof(std::int32_t));
  for (std::int32_t& length : lengths) length = shorter_length(form_, length);
  const std::vector<std::byte> bytes = bytes_of(lengths);
  if (!bytes.empty()) device.fill(array.device + piece.accessible.begin, bytes.size(), bytes);
}

void IndexArrays::restore(Device& device) {
  Array& array = arrays_.at(lengths_);
  const BufferImage::Piece& piece = array.image.pieces.front();
  const auto bytes =
      std::span(piece.bytes)
          .subspan(piece.accessible.begin, piece.accessible.end - piece.accessible.begin);
  if (!bytes.empty()) device.fill(array.device + piece.accessible.begin, bytes.size(), bytes);
}

void IndexArrays::check(Device& device, MemoryReport& report) const {
  for (const Array& array : arrays_) {
    const BufferImage::Piece& piece = array.image.pieces.front();
    std::vector<std::byte> now(piece.bytes.size());
    device.download(array.device, now);
    const auto changed = std::ranges::mismatch(now, piece.bytes).in1;
    if (changed == now.end()) continue;
    const auto at = static_cast<std::size_t>(changed - now.begin());
    const bool is_inside = at >= piece.accessible.begin && at < piece.accessible.end;
    auto& list = is_inside ? report.modified_inputs : report.damaged_guards;
    list.push_back(
        fmt::format("byte {} of {} was overwritten",
                    static_cast<std::int64_t>(at) - static_cast<std::int64_t>(array_guard_bytes),
                    array.image.name));
  }
}

void IndexArrays::release(Device& device) noexcept {
  for (const Array& array : arrays_) {
    if (array.device != nullptr) device.release(array.device);
  }
  arrays_.clear();
}

}  // namespace attest
