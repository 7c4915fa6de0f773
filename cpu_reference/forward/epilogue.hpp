#pragma once

#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "core/base/host_device.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/error_bound.hpp"

// Gate and residual of O (core/attention/problem.hpp), and what applying them rounds: step 15 of
// error_bound.hpp.
namespace attest {

/// Epilogue of one element of O: G A + R.
template <class Number>
struct Epilogue {
  bool has_gate = false, has_residual = false;
  Number gate = 1, residual = 0;

  [[nodiscard]] ATTEST_HOST_DEVICE bool is_given() const { return has_gate || has_residual; }
  /// NaN where the gate or the residual is no finite number.
  [[nodiscard]] ATTEST_HOST_DEVICE Number of(const Number& a) const {
    using std::abs;
    const Number infinity = std::numeric_limits<double>::infinity();
    if (!(abs(gate) < infinity) || !(abs(residual) < infinity)) {
      return std::numeric_limits<double>::quiet_NaN();
    }
    return gate * a + residual;
  }
};

/// Epilogue of an element of row (b, h, query). There is none of a row that does not exist, nor of
/// numbers that codes stand for.
template <class Number, class Tensors>
[[nodiscard]] Epilogue<Number> epilogue_of(const Problem& problem, const Tensors& inputs,
                                           std::int64_t b, std::int64_t h, std::int64_t query,
                                           std::int64_t column) {
  Epilogue<Number> epilogue;
  if constexpr (std::is_same_v<Tensors, Inputs>) {
    if (!has_epilogue(problem) || query >= problem.query_len_of(b)) return epilogue;
    epilogue.has_gate = problem.gate == OutputGate::given;
    epilogue.has_residual = problem.residual == Residual::given;
    epilogue.gate = forward::gate_of(problem, inputs, b, h, query, column);
    epilogue.residual = forward::residual_of(problem, inputs, b, h, query, column);
  }
  return epilogue;
}

/// Step 15: distance of the computed G A + R from the exact one before it is rounded to the output
/// format, `core` being that of A.
template <class Number>
ATTEST_HOST_DEVICE Number epilogue_error(const BoundConstants& c, const Number& a,
                                         const Number& core, const Epilogue<Number>& epilogue) {
  using std::abs;
  const Number infinity = std::numeric_limits<double>::infinity();
  Number value = a;
  Number error = c.rounds_before_epilogue ? output_error(c, value, core) : core;
  if (!(error < infinity)) return infinity;  // 0 times it would be NaN
  if (epilogue.has_gate) {
    const Number gate = abs(epilogue.gate), largest = abs(value) + error;
    if (!(gate * largest * (1 + c.rounding) < c.max_finite)) return infinity;
    error = gate * error + c.rounding * gate * largest + c.epilogue_absolute * (1 + gate + largest);
    value *= epilogue.gate;
    if (c.rounds_before_epilogue && epilogue.has_residual) error = output_error(c, value, error);
    if (!(error < infinity)) return infinity;
  }
  if (epilogue.has_residual) {
    const Number largest = abs(value) + error + abs(epilogue.residual);
    if (!(largest * (1 + c.rounding) < c.max_finite)) return infinity;
    error += c.rounding * largest + 2 * c.epilogue_absolute;
  }
  return evaluation_slack * error;
}

}  // namespace attest
