#pragma once

#include <map>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"
#include "experiments/study/language/spec.hpp"

namespace attest {

/// One value for each axis of a grid.
using Combination = std::map<std::string, std::string>;
/// All of them, the last axis fastest. One empty one for a grid without axes.
[[nodiscard]] std::vector<Combination> combinations_of(const Grid& grid);

/// A problem of a study, or why the values make none.
struct ProblemPoint {
  Problem problem{};
  Combination axes{};  ///< with the values of computed fields
  std::string why_not{};
};
[[nodiscard]] std::vector<ProblemPoint> problems_of(const std::vector<Grid>& grids);

}  // namespace attest
