#include "core/problem.hpp"

#include <fmt/format.h>

#include <cmath>

#include "core/error.hpp"

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
