#include <algorithm>
#include <cmath>

#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_scaled_gradient_bitwise {

Inputs times(const Inputs& from, float factor) {
  Inputs inputs = from;
  for (const InputIndex gradient : {backward::d_o, backward::d_lse}) {
    for (float& x : inputs[gradient].values()) x *= factor;
  }
  return inputs;
}

/// The factor that leaves dO and dLSE finite, and dS with it where fp16 holds it: 2 to 64, or 1.
float factor_for(Run& run) {
  const double limit = format_of(run.problem().element_type).max_finite / 4;
  float largest = 0;
  for (const InputIndex gradient : {backward::d_o, backward::d_lse}) {
    for (const float x : run.inputs()[gradient].values()) {
      if (std::isfinite(x)) largest = std::max(largest, std::abs(x));
    }
  }
  auto factor = static_cast<float>(
      std::ldexp(1.0, 1 + static_cast<int>(random_below(run.the_case().inputs.seed,
                                                        stream_scaled_gradient, 0, 6))));
  while (factor > 1 && largest * static_cast<double>(factor) > limit) factor /= 2;
  return factor;
}

/// Powers of two pass through every rounding but those of numbers below the normal range, which
/// fp16 has in dS, and every format in an output. There, and where the kernel claims no bits, the
/// errors of both launches are all that is allowed.
Agreement agreement(Run& run, const Inputs& larger, double factor) {
  const bool has_range = run.problem().element_type != ElementType::fp16;
  if (has_range && claims_same_bits(run, {})) return {};
  Answer once = run.answer();
  for (OutputAnswer& output : once) {
    for (double& bound : output.bound.values()) bound *= factor;
  }
  return within_bounds(run.answer_to(run.problem(), run.the_case().plan, larger), once);
}

const LawRegistration registration{
    {.name = "scaled_gradient_bitwise",
     .statement =
         "dO and dLSE times 2^k give dQ, dK and dV times 2^k bit for bit: the map is linear "
         "in both",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies = {},
     .check = [](Run& run) {
       const float factor = factor_for(run);
       const Inputs larger = times(run.inputs(), factor);
       const Launch launch = run.launch(run.the_case(), larger);
       Outputs expected = run.base().outputs;
       for (Tensor<float>& output : expected) {
         for (float& x : output.values()) x *= factor;
       }
       // Sums of numbers near 2^-126, where the base is rounded more coarsely, decide nothing.
       constexpr float small = 0x1p-80F;
       const double limit = format_of(run.problem().element_type).max_finite / 4;
       return check_agree(
           run.kernel(), launch.outputs, expected, agreement(run, larger, factor),
           "dO and dLSE were multiplied by a power of two, and a gradient was not",
           [&](OutputIndex output, std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
             const float size = std::max(std::abs(expected[output].at(b, h, n, d)),
                                         std::abs(launch.outputs[output].at(b, h, n, d)));
             return size > small && size < limit &&
                    std::isfinite(run.answer()[output].bound.at(b, h, n, d));
           });
     }}};

}  // namespace law_scaled_gradient_bitwise
}  // namespace attest
