#include "cpu_reference/reference.hpp"

#include <algorithm>
#include <cmath>

#include "core/operations/quantised.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

/// Smallest and largest factor of a tensor's scales; 1 where there are none.
ScaleRange range_of(const Tensor<float>& scales) {
  ScaleRange range;
  bool is_first = true;
  for (const float scale : scales.values()) {
    if (!std::isfinite(scale)) continue;
    const double size = std::abs(static_cast<double>(scale));
    range = is_first ? ScaleRange{size, size}
                     : ScaleRange{std::min(range.least, size), std::max(range.most, size)};
    is_first = false;
  }
  return range;
}

/// A kernel may multiply by the scales in any order.
Magnitudes scales_of(const Inputs& inputs) {
  const ScaleRange q = range_of(inputs[quantised::q_scale]);
  const ScaleRange k = range_of(inputs[quantised::k_scale]);
  const auto both = [](double a, double b, const auto& extreme) {
    return extreme(extreme(a, b), a * b);
  };
  const auto least = [](double a, double b) { return std::min(a, b); };
  const auto most = [](double a, double b) { return std::max(a, b); };
  Magnitudes scales;
  scales.scores = {both(q.least, k.least, least), both(q.most, k.most, most)};
  scales.values = range_of(inputs[quantised::v_scale]);
  return scales;
}

const ReferenceRegistration registration{
    {.operation = &quantised_operation,
     .exact =
         [](const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
           return exact_answer(problem, quantised::numbers_of(problem, inputs),
                               roundings.as<PrecisionPlan>(), scales_of(inputs));
         },
     .certify =
         [](const Problem& problem, const Inputs& inputs, const Answer& answer, std::uint64_t seed,
            int rows) {
           return certify_rows(problem, quantised::numbers_of(problem, inputs), answer, seed, rows);
         }}};

}  // namespace
}  // namespace attest
