#include "core/problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "core/error.hpp"
#include "core/safetensors.hpp"

namespace attest {
namespace {

// Larger sizes are legal for kernels, but a product of four of them must fit in 63 bits.
constexpr std::int64_t max_len = std::int64_t{1} << 24;
constexpr std::int64_t max_heads = std::int64_t{1} << 16;
constexpr std::int64_t max_head_dim = 1024;

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
};

[[noreturn]] void reject_part(std::string_view part) {
  throw InvalidInput(fmt::format(
      "problem: '{}' is unknown; allowed: b8, h12 or h12/4, q4096, k4096, n4096 (both lengths), "
      "d64, scale0.125, a mask, an element type",
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
  if (part.starts_with("scale")) {
    given.scale = number_from<float>(part.substr(5), part);
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

}  // namespace

Shape query_shape(const Problem& problem) {
  return {problem.batch, problem.query_heads, problem.query_len, problem.head_dim};
}

Shape key_shape(const Problem& problem) {
  return {problem.batch, problem.kv_heads, problem.key_len, problem.head_dim};
}

float default_scale(std::int64_t head_dim) {
  return static_cast<float>(1.0 / std::sqrt(static_cast<double>(head_dim)));
}

double forward_flops(const Problem& problem) {
  double pairs = 0;
  for (std::int64_t query = 0; query < problem.query_len; ++query) {
    pairs += static_cast<double>(problem.visible_keys(query));
  }
  return 4.0 * static_cast<double>(problem.batch * problem.query_heads * problem.head_dim) * pairs;
}

std::string to_string(const Problem& problem) {
  std::string text =
      fmt::format("b{} h{}/{} q{} k{} d{} {} {}", problem.batch, problem.query_heads,
                  problem.kv_heads, problem.query_len, problem.key_len, problem.head_dim,
                  name_of(problem.mask), format_of(problem.element_type).name);
  if (problem.scale != default_scale(problem.head_dim)) {
    text += fmt::format(" scale{}", problem.scale);
  }
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
  const Problem unsaid;
  Problem problem{.batch = given.batch.value_or(unsaid.batch),
                  .query_heads = given.query_heads.value_or(unsaid.query_heads),
                  .query_len = given.query_len.value_or(unsaid.query_len),
                  .head_dim = given.head_dim.value_or(unsaid.head_dim),
                  .mask = given.mask.value_or(unsaid.mask),
                  .element_type = given.element_type.value_or(unsaid.element_type)};
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
  require_within("query_len", problem.query_len, 1, max_len);
  require_within("key_len", problem.key_len, 0, max_len);
  require_within("head_dim", problem.head_dim, 1, max_head_dim);
  if (problem.query_heads % problem.kv_heads != 0) {
    throw InvalidInput(fmt::format("problem field 'kv_heads' is {}; it must divide query_heads, {}",
                                   problem.kv_heads, problem.query_heads));
  }
  if (!std::isfinite(problem.scale)) {
    throw InvalidInput(
        fmt::format("problem field 'scale' is {}; allowed: any finite number", problem.scale));
  }
}

}  // namespace attest
