#include "core/inputs/safetensors.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <system_error>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

// Not core/base/json.hpp's: that one looks for a name among all others, and a header may have a
// hundred thousand.
using SortedJson = nlohmann::json;

constexpr std::size_t length_bytes = 8;
constexpr std::size_t max_header_bytes = 100'000'000;  // the format's own limit
constexpr std::uintmax_t max_file_bytes = std::uintmax_t{1} << 32;
constexpr std::size_t max_path_bytes = 4096;

[[noreturn]] void reject(std::string_view where, const std::string& what) {
  throw InvalidInput(
      fmt::format("safetensors file '{}': {}", printable(where, max_path_bytes), what));
}

[[noreturn]] void reject(std::string_view where, std::string_view tensor, const std::string& what) {
  reject(where, fmt::format("tensor '{}': {}", printable(tensor), what));
}

/// Short text of a JSON value for a message.
std::string excerpt(const SortedJson& value) {
  return printable(value.dump(-1, ' ', true, SortedJson::error_handler_t::replace));
}

std::uint64_t little_endian_u64(std::span<const std::byte> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < length_bytes; ++i) {
    value |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
  }
  return value;
}

/// The header's length in bytes, checked against the file's size.
std::size_t header_length(std::span<const std::byte> bytes, std::string_view where) {
  if (bytes.size() < length_bytes) {
    reject(where, fmt::format("has {} bytes; allowed: at least {}, the length of the header",
                              bytes.size(), length_bytes));
  }
  const std::uint64_t length = little_endian_u64(bytes);
  const std::size_t limit = std::min(bytes.size() - length_bytes, max_header_bytes);
  if (length > limit) {
    reject(where, fmt::format("the header's length is {} bytes; allowed in this file: at most {}",
                              length, limit));
  }
  return static_cast<std::size_t>(length);
}

/// A name given twice would silently hide a tensor, so the parser looks at every key.
SortedJson parse_header(std::string_view text, std::string_view where) {
  std::set<std::string> names;
  const auto check = [&](int depth, SortedJson::parse_event_t event, SortedJson& parsed) {
    if (event == SortedJson::parse_event_t::key && depth == 1 &&
        !names.insert(parsed.get<std::string>()).second) {
      reject(where, fmt::format("name '{}' is given twice", printable(parsed.get<std::string>())));
    }
    return true;
  };
  require_shallow_json(text,
                       fmt::format("safetensors file '{}'", printable(where, max_path_bytes)));
  try {
    SortedJson header = SortedJson::parse(text, check);
    if (!header.is_object()) {
      reject(where, fmt::format("the header is {}; allowed: a JSON object", excerpt(header)));
    }
    return header;
  } catch (const SortedJson::parse_error& error) {
    reject(where, fmt::format("the header is not JSON: wrong at its byte {}", error.byte));
  } catch (const SortedJson::exception&) {
    reject(where, "the header holds a number that is too large for a double");
  }
}

std::map<std::string, std::string> read_metadata(const SortedJson& value, std::string_view where) {
  std::map<std::string, std::string> metadata;
  const bool is_good = value.is_object() && std::ranges::all_of(value, [](const SortedJson& entry) {
                         return entry.is_string();
                       });
  if (!is_good) {
    reject(where, fmt::format("__metadata__ is {}; allowed: an object of strings", excerpt(value)));
  }
  for (const auto& [key, entry] : value.items()) metadata[key] = entry.get<std::string>();
  return metadata;
}

ElementType read_type(const SortedJson& value, std::string_view name, std::string_view where) {
  std::vector<std::string_view> names;
  for (const ElementType type : all_element_types()) {
    if (value == format_of(type).safetensors_name) return type;
    names.push_back(format_of(type).safetensors_name);
  }
  reject(where, name,
         fmt::format("dtype is {}; allowed: {}", excerpt(value), fmt::join(names, ", ")));
}

/// Whole numbers from 0 that fit in 63 bits.
std::vector<std::int64_t> read_numbers(const SortedJson& value, std::string_view key,
                                       std::string_view name, std::string_view where) {
  constexpr auto limit = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const bool is_good = value.is_array() && std::ranges::all_of(value, [](const SortedJson& number) {
                         return number.is_number_unsigned() && number.get<std::uint64_t>() <= limit;
                       });
  if (!is_good) {
    reject(where, name,
           fmt::format("{} is {}; allowed: a list of whole numbers from 0 to 2^63 - 1", key,
                       excerpt(value)));
  }
  return value.get<std::vector<std::int64_t>>();
}

/// Bytes that the shape asks for. Throws when that does not fit in 63 bits.
std::int64_t bytes_of(const SafetensorsEntry& entry, std::string_view where) {
  auto bytes = static_cast<std::int64_t>(format_of(entry.type).size_bytes);
  // Before the product: [2^40, 2^40, 0] is legal and empty.
  if (std::ranges::find(entry.shape, 0) != entry.shape.end()) return 0;
  for (const std::int64_t extent : entry.shape) {
    if (__builtin_mul_overflow(bytes, extent, &bytes)) {
      reject(where, entry.name,
             fmt::format("shape [{}] has more bytes than 2^63 - 1", fmt::join(entry.shape, ", ")));
    }
  }
  return bytes;
}

