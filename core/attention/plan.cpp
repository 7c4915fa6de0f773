#include "core/attention/plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 7> grid_orders{
    "q_fastest",       "q_slowest",     "grouped", "launch_per_head",
    "two_dimensional", "longest_first", "paired"};
constexpr std::array<std::string_view, 2> loop_orders{"keys_outside", "queries_outside"};
constexpr std::array<std::string_view, 2> normalisations{"at_the_end", "every_step"};
constexpr std::array<std::string_view, 2> masked_tiles{"boundary", "all"};
constexpr std::array<std::string_view, 3> exponentials{"library", "fast", "exp2"};
constexpr std::array<std::string_view, 2> pass_counts{"one", "two"};
constexpr std::array<std::string_view, 2> row_reductions{"shared_loop", "shuffle"};
constexpr std::array<std::string_view, 2> schedulings{"one_tile", "persistent"};
constexpr std::array<std::string_view, 2> no_or_yes{"no", "yes"};
constexpr std::array<std::string_view, 2> delay_choices{"none", "random"};

constexpr std::array<std::string_view, 6> product_choices{"tf32",    "tf32_x3", "fp16_x3",
                                                          "bf16_x3", "bf16_x6", "automatic"};

constexpr std::array<std::string_view, 4> key_split_rules{"fixed_keys", "own", "even", "stream"};
constexpr std::array<std::string_view, 3> combines{"last_block", "second_kernel", "cluster"};

constexpr std::array<std::string_view, 2> references{"lagging", "maximum"};
constexpr std::array<std::string_view, 2> dq_sums{"fp32", "s32"};
constexpr std::array<std::string_view, 3> distributions{"contiguous", "zigzag", "stripe"};

constexpr std::array<PlanField, 31> fields{{
    {"query_tile", "qt", &Plan::query_tile},
    {"key_tile", "kt", &Plan::key_tile},
    {"key_splits", "ks", &Plan::key_splits},
    {"dim_tile", "dt", &Plan::dim_tile},
    {"thread_rows", "tm", &Plan::thread_rows},
    {"thread_keys", "tn", &Plan::thread_keys},
    {"warps", "w", &Plan::warps},
    {"stages", "st", &Plan::stages},
    {"grid_order", "", &Plan::grid_order, grid_orders},
    {"group", "g", &Plan::group},
    {"scheduling", "", &Plan::scheduling, schedulings},
    {"loop_order", "", &Plan::loop_order, loop_orders},
    {"normalise", "", &Plan::normalise, normalisations},
    {"masked_tiles", "", &Plan::masked_tiles, masked_tiles},
    {"exp", "", &Plan::exp, exponentials},
    {"passes", "", &Plan::passes, pass_counts},
    {"row_reduce", "", &Plan::row_reduce, row_reductions},
    {"pack_gqa", "", &Plan::pack_gqa, no_or_yes},
    {"ping_pong", "", &Plan::ping_pong, no_or_yes},
    {"overlap", "", &Plan::overlap, no_or_yes},
    {"delays", "", &Plan::delays, delay_choices},
    {"products", "", &Plan::products, product_choices},
    {"split_keys", "sk", &Plan::split_keys},
    {"key_split_rule", "", &Plan::key_split_rule, key_split_rules},
    {"combine", "", &Plan::combine, combines},
    {"cascade", "", &Plan::cascade, no_or_yes},
    {"dependent_launch", "", &Plan::dependent_launch, no_or_yes},
    {"reference", "", &Plan::reference, references},
    {"dq_sum", "", &Plan::dq_sum, dq_sums},
    {"ranks", "r", &Plan::ranks},
    {"distribution", "", &Plan::distribution, distributions},
}};

constexpr std::int64_t largest_size = 1 << 20;

std::int64_t size_from(const PlanField& field, std::string_view digits) {
  std::int64_t size = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), size);
  if (error != std::errc{} || end != digits.data() + digits.size() || size < 1 ||
      size > largest_size) {
    throw InvalidInput(fmt::format("plan field '{}' is '{}'; allowed: a whole number from 1 to {}",
                                   field.name, printable(digits), largest_size));
  }
  return size;
}

std::int64_t choice_from(const PlanField& field, std::string_view name) {
  const auto found = std::ranges::find(field.values, name);
  if (found == field.values.end()) {
    throw InvalidInput(fmt::format("plan field '{}' is '{}'; allowed: {}", field.name,
                                   printable(name), fmt::join(field.values, ", ")));
  }
  return found - field.values.begin() + 1;
}

void read_part(std::string_view part, Plan& plan) {
  const std::size_t equals = part.find('=');
  const std::size_t digits = std::min(part.find_first_of("0123456789"), part.size());
  for (const PlanField& field : fields) {
    const bool is_long = equals != part.npos && part.substr(0, equals) == field.name;
    const bool is_short =
        equals == part.npos && !field.is_choice() && part.substr(0, digits) == field.short_name;
    if (!is_long && !is_short) continue;
    const std::string_view value = part.substr(is_long ? equals + 1 : digits);
    plan.*field.member = field.is_choice() ? choice_from(field, value) : size_from(field, value);
    return;
  }
  std::vector<std::string_view> names;
  for (const PlanField& field : fields) names.push_back(field.name);
  throw InvalidInput(fmt::format("plan: '{}' is unknown; allowed: FIELD=VALUE with FIELD one of {}",
                                 printable(part), fmt::join(names, ", ")));
}

}  // namespace

std::span<const PlanField> plan_fields() {
  return fields;
}

std::string text_of(const PlanField& field, std::int64_t value) {
  return field.is_choice() ? std::string(field.values[static_cast<std::size_t>(value - 1)])
                           : std::to_string(value);
}

std::string to_string(const Plan& plan) {
  std::string text;
  for (const PlanField& field : fields) {
    const std::int64_t value = plan.*field.member;
    if (value == 0) continue;
    if (!text.empty()) text += ' ';
    text += field.is_choice() ? fmt::format("{}=", field.name) : std::string(field.short_name);
    text += text_of(field, value);
  }
  return text.empty() ? "-" : text;
}

Plan plan_from_string(std::string_view text) {
  Plan plan;
  if (text == "-") return plan;
  constexpr std::string_view separators = " ,";
  while (true) {
    const std::size_t begin = text.find_first_not_of(separators);
    if (begin == text.npos) return plan;
    const std::size_t end = std::min(text.find_first_of(separators, begin), text.size());
    read_part(text.substr(begin, end - begin), plan);
    text.remove_prefix(end);
  }
}

}  // namespace attest
