#include "core/attention/problem.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>
#include <set>
#include <span>

#include "core/attention/operation.hpp"
#include "core/attention/problem_field.hpp"
#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::int64_t max_packed_rows = (std::int64_t{1} << 31) - 1;

/// The prefix of a field that stands behind the one before it: `h12/4`.
constexpr std::string_view behind = "/";

/// Prefix of both lengths at once, in text.
constexpr std::string_view both_lengths = "n", both_lengths_example = "n4096 (both lengths)";

[[noreturn]] void reject_part(std::string_view part) {
  std::vector<std::string> examples, words;
  for (const ProblemField& field : problem_fields()) {
    const bool is_word = field.kind() == FieldKind::choice && field.prefix.empty();
    if (is_word) words.insert(words.end(), field.choices.begin(), field.choices.end());
    examples.push_back(is_word ? fmt::format("{}", fmt::join(field.choices, " or "))
                               : std::string(field.example));
  }
  if (const auto near = near_names(part, words); !near.empty()) {
    throw InvalidInput(
        fmt::format("problem: '{}' is unknown; near: {}", printable(part), fmt::join(near, ", ")));
  }
  throw InvalidInput(fmt::format("problem: '{}' is unknown; allowed: {}, {}", printable(part),
                                 fmt::join(examples, ", "), both_lengths_example));
}

/// A Problem of whose fields only some are given.
struct GivenFields {
  Problem problem;
  std::set<const ProblemField*> fields;

  /// `text` is the field's value, in `part` of a Problem's text.
  void read(const ProblemField& field, std::string_view text, std::string_view part) {
    const std::optional<FieldValue> value = value_from(field, text);
    if (!value) reject_part(part);
    if (!fields.insert(&field).second) {
      throw InvalidInput(
          fmt::format("problem: '{}' gives {} a second time", printable(part), field.name));
    }
    set_value(field, problem, *value);
  }
};

/// The field whose prefix is the longest that the part begins with; nullptr: there is none.
const ProblemField* field_of_prefix(std::string_view part) {
  const ProblemField* longest = nullptr;
  for (const ProblemField& field : problem_fields()) {
    if (field.prefix.empty() || !part.starts_with(field.prefix)) continue;
    if (longest == nullptr || field.prefix.size() > longest->prefix.size()) longest = &field;
  }
  return longest;
}

void read_problem_part(std::string_view part, GivenFields& given) {
  const std::span<const ProblemField> fields = problem_fields();
  for (const ProblemField& field : fields) {
    if (field.kind() == FieldKind::choice && field.prefix.empty() && value_from(field, part)) {
      return given.read(field, part, part);
    }
  }
  if (part.starts_with(both_lengths)) {
    for (const ProblemField& field : fields) {
      const bool is_length = field.name == "query_len" || field.name == "key_len";
      if (is_length) given.read(field, part.substr(both_lengths.size()), part);
    }
    return;
  }
  const std::size_t slash = std::min(part.find(behind), part.size());
  const ProblemField* const field = field_of_prefix(part.substr(0, slash));
  if (field == nullptr) reject_part(part);
  given.read(*field, part.substr(0, slash).substr(field->prefix.size()), part);
  if (slash == part.size()) return;
  const ProblemField* const next = field + 1;
  if (field == &fields.back() || next->prefix != behind) reject_part(part);
  given.read(*next, part.substr(slash + behind.size()), part);
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

void take_away_lists(Problem& problem) {
  problem.list_seed = 0;
  problem.list_rows = problem.list_keys = 1;
}

void take_away_seeds(Problem& problem) {
  problem.length_seed = problem.padding_seed = 0;
  problem.prefix_seed = problem.document_seed = 0;
  take_away_lists(problem);
}

bool has_modifications(const Problem& problem) {
  return problem.sinks != Sinks::none || problem.slopes != Slopes::none ||
         problem.bias != Bias::none || problem.dropout > 0 || has_epilogue(problem);
}

bool has_epilogue(const Problem& problem) {
  return problem.gate != OutputGate::none || problem.residual != Residual::none;
}

void take_away_epilogue(Problem& problem) {
  problem.gate = OutputGate::none;
  problem.residual = Residual::none;
}

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
    if (problem.sees(entry, query, key)) keys.push_back(key);
  }
  return keys;
}

