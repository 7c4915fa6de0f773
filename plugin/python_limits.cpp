#include "plugin/python_limits.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attest {

std::optional<std::string> PythonLimits::why_not(const Problem& p) const {
  if (!is_grouped && p.query_heads != p.kv_heads) {
    return fmt::format("{} query heads and {} KV heads; as many of both", p.query_heads,
                       p.kv_heads);
  }
  if (!takes_any_scale && p.scale != default_scale(p.head_dim)) {
    return "it has no parameter for the scale: 1 / sqrt(head_dim)";
  }
  if (needs_positive_scale && !(p.scale >= std::numeric_limits<float>::min())) {
    return "a scale that is not positive, or subnormal, is not its business";
  }
  if (!takes_no_keys && p.key_len == 0) return "key_len is 0";
  if (!has_empty_rows && p.mask == Mask::causal_bottom_right && p.query_len > p.key_len) {
    return "rows that see no key are not its business";
  }
  if (p.batch * p.query_heads > most_heads || std::max(p.query_len, p.key_len) > most_length ||
      p.rows() * p.key_len > most_scores) {
    return fmt::format("more than {} heads, {} queries or keys, or {} scores: {}", most_heads,
                       most_length, most_scores, why_not_more);
  }
  return std::nullopt;
}

PythonLimits python_limits(const Json& says) {
  PythonLimits takes{.is_grouped = says.at("grouped").get<bool>(),
                     .takes_any_scale = says.at("any_scale").get<bool>(),
                     .takes_no_keys = says.at("no_keys").get<bool>(),
                     .has_empty_rows = says.at("empty_rows").get<bool>(),
                     .needs_positive_scale = says.at("positive_scale").get<bool>()};
  if (const Json& most = says.at("most"); !most.is_null()) {
    takes.most_heads = most.at("heads").get<std::int64_t>();
    takes.most_length = most.at("length").get<std::int64_t>();
    takes.most_scores = most.at("scores").get<std::int64_t>();
    takes.why_not_more = most.at("because").get<std::string>();
  }
  return takes;
}

}  // namespace attest
