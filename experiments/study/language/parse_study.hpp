#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/run/device.hpp"
#include "experiments/study/language/axis.hpp"

namespace attest {
struct Expression;  // expression.hpp

/// Position in the study's file; both numbers count from 1.
struct Place {
  int line = 1, column = 1;
};

/// An expression with the text that it was read from.
struct Condition {
  std::string text;
  std::shared_ptr<const Expression> expression;
  Place place;
};

/// A value as the file says it: a number, a name, or what is computed from other axes.
using WrittenValue = std::variant<double, std::string, Condition>;

/// The value where it stands in the file, nothing where it is computed.
[[nodiscard]] std::optional<AxisValue> stated(const WrittenValue& value);
/// Value of an axis as a file would state it.
[[nodiscard]] WrittenValue written(const AxisValue& value);

/// One thing that is varied, and its values in the order of the file.
struct VariedAxis {
  const Axis* axis = nullptr;  ///< never null
  std::vector<WrittenValue> values{};
  bool is_every_value = false;  ///< of a Plan: `all`, what the kernel offers
  Place place{};
};
/// All combinations of their values.
using Grid = std::vector<VariedAxis>;

/// Kernel that every point is timed against, in the same rounds, as the file asks for it.
struct Baseline {
  std::string name;  ///< measurements are called `speed_over_NAME`
  std::string kernel;
  Plan plan;                  ///< fields that are given; others as those of a point
  bool may_be_absent = true;  ///< a peer: not in every build, not on every machine
  Place place;
};

/// Claim of a study about its results.
struct Expectation {
  Condition that;        ///< over results: see answer.hpp
  std::string because;   ///< the reason to expect it
  std::string claim;     ///< id in the ledger of claims, or empty
  double tolerance = 0;  ///< relative; sides of a comparison that are nearer are equal
};

/// Chart that a study asks its report for; axes and metrics by their names, empty where none is
/// asked for.
struct Plot {
  std::string kind;  ///< heat_map, lines, pareto, roofline, bars
  std::string x, y, value, color;
  std::string title;
};

/// Choice of the points that are measured, of all that the grids make.
struct Sampling {
  enum class Method {
    grid,    ///< every point
    random,  ///< `points` of them, drawn without order
    halving  ///< all, and after each round of the time budget the slower part leaves
  };
  Method method = Method::grid;
  std::int64_t points = 0;  ///< random
  std::uint64_t seed = 0;   ///< random
  double keep = 0.5;        ///< halving: share that stays; 0 to 1
};

enum class CacheState { hot, cold };

/// A study as its file says it, every value checked. One question; README.md is the reference.
struct StudySpec {
  std::string name;
  std::string question;
  std::vector<std::string> claims;
  std::vector<std::string> kernels;  ///< globs, each matches something
  /// Alternatives: the points are those of the first, then of the second, ... Never empty. A
  /// number may be computed from other axes: `16384 / length`.
  std::vector<Grid> problem;
  /// Alternatives as well. One empty grid: the default Plan.
  std::vector<Grid> plan;
  bool every_plan = false;  ///< `plan: all`
  Grid layout;
  Grid inputs;
  std::optional<Executor> executor;  ///< nothing: auto, the GPU where there is one
  std::vector<std::string> metrics;
  std::vector<std::string> counters;  ///< groups, or names that CUPTI knows
  std::vector<Baseline> baselines;
  CacheState cache = CacheState::hot;
  bool in_graph = false;  ///< launches of a timing are replayed from a CUDA graph
  std::vector<Condition> constraints;
  Sampling sampling;
  std::optional<std::int64_t> repeats;  ///< rounds of every point; else until target_confidence
  double target_confidence = 0.01;      ///< relative half width of the interval of the ratio
  std::vector<std::uint64_t> seeds;     ///< of inputs; never empty
  std::optional<double> time_budget_s;  ///< of the whole run
  std::vector<Expectation> expect;
  std::vector<Plot> plots;

  std::string text;  ///< the file, byte for byte
};

/// Complaint about a study's file.
struct StudyError {
  Place place;
  std::string sentence;
};
/// `FILE:LINE:COLUMN: SENTENCE`
[[nodiscard]] std::string to_string(const StudyError& error, std::string_view file);

/// The spec, or everything that is wrong with it, in the order of the file.
struct ParsedStudy {
  std::optional<StudySpec> spec;
  std::vector<StudyError> errors;
};
/// Kernels and input families are looked up among those registered: register captured inputs
/// before. `default_name` is the study's where it gives none. Never throws for whatever bytes.
[[nodiscard]] ParsedStudy parse_study(std::string_view text, std::string_view default_name);

}  // namespace attest
