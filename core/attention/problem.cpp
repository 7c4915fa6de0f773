#include "core/attention/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <type_traits>

#include "core/base/error.hpp"
#include "core/inputs/safetensors.hpp"

namespace attest {
namespace {

// Larger sizes are legal for kernels, but a product of four of them must fit in 63 bits.
constexpr std::int64_t max_len = std::int64_t{1} << 24;
constexpr std::int64_t max_heads = std::int64_t{1} << 16;
constexpr std::int64_t max_head_dim = 1024;
constexpr std::int64_t max_packed_rows = (std::int64_t{1} << 31) - 1;

void require_within(std::string_view field, std::int64_t value, std::int64_t low,
                    std::int64_t high) {
  if (value < low || value > high) {
    throw InvalidInput(
        fmt::format("problem field '{}' is {}; allowed: {} to {}", field, value, low, high));
  }
}

/// The parts of a Problem's text that were given.
struct GivenParts {
  std::optional<std::int64_t> batch, query_heads, kv_heads, query_len, key_len, head_dim;
  std::optional<Mask> mask;
  std::optional<ElementType> element_type;
  std::optional<float> scale;
  Problem rest;  ///< what has a default of its own
};

[[noreturn]] void reject_part(std::string_view part) {
  throw InvalidInput(fmt::format(
      "problem: '{}' is unknown; allowed: b8, h12 or h12/4, q4096, k4096, n4096 (both lengths), "
      "d64, dv64, scale0.125, softcap30, a mask, left64, right0, lengths7, padding7, an element "
      "type",
      printable(part)));
}

template <typename Number>
Number number_from(std::string_view digits, std::string_view part) {
  Number number{};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) reject_part(part);
  return number;
}

void read_part(std::string_view part, GivenParts& given) {
  for (const Mask mask : all_masks()) {
    if (name_of(mask) == part) {
      given.mask = mask;
      return;
    }
  }
  for (const ElementType type : all_element_types()) {
    if (format_of(type).name == part) {
      given.element_type = type;
      return;
    }
  }
  const auto read = [&](std::string_view name, auto& number) {
    if (!part.starts_with(name)) return false;
    using Number = std::remove_reference_t<decltype(number)>;
    number = number_from<Number>(part.substr(name.size()), part);
    return true;
  };
  if (part.starts_with("scale")) {
    given.scale = number_from<float>(part.substr(5), part);
    return;
  }
  if (read("softcap", given.rest.softcap) || read("left", given.rest.window.left) ||
      read("right", given.rest.window.right) || read("dv", given.rest.value_dim) ||
      read("lengths", given.rest.length_seed) || read("padding", given.rest.padding_seed)) {
    return;
  }
  const std::string_view digits = part.substr(1);
  const auto size = [&] { return number_from<std::int64_t>(digits, part); };
  switch (part.front()) {
    case 'b':
      given.batch = size();
      return;
    case 'h': {
      const std::size_t slash = std::min(digits.find('/'), digits.size());
      given.query_heads = number_from<std::int64_t>(digits.substr(0, slash), part);
      if (slash < digits.size()) {
        given.kv_heads = number_from<std::int64_t>(digits.substr(slash + 1), part);
      }
      return;
    }
    case 'q':
      given.query_len = size();
      return;
    case 'k':
      given.key_len = size();
      return;
    case 'n':
      given.query_len = given.key_len = size();
      return;
    case 'd':
      given.head_dim = size();
      return;
    default:
      reject_part(part);
  }
}

/// Sums of the lengths of the entries before.
template <typename LengthOf>
std::vector<std::int32_t> starts_of(const Problem& problem, const LengthOf& length_of) {
  std::vector<std::int32_t> starts{0};
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    starts.push_back(starts.back() + static_cast<std::int32_t>(length_of(entry)));
  }
  return starts;
}

}  // namespace

Shape query_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.query_len, problem.head_dim};
}

Shape key_shape(const Problem& problem) {
  return {problem.batch, problem.kv_heads, problem.key_len, problem.head_dim};
}

Shape value_shape(const Problem& problem) {
  return {problem.batch, problem.kv_heads, problem.key_len, problem.output_dim()};
}

Shape output_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.query_len, problem.output_dim()};
}

Shape lse_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.query_len, 1};
}

std::vector<std::int64_t> visible_keys_of(const Problem& problem, std::int64_t entry,
                                          std::int64_t query) {
  const KeyRange range = problem.visible_range(entry, query);
  std::vector<std::int64_t> keys;
  for (std::int64_t key = range.begin; key < range.end; ++key) {
    if (!problem.is_padded(entry, key)) keys.push_back(key);
  }
  return keys;
}

std::int64_t visible_key_count(const Problem& problem, std::int64_t entry, std::int64_t query) {
  const KeyRange range = problem.visible_range(entry, query);
  if (problem.padding_seed == 0) return range.size();
  std::int64_t count = 0;
  for (std::int64_t key = range.begin; key < range.end; ++key) {
    count += problem.is_padded(entry, key) ? 0 : 1;
  }
  return count;
}

std::vector<std::int32_t> query_starts(const Problem& problem) {
  return starts_of(problem, [&](std::int64_t entry) { return problem.query_len_of(entry); });
}

