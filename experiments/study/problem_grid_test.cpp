#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "core/attention/problem_field_test.hpp"
#include "experiments/study/grid.hpp"

namespace attest {
namespace {

VariedAxis axis_of(std::string_view name, const std::vector<AxisValue>& values) {
  VariedAxis varied{.axis = find_axis(Axis::Group::problem, name)};
  for (const AxisValue& value : values) varied.values.push_back(written(value));
  return varied;
}

/// Every axis with its value in the problem.
Grid grid_of(const Problem& problem) {
  Grid grid;
  Case c;
  c.problem = problem;
  for (const Axis* axis : keys_of(Axis::Group::problem)) {
    const std::optional<AxisValue> value = axis->get(c);
    const auto* number = value ? std::get_if<double>(&*value) : nullptr;
    if (!value || axis->name == "length" || (number != nullptr && *number > axis->high)) continue;
    grid.push_back(axis_of(axis->name, {*value}));
  }
  return grid;
}

ProblemPoint only_point(const Grid& grid, const Operation& operation = forward_operation) {
  const std::vector<ProblemPoint> points = problems_of({grid}, operation);
  EXPECT_EQ(points.size(), 1U);
  return points.front();
}

TEST(ProblemGrid, EveryFieldIsAnAxisWhoseValueIsPutOnTheProblemAgain) {
  for (const ProblemField& field : problem_fields()) {
    if (!field.is_axis) continue;
    Problem problem = problem_with_other(field);
    if (field.kind() == FieldKind::seed) set_value(field, problem, std::uint64_t{7});
    const ProblemPoint point = only_point(grid_of(problem), *problem.operation);
    problem.value_dim = problem.output_dim();  // what it is, not that it was left out
    EXPECT_EQ(point.problem, problem) << point.why_not << to_string(point.problem);
  }
}

TEST(ProblemGrid, AnAxisThatIsLeftOutHasItsDefault) {
  EXPECT_EQ(only_point({axis_of("heads", {6.0}), axis_of("length", {9.0})}).problem,
            problem_from_string("h6 n9"));
  EXPECT_EQ(only_point({axis_of("key_len", {9.0}), axis_of("head_dim", {16.0})}).problem,
            problem_from_string("n9 d16"));
}

TEST(ProblemGrid, AnAxisOfAFieldThatTheProblemHasNotIsDropped) {
  const Grid grid{axis_of("mask", {"none", "window_top_left"}), axis_of("window_left", {4.0})};
  const std::vector<ProblemPoint> points = problems_of({grid});
  ASSERT_EQ(points.size(), 2U);
  EXPECT_EQ(points[0].problem, problem_from_string("none"));
  EXPECT_FALSE(points[0].axes.contains("problem.window_left"));
  EXPECT_EQ(points[1].problem, problem_from_string("window_top_left left4"));
}

TEST(ProblemGrid, AValueOutOfRangeIsRefusedByOneLineThatNamesTheAxis) {
  for (const Axis* axis : keys_of(Axis::Group::problem)) {
    if (axis->is_choice()) continue;
    for (const double value : {axis->low - std::max(1.0, std::abs(axis->low)), axis->high * 2}) {
      Grid grid{axis_of(axis->name, {value})};
      if (axis->problem_field->belongs_to != nullptr) {
        const Problem problem = problem_having(*axis->problem_field);
        grid.push_back(axis_of("mask", {std::string(name_of(problem.mask))}));
      }
      const ProblemPoint point = only_point(grid);
      EXPECT_NE(point.why_not.find(fmt::format("problem.{} is ", axis->name)), std::string::npos)
          << axis->name << ": " << point.why_not;
      EXPECT_EQ(point.why_not.find('\n'), std::string::npos) << point.why_not;
    }
  }
}

}  // namespace
}  // namespace attest
