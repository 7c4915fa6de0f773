#include "plugin/task.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <functional>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::int64_t largest_size = 1 << 20;

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t end = text.find(separator);
    parts.emplace_back(text.substr(0, end));
    if (end == std::string_view::npos) return parts;
    text.remove_prefix(end + 1);
  }
}

std::optional<std::int64_t> size_from(std::string_view text) {
  std::int64_t size = 0;
  const char* const last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, size);
  if (error != std::errc() || end != last || size < 1 || size > largest_size) return {};
  return size;
}

/// `8`, `1-512`.
std::optional<Sizes> sizes_from(std::string_view text) {
  const std::size_t dash = text.find('-');
  const auto least = size_from(text.substr(0, dash));
  const auto most = dash == std::string_view::npos ? least : size_from(text.substr(dash + 1));
  if (!least || !most || *least > *most) return {};
  return Sizes{*least, *most};
}

/// All parts of a list as values; nothing where one is none.
template <typename Value>
std::optional<std::vector<Value>> list_of(
    const std::string& text, const std::function<std::optional<Value>(const std::string&)>& read) {
  std::vector<Value> values;
  for (const std::string& part : split(text, ',')) {
    const std::optional<Value> value = read(part);
    if (!value) return {};
    values.push_back(*value);
  }
  return values;
}

std::optional<ElementType> type_from(const std::string& word) {
  for (const ElementType type : {ElementType::fp32, ElementType::fp16, ElementType::bf16}) {
    if (format_of(type).name == word) return type;
  }
  return {};
}

std::optional<Mask> mask_of(const std::string& word) {
  if (word == "causal") return Mask::causal_bottom_right;
  for (const Mask mask : {Mask::none, Mask::causal_top_left, Mask::causal_bottom_right}) {
    if (name_of(mask) == word) return mask;
  }
  return {};
}

struct Flag {
  std::string_view word;
  bool Task::*member;
};
constexpr std::array flags{Flag{"grouped", &Task::is_grouped},
                           Flag{"scale", &Task::any_scale},
                           Flag{"empty_rows", &Task::has_empty_rows},
                           Flag{"lse", &Task::wants_lse},
                           Flag{"deterministic", &Task::is_deterministic},
                           Flag{"BNHD", &Task::has_tokens_before_heads}};

struct Range {
  std::string_view letter;
  std::vector<Sizes Task::*> members;
};

/// Reads one word; false: it is none.
bool read_word(Task& task, const std::string& word) {
  if (const auto types = list_of<ElementType>(word, type_from)) {
    task.element_types = *types;
    return true;
  }
  if (const auto masks = list_of<Mask>(word, mask_of)) {
    task.masks = *masks;
    return true;
  }
  for (const Flag& flag : flags) {
    if (word == flag.word) return task.*flag.member = true;
  }
  if (word.starts_with("multiple")) {
    const auto multiple = size_from(std::string_view(word).substr(8));
    task.multiple = multiple.value_or(1);
    return multiple.has_value();
  }
  if (word.starts_with('d')) {
    const auto dims = list_of<std::int64_t>(
        word.substr(1), [](const std::string& part) { return size_from(part); });
    if (dims) task.head_dims = *dims;
    return dims.has_value();
  }
  static const std::vector<Range> ranges{{"n", {&Task::query_len, &Task::key_len}},
                                         {"q", {&Task::query_len}},
                                         {"k", {&Task::key_len}},
                                         {"h", {&Task::heads}},
                                         {"b", {&Task::batch}}};
  for (const Range& range : ranges) {
    if (!word.starts_with(range.letter)) continue;
    const auto sizes = sizes_from(std::string_view(word).substr(1));
    if (!sizes) return false;
    for (const auto member : range.members) task.*member = *sizes;
    return true;
  }
  return word == "forward";
}

}  // namespace

const std::vector<NamedTask>& named_tasks() {
  static const std::vector<NamedTask> table{
      {"forward", "fp32:none:d64:n1-256:h1-4:b1-2", "small problems for the CPU"},
      {"kernelbench", "fp16:none:d64:n64-512:h1-8:b1-4:multiple64",
       "what KernelBench's 97_ScaledDotProductAttention asks, in other sizes"},
      {"fa3", "bf16:none,causal:d64:n1-1024:h1-8:b1-4:grouped:lse",
       "FlashAttention-3: grouped heads, LSE"},
      {"decode", "bf16:none:d128:q1-4:k1-4096:h1-16:b1-4:grouped", "few queries, many keys"}};
  return table;
}

Task task_from(const std::string& text) {
  Task task{.text = text};
  std::vector<std::string> words = split(text, ':');
  std::string_view of_name = named_tasks().front().words;
  for (const NamedTask& named : named_tasks()) {
    if (words.front() != named.name) continue;
    of_name = named.words;
    words.erase(words.begin());
    break;
  }
  for (const std::string& word : split(of_name, ':')) (void)read_word(task, word);
  for (const std::string& word : words) {
    if (read_word(task, word)) continue;
    std::vector<std::string_view> names;
    for (const NamedTask& named : named_tasks()) names.push_back(named.name);
    throw InvalidInput(fmt::format(
        "--task '{}': '{}' is no word of a task; allowed: {} in front, then d64, fp16,bf16, "
        "none,causal, n1-512, q1-16, k1-4096, h1-8, b1-4, multiple64, grouped, scale, empty_rows, "
        "lse, deterministic, BNHD",
        printable(text), printable(word), fmt::join(names, ", ")));
  }
  const auto rounded = [&](Sizes& sizes) {
    sizes.least = (sizes.least + task.multiple - 1) / task.multiple * task.multiple;
    sizes.most = sizes.most / task.multiple * task.multiple;
    if (sizes.least > sizes.most) {
      throw InvalidInput(fmt::format("--task '{}': no length is a multiple of {}; allowed: n{}",
                                     printable(text), task.multiple, task.multiple));
    }
  };
  rounded(task.query_len);
  rounded(task.key_len);
  return task;
}

std::optional<std::string> Task::why_not(const Problem& p) const {
  if (!query_len.hold(p.query_len)) return "the task asks for other numbers of queries";
  if (!key_len.hold(p.key_len)) return "the task asks for other numbers of keys";
  if (!heads.hold(p.query_heads)) return "the task asks for other numbers of heads";
  if (!batch.hold(p.batch)) return "the task asks for other batches";
  if (!is_grouped && p.query_heads != p.kv_heads) return "the task asks for as many heads of K";
  if (!any_scale && p.scale != default_scale(p.head_dim)) {
    return "the task asks for the scale 1 / sqrt(head_dim)";
  }
  if (!has_empty_rows && p.mask == Mask::causal_bottom_right && p.query_len > p.key_len) {
    return "the task asks for rows that see keys";
  }
  return std::nullopt;
}

Problem Task::largest() const {
  return {.batch = batch.most,
          .query_heads = heads.most,
          .kv_heads = heads.most,
          .query_len = query_len.most,
          .key_len = key_len.most,
          .head_dim = head_dims.back(),
          .mask = masks.back(),
          .element_type = element_types.back(),
          .scale = default_scale(head_dims.back())};
}

Json Task::to_json() const {
  Json types = Json::array(), names = Json::array();
  for (const ElementType type : element_types) types.push_back(std::string(format_of(type).name));
  for (const Mask mask : masks) names.push_back(std::string(name_of(mask)));
  return {{"types", types},
          {"masks", names},
          {"lse", wants_lse},
          {"scale", any_scale},
          {"layout", has_tokens_before_heads ? "BNHD" : "BHND"}};
}

}  // namespace attest
