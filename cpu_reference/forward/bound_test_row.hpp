#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_bound.hpp"
#include "cpu_reference/forward/oracle.hpp"

// What tests of single terms of the bound share.
namespace attest {

inline constexpr double u = 0x1p-24;
/// Of a score that is large against every term which does not grow with it.
inline constexpr double large_score = 1000;
/// A declared error far above all roundings of a short row.
inline constexpr double coarse = 0x1p-10;

/// One query that is 1, keys whose dot products are given, and values; one column.
struct BoundTestRow {
  Problem problem;
  Inputs inputs;
  PrecisionPlan plan;

  BoundTestRow(const std::vector<float>& keys, const std::vector<float>& values, float scale = 1)
      : problem{.query_len = 1,
                .key_len = static_cast<std::int64_t>(keys.size()),
                .head_dim = 1,
                .scale = scale},
        inputs{Tensor<float>(query_shape(problem), 1.0F), Tensor<float>(key_shape(problem)),
               Tensor<float>(key_shape(problem))} {
    std::ranges::copy(keys, inputs[forward::k].values().begin());
    std::ranges::copy(values, inputs[forward::v].values().begin());
    plan.rescale = Rescale::none;
    plan.exp = {"exact", 0, 0};
  }

  [[nodiscard]] OracleRow<double> exact() const {
    return oracle_row<double>(problem, inputs, 0, 0, 0);
  }
  /// The bounds of O and LSE, with one constant set to 0.
  [[nodiscard]] OracleBound<double> bound(double BoundConstants::*zeroed = nullptr) const {
    BoundConstants c = bound_constants(plan, problem, problem.key_len, magnitudes_of(inputs));
    if (zeroed != nullptr) c.*zeroed = 0;
    return oracle_bound(problem, inputs, 0, 0, exact(), c, plan.scale_folded_into_q);
  }
  void expect_o_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().o[0]);
    EXPECT_LE(error, bound().o[0]);
    EXPECT_GT(error, bound(term).o[0]);
  }
  void expect_lse_needs(double BoundConstants::*term, double got) const {
    const double error = std::abs(got - exact().lse);
    EXPECT_LE(error, bound().lse);
    EXPECT_GT(error, bound(term).lse);
  }
};

}  // namespace attest
