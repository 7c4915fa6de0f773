#pragma once

#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// A field of Problem as studies name it.
struct ProblemField {
  enum class Kind { size, real, choice };
  std::string_view name;
  std::string_view summary;
  Kind kind = Kind::size;
  double low = 0, high = 0;                 ///< allowed, both included; sizes and reals
  double (*get)(const Problem&) = nullptr;  ///< sizes and reals
  void (*set)(Problem&, double) = nullptr;  ///< sizes and reals
};
[[nodiscard]] std::span<const ProblemField> problem_fields();
/// nullptr for an unknown name.
[[nodiscard]] const ProblemField* find_problem_field(std::string_view name);
/// Names of a choice: masks, element types.
[[nodiscard]] std::vector<std::string> choices_of(const ProblemField& field);

/// Value of a field in words: `causal_top_left`, `4096`. `length` is that of both lengths, and of
/// neither empty.
[[nodiscard]] std::string text_of(const ProblemField& field, const Problem& problem);

}  // namespace attest
