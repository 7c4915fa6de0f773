#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/study/language/expression.hpp"
#include "experiments/study/language/parse_study.hpp"

namespace attest {

/// Axes that a study varies, with their values as far as its file says them.
class StudyAxes {
 public:
  /// `is_whole`: no value of the file is wrong. Otherwise nothing is complained about.
  StudyAxes(const StudySpec& spec, bool is_whole);

  /// True if the file varies it, or takes all values that Plans have. The kernel is an axis always.
  /// True for every name where the file is not whole.
  [[nodiscard]] bool has(std::string_view name) const;
  /// Full names of the axes, sorted; for complaints.
  [[nodiscard]] std::vector<std::string> names() const;
  /// Comparisons with values that an axis never has, and ratios over what is no axis: they would
  /// find no point.
  [[nodiscard]] std::vector<ExpressionError> complaints(const Expression& expression) const;

 private:
  void add(const std::vector<Grid>& grids);
  void add_complaints(const Expression& e, std::vector<ExpressionError>& found) const;
  void require_value(const Expression& name, const Expression& value,
                     std::vector<ExpressionError>& found) const;

  bool is_whole_, has_every_plan_;
  /// By name, in the order of the file; nothing: not all are known, as they are computed, are those
  /// of the kernels' Plans, or some grid leaves the field alone.
  std::map<std::string, std::optional<std::vector<AxisValue>>, std::less<>> values_;
};

}  // namespace attest
