#include "core/run/tuning_key.hpp"

#include <fmt/format.h>

#include <bit>
#include <cstdlib>

namespace attest {
namespace {

std::int64_t bucket(std::int64_t size) {
  return size <= 0 ? size
                   : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(size)));
}

/// `causal` of `causal_top_left`.
std::string_view without_alignment(std::string_view mask) {
  for (const std::string_view alignment : {"_top_left", "_bottom_right"}) {
    if (mask.ends_with(alignment)) mask.remove_suffix(alignment.size());
  }
  return mask;
}

std::string_view mask_of(const Problem& problem) {
  const std::string_view name = name_of(problem.mask);
  const bool is_square = problem.query_len == problem.key_len && problem.length_seed == 0;
  return is_square ? without_alignment(name) : name;
}

bool masks_agree(std::string_view a, std::string_view b) {
  return a == b || a == without_alignment(b) || without_alignment(a) == b;
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
          .mask = std::string(mask_of(problem)),
          .head_dim = problem.head_dim,
          .value_dim = problem.output_dim(),
          .softcap = problem.softcap != 0,
          .lengths = problem.length_seed != 0,
          .padding = problem.padding_seed != 0,
          .window_left = bucket(problem.window.left),
          .window_right = bucket(problem.window.right),
          .group = bucket(problem.query_heads / problem.kv_heads),
          .heads = bucket(problem.batch * problem.query_heads),
          .query_len = bucket(problem.query_len),
          .key_len = bucket(problem.key_len)};
}

std::optional<int> octaves_between(const TuningKey& a, const TuningKey& b) {
  if (!masks_agree(a.mask, b.mask)) return std::nullopt;
  TuningKey like_b = a;
  like_b.mask = b.mask;
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
  std::string text = fmt::format("{} on {}: {} d{} dv{} {}", key.kernel, key.gpu, key.element_type,
                                 key.head_dim, key.value_dim, key.mask);
  if (key.window_left >= 0) text += fmt::format(" left{}", key.window_left);
  if (key.window_right >= 0) text += fmt::format(" right{}", key.window_right);
  if (key.softcap) text += " softcap";
  if (key.lengths) text += " lengths";
  if (key.padding) text += " padding";
  return text + fmt::format(", group {}, heads {}, q{} k{}", key.group, key.heads, key.query_len,
                            key.key_len);
}

}  // namespace attest
