#include "experiments/study/language/problem_field.hpp"

#include <algorithm>
#include <array>

#include "experiments/study/language/quantity.hpp"

namespace attest {
namespace {

constexpr double longest = 1 << 24, most_heads = 1 << 16, widest = 1024, largest_seed = 0x1p53;
constexpr double largest_real = std::numeric_limits<float>::max();

template <auto Member>
double get(const Problem& problem) {
  return static_cast<double>(problem.*Member);
}
template <auto Member>
void set(Problem& problem, double value) {
  using Number = std::remove_reference_t<decltype(problem.*Member)>;
  problem.*Member = static_cast<Number>(value);
}

constexpr std::array<ProblemField, 16> fields{{
    {"batch",
     "entries of the batch",
     {},
     1,
     most_heads,
     get<&Problem::batch>,
     set<&Problem::batch>},
    {"heads",
     "query heads",
     {},
     1,
     most_heads,
     get<&Problem::query_heads>,
     set<&Problem::query_heads>},
    {"kv_heads",
     "heads of K and V; heads if not given",
     {},
     1,
     most_heads,
     get<&Problem::kv_heads>,
     set<&Problem::kv_heads>},
    {"query_len", "queries", {}, 0, longest, get<&Problem::query_len>, set<&Problem::query_len>},
    {"key_len",
     "keys; query_len if not given",
     {},
     0,
     longest,
     get<&Problem::key_len>,
     set<&Problem::key_len>},
    {"length",
     "queries and as many keys",
     {},
     0,
     longest,
     get<&Problem::query_len>,
     [](Problem& problem, double value) {
       problem.query_len = problem.key_len = static_cast<std::int64_t>(value);
     }},
    {"head_dim",
     "columns of Q and K",
     {},
     1,
     widest,
     get<&Problem::head_dim>,
     set<&Problem::head_dim>},
    {"value_dim",
     "columns of V and O; head_dim if not given",
     {},
     1,
     widest,
     [](const Problem& problem) { return static_cast<double>(problem.output_dim()); },
     set<&Problem::value_dim>},
    {"mask", "which keys a query sees", ProblemField::Kind::choice},
    {"element_type", "format of Q, K, V and O", ProblemField::Kind::choice},
    {"scale", "of the scores; 1 / sqrt(head_dim) if not given", ProblemField::Kind::real,
     -largest_real, largest_real, get<&Problem::scale>, set<&Problem::scale>},
    {"softcap", "c of c tanh(s / c); 0: none", ProblemField::Kind::real, 0, largest_real,
     get<&Problem::softcap>, set<&Problem::softcap>},
    {"window_left",
     "keys before the diagonal under a window mask; -1: no end",
     {},
     -1,
     longest,
     [](const Problem& problem) { return static_cast<double>(problem.window.left); },
     [](Problem& problem, double value) {
       problem.window.left = static_cast<std::int64_t>(value);
     }},
    {"window_right",
     "keys after the diagonal under a window mask; -1: no end",
     {},
     -1,
     longest,
     [](const Problem& problem) { return static_cast<double>(problem.window.right); },
     [](Problem& problem, double value) {
       problem.window.right = static_cast<std::int64_t>(value);
     }},
    {"length_seed",
     "draws a length for each entry of the batch; 0: all are full",
     {},
     0,
     largest_seed,
     get<&Problem::length_seed>,
     set<&Problem::length_seed>},
    {"padding_seed",
     "draws hidden keys; 0: none",
     {},
     0,
     largest_seed,
     get<&Problem::padding_seed>,
     set<&Problem::padding_seed>},
}};

}  // namespace

std::span<const ProblemField> problem_fields() {
  return fields;
}

const ProblemField* find_problem_field(std::string_view name) {
  const auto found = std::ranges::find(problem_fields(), name, &ProblemField::name);
  return found == problem_fields().end() ? nullptr : &*found;
}

std::vector<std::string> choices_of(const ProblemField& field) {
  std::vector<std::string> names;
  if (field.name == "mask") {
    for (const Mask mask : all_masks()) names.emplace_back(name_of(mask));
  } else if (field.name == "element_type") {
    for (const ElementType type : all_element_types()) names.emplace_back(format_of(type).name);
  }
  return names;
}

std::string text_of(const ProblemField& field, const Problem& problem) {
  if (field.name == "mask") return std::string(name_of(problem.mask));
  if (field.name == "element_type") return std::string(format_of(problem.element_type).name);
  if (field.name == "length" && problem.query_len != problem.key_len) return "";
  return format_number(field.get(problem));
}

}  // namespace attest