std::vector<std::int32_t> key_starts(const Problem& problem) {
  return starts_of(problem, [&](std::int64_t entry) { return problem.key_len_of(entry); });
}

float default_scale(std::int64_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

double forward_flops(const Problem& problem) {
  double pairs = 0;
  const bool are_alike = problem.length_seed == 0 && problem.padding_seed == 0;
  for (std::int64_t entry = 0; entry < (are_alike ? 1 : problem.batch); ++entry) {
    std::vector<std::int64_t> seen_before{0};  // keys before this one that padding leaves
    for (std::int64_t key = 0; key < problem.key_len_of(entry); ++key) {
      seen_before.push_back(seen_before.back() + (problem.is_padded(entry, key) ? 0 : 1));
    }
    for (std::int64_t query = 0; query < problem.query_len_of(entry); ++query) {
      const KeyRange range = problem.visible_range(entry, query);
      pairs += static_cast<double>(seen_before[static_cast<std::size_t>(range.end)] -
                                   seen_before[static_cast<std::size_t>(range.begin)]);
    }
  }
  if (are_alike) pairs *= static_cast<double>(problem.batch);
  return 2.0 * static_cast<double>(problem.head_dim + problem.output_dim()) *
         static_cast<double>(problem.query_heads) * pairs;
}

std::string to_string(const Problem& problem) {
  std::string text =
      fmt::format("b{} h{}/{} q{} k{} d{} {} {}", problem.batch, problem.query_heads,
                  problem.kv_heads, problem.query_len, problem.key_len, problem.head_dim,
                  name_of(problem.mask), format_of(problem.element_type).name);
  const auto add = [&](bool is_set, std::string_view name, auto value) {
    if (is_set) text += fmt::format(" {}{}", name, value);
  };
  add(problem.window.left >= 0, "left", problem.window.left);
  add(problem.window.right >= 0, "right", problem.window.right);
  add(problem.value_dim != 0, "dv", problem.value_dim);
  add(problem.scale != default_scale(problem.head_dim), "scale", problem.scale);
  add(problem.softcap != 0, "softcap", problem.softcap);
  add(problem.length_seed != 0, "lengths", problem.length_seed);
  add(problem.padding_seed != 0, "padding", problem.padding_seed);
  return text;
}

Problem problem_from_string(std::string_view text) {
  GivenParts given;
  constexpr std::string_view separators = " ,";
  for (std::size_t begin = text.find_first_not_of(separators); begin != text.npos;
       begin = text.find_first_not_of(separators)) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    read_part(text.substr(begin, end - begin), given);
    text.remove_prefix(end);
  }
  Problem problem = given.rest;
  problem.batch = given.batch.value_or(problem.batch);
  problem.query_heads = given.query_heads.value_or(problem.query_heads);
  problem.query_len = given.query_len.value_or(problem.query_len);
  problem.head_dim = given.head_dim.value_or(problem.head_dim);
  problem.mask = given.mask.value_or(problem.mask);
  problem.element_type = given.element_type.value_or(problem.element_type);
  problem.kv_heads = given.kv_heads.value_or(problem.query_heads);
  problem.key_len = given.key_len.value_or(problem.query_len);
  problem.scale = given.scale.value_or(default_scale(std::max<std::int64_t>(problem.head_dim, 1)));
  validate(problem);
  return problem;
}

void validate(const Problem& problem) {
  require_within("batch", problem.batch, 1, max_heads);
  require_within("query_heads", problem.query_heads, 1, max_heads);
  require_within("kv_heads", problem.kv_heads, 1, problem.query_heads);
  require_within("query_len", problem.query_len, 0, max_len);
  require_within("key_len", problem.key_len, 0, max_len);
  require_within("head_dim", problem.head_dim, 1, max_head_dim);
  require_within("value_dim", problem.value_dim, 0, max_head_dim);
  require_within("window.left", problem.window.left, -1, max_len);
  require_within("window.right", problem.window.right, -1, max_len);
  if (!is_window(problem.mask) && problem.window != Window{}) {
    throw InvalidInput(fmt::format(
        "problem field 'window' is set (left {}, right {}) but the mask is {}; allowed: "
        "with window_top_left and window_bottom_right",
        problem.window.left, problem.window.right, name_of(problem.mask)));
  }
  if (problem.query_heads % problem.kv_heads != 0) {
    throw InvalidInput(fmt::format("problem field 'kv_heads' is {}; it must divide query_heads, {}",
                                   problem.kv_heads, problem.query_heads));
  }
  if (!std::isfinite(problem.scale)) {
    throw InvalidInput(
        fmt::format("problem field 'scale' is {}; allowed: any finite number", problem.scale));
  }
  if (!std::isfinite(problem.softcap) || problem.softcap < 0) {
    throw InvalidInput(
        fmt::format("problem field 'softcap' is {}; allowed: 0 (none) or a finite positive number",
                    problem.softcap));
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  if (problem.length_seed != 0 && problem.batch * longest > max_packed_rows) {
    throw InvalidInput(
        fmt::format("problem with lengths of its own has batch {} times length {}; allowed: up to "
                    "{} rows, as offsets of packed entries have 32 bits",
                    problem.batch, longest, max_packed_rows));
  }
}

}  // namespace attest
