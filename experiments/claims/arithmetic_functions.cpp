#include <cmath>

#include "experiments/claims/formula.hpp"

namespace attest {
namespace {

/// Half of a unit of the last digit of `printed`.
double half_unit(const std::string& printed) {
  const std::size_t e = printed.find_first_of("eE");
  const std::string mantissa = printed.substr(0, e);
  const double exponent = e == std::string::npos ? 0 : std::stod(printed.substr(e + 1));
  const std::size_t point = mantissa.find('.');
  const double decimals =
      point == std::string::npos ? 0 : static_cast<double>(mantissa.size() - point - 1);
  return 0.5 * std::pow(10, exponent - decimals);
}

}  // namespace

void add_arithmetic(FormulaScope& scope) {
  using Values = std::span<const FormulaValue>;
  const auto add = [&scope](const char* name, std::size_t count, auto compute) {
    scope.functions[name] = [count, compute](Values a) {
      require_arguments(a, count, count);
      return compute(a);
    };
  };
  add("min", 2, [](Values a) { return std::fmin(number_of(a, 0), number_of(a, 1)); });
  add("max", 2, [](Values a) { return std::fmax(number_of(a, 0), number_of(a, 1)); });
  add("abs", 1, [](Values a) { return std::abs(number_of(a, 0)); });
  add("sqrt", 1, [](Values a) { return std::sqrt(number_of(a, 0)); });
  add("log2", 1, [](Values a) { return std::log2(number_of(a, 0)); });
  add("exp", 1, [](Values a) { return std::exp(number_of(a, 0)); });
  add("floor", 1, [](Values a) { return std::floor(number_of(a, 0)); });
  add("within", 3, [](Values a) {
    const double y = number_of(a, 1);
    return static_cast<double>(std::abs(number_of(a, 0) - y) <=
                               number_of(a, 2) / 100 * std::abs(y));
  });
  add("rounds_to", 2, [](Values a) {
    const std::string& printed = text_of(a, 1);
    // A tie rounds either way, and the printed number is itself rounded to binary.
    const double given = std::stod(printed);
    const double allowed = half_unit(printed) + std::abs(given) * 0x1p-50;
    return static_cast<double>(std::abs(number_of(a, 0) - given) <= allowed);
  });
}

}  // namespace attest
