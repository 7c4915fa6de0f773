#include "core/tuning_key.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>

namespace attest {
namespace {

std::int64_t bucket(std::int64_t size) {
  return size <= 0 ? size
                   : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

/// Sizes are buckets; none is counted like one.
int octaves(std::int64_t a, std::int64_t b) {
  const auto width = [](std::int64_t size) {
    return static_cast<int>(std::bit_width(static_cast<std::uint64_t>(size < 1 ? 1 : size)));
  };
  return std::abs(width(a) - width(b));
}

}  // namespace

TuningKey tuning_key(std::string_view kernel, const Problem& problem, std::string_view gpu) {
  return {.kernel = std::string(kernel),
          .gpu = std::string(gpu),
          .element_type = std::string(format_of(problem.element_type).name),
          .mask = std::string(name_of(problem.mask)),
          .head_dim = problem.head_dim,
          .group = bucket(problem.query_heads / problem.kv_heads),
          .heads = bucket(problem.batch * problem.query_heads),
          .query_len = bucket(problem.query_len),
          .key_len = bucket(problem.key_len)};
}

std::optional<int> octaves_between(const TuningKey& a, const TuningKey& b) {
  TuningKey like_b = a;
  like_b.heads = b.heads;
  like_b.query_len = b.query_len;
  like_b.key_len = b.key_len;
  if (like_b != b) return std::nullopt;
  return octaves(a.heads, b.heads) + octaves(a.query_len, b.query_len) +
         octaves(a.key_len, b.key_len);
}

std::string_view gpu_name_in(std::string_view description) {
  return description.substr(0, description.find(", "));
}

std::string to_string(const TuningKey& key) {
  return fmt::format("{} on {}: {} d{} {}, group {}, heads {}, q{} k{}", key.kernel, key.gpu,
                     key.element_type, key.head_dim, key.mask, key.group, key.heads, key.query_len,
                     key.key_len);
}

}  // namespace attest
