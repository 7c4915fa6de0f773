#include "plugin/python_limits.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace attest {
namespace {

template <typename Value>
bool is_among(const Value& value, const std::vector<Value>& values) {
  return std::ranges::find(values, value) != values.end();
}

/// Tests if the mask hides all keys of an entry from one of its queries.
bool is_some_row_empty(const Problem& p) {
  for (std::int64_t b = 0; b < p.batch; ++b) {
    if (p.key_len_of(b) == 0) continue;
    for (std::int64_t query = 0; query < p.query_len_of(b); ++query) {
      if (p.visible_range(b, query).size() == 0) return true;
    }
  }
  return false;
}

}  // namespace

std::optional<std::string> PythonLimits::why_not(const Problem& p) const {
  if (!is_grouped && p.query_heads != p.kv_heads) {
    return fmt::format("{} query heads and {} KV heads; as many of both", p.query_heads,
                       p.kv_heads);
  }
  if (has_one_kv_head && p.kv_heads != 1) return "it takes one head of K";
  if (!takes_any_scale && p.scale != default_scale(p.head_dim)) {
    return "it has no parameter for the scale: 1 / sqrt(head_dim)";
  }
  if (needs_positive_scale && !(p.scale >= std::numeric_limits<float>::min())) {
    return "a scale that is not positive, or subnormal, is not its business";
  }
  if (!takes_no_keys && p.key_len == 0) return "key_len is 0";
  if (!has_empty_rows && is_some_row_empty(p)) return "rows that see no key are not its business";
  if (window_rights && is_window(p.mask) && !is_among(p.window.right, *window_rights)) {
    return fmt::format("its windows see {} keys behind the diagonal",
                       fmt::join(*window_rights, " or "));
  }
  if (p.bias != Bias::none && !is_among(p.bias, biases)) return "a bias that is shared otherwise";
  if (p.bias != Bias::none && !is_among(p.element_type, bias_types)) {
    return fmt::format("beside a bias it takes no {}", format_of(p.element_type).name);
  }
  const bool are_corners_one = p.query_len == p.key_len && p.length_seed == 0;
  if (counts_from_top_left && p.slopes == Slopes::given && p.mask == Mask::none &&
      !are_corners_one) {
    return "without a mask ALiBi counts from the bottom right, and it does not";
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
                     .has_one_kv_head = says.at("one_kv_head").get<bool>(),
                     .takes_any_scale = says.at("any_scale").get<bool>(),
                     .takes_no_keys = says.at("no_keys").get<bool>(),
                     .has_empty_rows = says.at("empty_rows").get<bool>(),
                     .needs_positive_scale = says.at("positive_scale").get<bool>(),
                     .counts_from_top_left = says.at("alibi_corner") == "top_left"};
  for (const Json& shared : says.at("biases")) {
    takes.biases.push_back(problem_from_string("bias_" + shared.get<std::string>()).bias);
  }
  for (const Json& type : says.at("bias_types")) {
    takes.bias_types.push_back(element_type_from_name(type.get<std::string>()));
  }
  if (const Json& rights = says.at("window_rights"); !rights.is_null()) {
    takes.window_rights = rights.get<std::vector<std::int64_t>>();
  }
  if (const Json& most = says.at("most"); !most.is_null()) {
    takes.most_heads = most.at("heads").get<std::int64_t>();
    takes.most_length = most.at("length").get<std::int64_t>();
    takes.most_scores = most.at("scores").get<std::int64_t>();
    takes.why_not_more = most.at("because").get<std::string>();
  }
  return takes;
}

}  // namespace attest