std::int64_t visible_key_count(const Problem& problem, std::int64_t entry, std::int64_t query) {
  const KeyRange range = problem.visible_range(entry, query);
  if (problem.padding_seed == 0 && problem.list_seed == 0) return range.size();
  std::int64_t count = 0;
  std::int64_t past = range.begin;
  for (std::int64_t key = range.begin; key < range.end; key = past) {
    // Keys of an item are listed together: lists of blocks cost a draw a block.
    past = problem.list_seed == 0
               ? range.end
               : std::min(range.end, (key / problem.list_keys + 1) * problem.list_keys);
    if (!problem.is_listed(entry, query, key)) continue;
    if (problem.padding_seed == 0) {
      count += past - key;
      continue;
    }
    for (; key < past; ++key) count += problem.is_padded(entry, key) ? 0 : 1;
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
  const bool are_alike = problem.length_seed == 0 && problem.padding_seed == 0 &&
                         problem.prefix_seed == 0 && problem.document_seed == 0 &&
                         problem.list_seed == 0;
  for (std::int64_t entry = 0; entry < (are_alike ? 1 : problem.batch); ++entry) {
    std::vector<std::int64_t> seen_before{0};  // keys before this one that padding leaves
    for (std::int64_t key = 0; key < problem.key_len_of(entry); ++key) {
      seen_before.push_back(seen_before.back() + (problem.is_padded(entry, key) ? 0 : 1));
    }
    for (std::int64_t query = 0; query < problem.query_len_of(entry); ++query) {
      if (problem.list_seed != 0) {
        pairs += static_cast<double>(visible_key_count(problem, entry, query));
        continue;
      }
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
  // What all problems say, then what only some of them have, then the rest.
  std::array<std::string, 3> texts;
  for (const ProblemField& field : problem_fields()) {
    if (!field.is_always_written && has_default(field, problem)) continue;
    std::string& text = texts[field.is_always_written ? 0 : field.belongs_to != nullptr ? 1 : 2];
    if (field.prefix != behind) text += ' ';
    text += fmt::format("{}{}", field.prefix, text_of(field, problem));
  }
  return fmt::format("{}", fmt::join(texts, "")).substr(1);
}

Problem problem_from_string(std::string_view text) {
  GivenFields given;
  constexpr std::string_view separators = " ,";
  for (std::size_t begin = text.find_first_not_of(separators); begin != text.npos;
       begin = text.find_first_not_of(separators)) {
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    read_problem_part(text.substr(begin, end - begin), given);
    text.remove_prefix(end);
  }
  if (given.fields.empty()) {
    throw InvalidInput("problem: it is empty; allowed: fields such as 'b4 h16 n1024 d64 bf16'");
  }
  follow_given(given.problem,
               [&](const ProblemField& field) { return given.fields.contains(&field); });
  validate(given.problem);
  // Not in validate(): a case that is made smaller step by step may have them.
  if (given.problem.shared_keys > given.problem.key_len) {
    throw InvalidInput(fmt::format("problem field 'shared_keys' is {}; allowed: 0 to key_len, {}",
                                   given.problem.shared_keys, given.problem.key_len));
  }
  return given.problem;
}

std::optional<ElementType> named_element_type(std::string_view problem) {
  for (const ElementType type : all_element_types()) {
    if (problem.find(format_of(type).name) != std::string_view::npos) return type;
  }
  return std::nullopt;
}

/// Elements are counted in 63 bits.
constexpr double most_elements = 0x1p62;

void validate(const Problem& problem) {
  for (const ProblemField& field : problem_fields()) require_in_range(field, problem);
  // What fields ask of each other.
  if (!is_window(problem.mask) && problem.window != Window{}) {
    throw InvalidInput(fmt::format(
        "problem field 'window' is set (left {}, right {}) but the mask is {}; allowed: "
        "with window_top_left and window_bottom_right",
        problem.window.left, problem.window.right, name_of(problem.mask)));
  }
  for (const ProblemField& field : problem_fields()) {
    const bool belongs = field.belongs_to == nullptr || field.belongs_to(problem);
    if (belongs || has_default(field, problem)) continue;
    throw InvalidInput(fmt::format("problem field '{}' is {}, but {} has no such field", field.name,
                                   text_of(field, problem), problem.operation->name));
  }
  if (problem.values == Values::in_keys &&
      (problem.operation != &forward_operation || problem.output_dim() > problem.head_dim)) {
    throw InvalidInput(fmt::format(
        "problem field 'values' is in_keys in {} with {} columns of K and {} of V; allowed: in "
        "forward, with no more columns of V than of K",
        problem.operation->name, problem.head_dim, problem.output_dim()));
  }
  if (problem.prefix_seed != 0 && is_window(problem.mask)) {
    throw InvalidInput(fmt::format(
        "problem field 'prefix_seed' is {} and the mask is {}; allowed: with masks without a "
        "window",
        problem.prefix_seed, name_of(problem.mask)));
  }
  if (problem.query_heads % problem.kv_heads != 0) {
    throw InvalidInput(fmt::format("problem field 'kv_heads' is {}; it must divide query_heads, {}",
                                   problem.kv_heads, problem.query_heads));
  }
  const std::int64_t longest = std::max(problem.query_len, problem.key_len);
  const double elements = static_cast<double>(problem.batch) *
                          static_cast<double>(problem.query_heads) * static_cast<double>(longest) *
                          static_cast<double>(std::max(problem.head_dim, problem.output_dim()));
  if (!(elements <= most_elements)) {
    throw InvalidInput(fmt::format(
        "problem field 'batch' is {}: a tensor of {} heads, {} rows and {} columns has {} elements "
        "then; allowed: up to {}",
        problem.batch, problem.query_heads, longest,
        std::max(problem.head_dim, problem.output_dim()), elements, most_elements));
  }
  const double pairs =
      static_cast<double>(problem.batch) * static_cast<double>(problem.query_heads) *
      static_cast<double>(problem.query_len) * static_cast<double>(problem.key_len);
  if (problem.bias != Bias::none && !(pairs <= most_elements)) {
    throw InvalidInput(fmt::format(
        "problem field 'bias' is set for {} pairs of queries and keys; allowed: up to {}", pairs,
        most_elements));
  }
  if (problem.length_seed != 0 && problem.batch * longest > max_packed_rows) {
    throw InvalidInput(
        fmt::format("problem with lengths of its own has batch {} times length {}; allowed: up to "
                    "{} rows, as offsets of packed entries have 32 bits",
                    problem.batch, longest, max_packed_rows));
  }
}

}  // namespace attest
