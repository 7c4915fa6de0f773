#include "verify/judge/law.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace attest {
namespace {

// A function-local static exists before the first registration, whatever the order of
// initialisation.
std::vector<Law>& registry() {
  static std::vector<Law> laws;
  return laws;
}

std::vector<Law (*)(const TensorSpec&)>& output_laws() {
  static std::vector<Law (*)(const TensorSpec&)> laws;
  return laws;
}

/// The operations that have an output of that name beside their first.
std::vector<const Operation*> operations_with(std::string_view later_output) {
  std::vector<const Operation*> operations;
  for (const Operation* operation : all_operations()) {
    const auto outputs = operation->outputs().subspan(1);
    if (std::ranges::find(outputs, later_output, &TensorSpec::name) != outputs.end()) {
      operations.push_back(operation);
    }
  }
  return operations;
}

}  // namespace

Check Check::failed(std::string detail) {
  Check check;
  check.status = Status::failed;
  check.detail = std::move(detail);
  return check;
}

Check Check::failed_at(std::string tensor, const WorstElement& worst, std::string detail) {
  Check check = failed(std::move(detail));
  check.has_element = true;
  check.tensor = std::move(tensor);
  check.worst = worst;
  return check;
}

Check Check::vacuous(std::string detail) {
  Check check;
  check.status = Status::vacuous;
  check.detail = std::move(detail);
  return check;
}

Check Check::declined(std::string detail) {
  Check check = vacuous(std::move(detail));
  check.status = Status::declined;
  return check;
}

Check check_of(std::string tensor, const Comparison& comparison, std::string_view failure) {
  if (!comparison.is_within()) {
    return Check::failed_at(std::move(tensor), comparison.worst, std::string(failure));
  }
  Check check;
  if (comparison.vacuous > 0) {
    check = Check::vacuous(fmt::format("{} of {} elements of {} have no finite bound",
                                       comparison.vacuous, comparison.elements, tensor));
  }
  check.has_element = comparison.elements > comparison.vacuous;
  check.tensor = std::move(tensor);
  check.worst = comparison.worst;
  return check;
}

Check check_rows(const Problem& problem,
                 const std::function<Check(std::int64_t, std::int64_t, std::int64_t)>& check_row) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        Check check = check_row(b, h, n);
        if (check.status != Check::Status::passed) return check;
      }
    }
  }
  return Check::passed();
}

std::string_view name_of(Layer layer) {
  constexpr std::array<std::string_view, 3> names{"exact", "bound", "statistics"};
  return names[static_cast<std::size_t>(layer)];
}

bool Law::is_about(const Operation& operation) const {
  return operations.empty() || std::ranges::find(operations, &operation) != operations.end();
}

bool Law::is_about(const Problem& problem) const {
  return is_about(*problem.operation) && !(needs_own_values && problem.values == Values::in_keys);
}

LawRegistration::LawRegistration(Law law) {
  std::vector<Law>& laws = registry();
  const auto at = std::ranges::lower_bound(laws, law.name, {}, &Law::name);
  if (at == laws.end() || at->name != law.name) laws.insert(at, std::move(law));
}

OutputLawRegistration::OutputLawRegistration(Law (*law_of)(const TensorSpec& output)) {
  output_laws().push_back(law_of);
}

std::string bound_law_of(const Operation& operation, OutputIndex output) {
  constexpr std::string_view law = "within_bound";
  if (output.number == 0) return std::string(law);
  return fmt::format("{}_{}", operation[output].name, law);
}

const std::vector<Law>& all_laws() {
  // Operations register themselves before main(), in any order.
  static const bool is_complete = [] {
    for (const Operation* operation : all_operations()) {
      for (const TensorSpec& output : operation->outputs().subspan(1)) {
        for (const auto law_of : output_laws()) {
          Law law = law_of(output);
          law.operations = operations_with(output.name);
          LawRegistration{std::move(law)};
        }
      }
    }
    return true;
  }();
  (void)is_complete;
  return registry();
}

const Law* find_law(std::string_view name) {
  const auto at = std::ranges::find(all_laws(), name, &Law::name);
  return at == all_laws().end() ? nullptr : &*at;
}

}  // namespace attest
