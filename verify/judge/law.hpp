#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "verify/judge/compare.hpp"
#include "verify/judge/run.hpp"

namespace attest {

/// Finding of a law in one case.
struct Check {
  enum class Status {
    passed,
    failed,
    vacuous,
    declined  ///< the kernel cannot be asked: it counts as not checked, and is said
  } status = Status::passed;
  std::string detail;  ///< failed: one sentence; vacuous, declined: why nothing was decided
  bool has_element = false;
  std::string tensor;  ///< label of an output, when an element is named
  WorstElement worst;  ///< also of a passed bound: how much of it was used

  [[nodiscard]] static Check passed() { return {}; }
  [[nodiscard]] static Check failed(std::string detail);
  [[nodiscard]] static Check failed_at(std::string tensor, const WorstElement& worst,
                                       std::string detail);
  [[nodiscard]] static Check vacuous(std::string detail);
  [[nodiscard]] static Check declined(std::string detail);
};

/// Passed, failed at the worst element, or vacuous when elements had no finite bound; `worst`
/// is filled in.
[[nodiscard]] Check check_of(std::string tensor, const Comparison& comparison,
                             std::string_view failure);
/// Asks `check_row(b, h, n)` about every query row until one has not passed, and returns that
/// answer.
[[nodiscard]] Check check_rows(
    const Problem& problem,
    const std::function<Check(std::int64_t b, std::int64_t h, std::int64_t n)>& check_row);

/// The three layers of a verdict, from the one that needs no number to the one that needs many.
enum class Layer {
  exact,      ///< bits, memory, defects: no tolerance at all
  bound,      ///< error against the bound that follows from the declared roundings
  statistics  ///< distribution of the errors, for what a worst-case bound cannot see
};
[[nodiscard]] std::string_view name_of(Layer layer);

/// The law that a kernel breaks by saying that it failed (KernelError).
inline constexpr std::string_view error_law = "returns_no_error";

/// A law that every kernel must obey, in one file of verify/laws.
struct Law {
  std::string name;
  std::string statement;  ///< the law in plain words
  /// Laws that read the base launch cost nothing and are checked on every case. The others launch
  /// again: each case draws one of them.
  enum class Cost { base_launch, more_launches } cost = Cost::base_launch;
  Layer layer = Layer::exact;
  /// The operations that it is about; empty: all, as it needs to know nothing of what is computed.
  std::vector<const Operation*> operations = {};
  /// The law cannot be asked where V is a part of K: it changes values without their keys or keys
  /// without their values, or it counts on columns of V that have nothing in common, which those of
  /// K may have.
  bool needs_own_values = false;
  std::function<bool(Run&)> applies;  ///< may be empty: always
  std::function<Check(Run&)> check;
  /// A sentence of a kernel from outside about what it does not take, where the law would ask for
  /// it: counted and said. May be empty: nothing.
  std::function<std::optional<std::string>(Run&)> declines = {};

  [[nodiscard]] bool is_about(const Operation& operation) const;
  [[nodiscard]] bool is_about(const Problem& problem) const;
};

struct LawRegistration {
  explicit LawRegistration(Law law);
};
/// One law for each output of each operation, but not for an operation's first output, about the
/// operations that have an output of that name. The law's name holds the output's.
struct OutputLawRegistration {
  explicit OutputLawRegistration(Law (*law_of)(const TensorSpec& output));
};
/// Name of the law that holds an output to its bound: `within_bound` of the first, else with the
/// output's name before it.
[[nodiscard]] std::string bound_law_of(const Operation& operation, OutputIndex output);

/// All registered laws, sorted by name.
[[nodiscard]] const std::vector<Law>& all_laws();
/// Law of a name; nullptr when there is none.
[[nodiscard]] const Law* find_law(std::string_view name);

}  // namespace attest