SafetensorsEntry read_entry(const std::string& name, const SortedJson& value, std::size_t data_size,
                            std::string_view where) {
  const bool has_keys = value.is_object() && value.size() == 3 && value.contains("dtype") &&
                        value.contains("shape") && value.contains("data_offsets");
  if (!has_keys) {
    reject(where, name,
           fmt::format("is described by {}; allowed: an object of dtype, shape and data_offsets",
                       excerpt(value)));
  }
  SafetensorsEntry entry{.name = name,
                         .type = read_type(value["dtype"], name, where),
                         .shape = read_numbers(value["shape"], "shape", name, where)};
  const auto offsets = read_numbers(value["data_offsets"], "data_offsets", name, where);
  if (offsets.size() != 2 || offsets[0] > offsets[1] || std::cmp_greater(offsets[1], data_size)) {
    reject(where, name,
           fmt::format("data_offsets are [{}]; allowed: begin and end with 0 <= begin <= end <= {}",
                       fmt::join(offsets, ", "), data_size));
  }
  if (const std::int64_t wanted = bytes_of(entry, where); offsets[1] - offsets[0] != wanted) {
    reject(where, name,
           fmt::format("data_offsets [{}] span {} bytes; allowed: {}, from dtype and shape",
                       fmt::join(offsets, ", "), offsets[1] - offsets[0], wanted));
  }
  entry.begin = static_cast<std::size_t>(offsets[0]);
  entry.end = static_cast<std::size_t>(offsets[1]);
  return entry;
}

/// The format allows neither overlaps nor gaps: a file that has them was not meant so.
void check_coverage(const std::vector<SafetensorsEntry>& entries, std::size_t data_size,
                    std::string_view where) {
  std::size_t covered = 0;
  for (const SafetensorsEntry& entry : entries) {
    if (entry.begin != covered) {
      reject(where, entry.name,
             fmt::format("begins at byte {}; allowed: {}, where the tensor before it ends",
                         entry.begin, covered));
    }
    covered = entry.end;
  }
  if (covered != data_size) {
    reject(where, fmt::format("the tensors end at byte {} of the data; allowed: {}, the file's end",
                              covered, data_size));
  }
}

}  // namespace

std::int64_t SafetensorsEntry::size() const {
  return static_cast<std::int64_t>((end - begin) / format_of(type).size_bytes);
}

Safetensors Safetensors::from_file(const std::filesystem::path& file) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(file, error)) {
    reject(file.string(), error ? error.message() : "is not a file");
  }
  const std::uintmax_t size = std::filesystem::file_size(file, error);
  std::ifstream in(file, std::ios::binary);
  if (error || !in) reject(file.string(), "cannot be opened for reading");
  if (size > max_file_bytes) {
    reject(file.string(), fmt::format("has {} bytes; allowed: at most {}", size, max_file_bytes));
  }
  std::vector<std::byte> bytes(size);
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(size));
  if (!in) reject(file.string(), fmt::format("only {} of {} bytes can be read", in.gcount(), size));
  return from_bytes(std::move(bytes), file.string());
}

Safetensors Safetensors::from_bytes(std::vector<std::byte> bytes, std::string where) {
  Safetensors result;
  result.where_ = std::move(where);
  const std::size_t length = header_length(bytes, result.where_);
  result.data_begin_ = length_bytes + length;
  const std::size_t data_size = bytes.size() - result.data_begin_;
  const std::string_view text(reinterpret_cast<const char*>(bytes.data()) + length_bytes, length);
  const SortedJson header = parse_header(text, result.where_);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      result.metadata_ = read_metadata(value, result.where_);
    } else {
      result.entries_.push_back(read_entry(name, value, data_size, result.where_));
    }
  }
  std::ranges::sort(result.entries_, {},
                    [](const SafetensorsEntry& e) { return std::pair(e.begin, e.end); });
  check_coverage(result.entries_, data_size, result.where_);
  result.bytes_ = std::move(bytes);
  return result;
}

const SafetensorsEntry* Safetensors::find(std::string_view name) const {
  const auto found = std::ranges::find(entries_, name, &SafetensorsEntry::name);
  return found == entries_.end() ? nullptr : &*found;
}

std::vector<float> Safetensors::values(const SafetensorsEntry& entry) const {
  std::vector<float> values(static_cast<std::size_t>(entry.size()));
  const std::size_t width = format_of(entry.type).size_bytes;
  const std::byte* from = bytes_.data() + data_begin_ + entry.begin;
  // Little-endian, like every machine this runs on.
  if (entry.type == ElementType::fp32) {
    if (!values.empty()) std::memcpy(values.data(), from, values.size() * width);
    return values;
  }
  for (float& value : values) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, from, width);
    value = decode(entry.type, bits);
    from += width;
  }
  return values;
}

void write_safetensors(const std::filesystem::path& file, const std::vector<NamedTensor>& tensors) {
  Json header = Json::object();
  std::size_t end = 0;
  for (const NamedTensor& named : tensors) {
    const std::size_t begin = end;
    end += named.tensor->values().size() * sizeof(double);
    header[named.name] = {
        {"dtype", "F64"}, {"shape", named.tensor->shape()}, {"data_offsets", {begin, end}}};
  }
  std::string bytes(8, '\0');
  const std::string text = header.dump();
  for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(text.size() >> 8 * i & 0xff);
  bytes += text;
  bytes.reserve(bytes.size() + end);
  for (const NamedTensor& named : tensors) {
    const auto raw = std::as_bytes(std::span(named.tensor->values()));
    bytes.append(reinterpret_cast<const char*>(raw.data()), raw.size());
  }
  write_whole_file(file, bytes);
}

}  // namespace attest
