#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_scaled_values_bitwise {

// The law is exact only where nothing underflows. V is first rounded to multiples of 2^-6 below
// 2^7, and only rows whose logits span at most 20 count: weights are then above 2^-29, products
// above 2^-35 with 24-bit spacing above 2^-59, and a rescale keeps that above 2^-88: far from
// fp32's smallest normal, 2^-126.
constexpr double value_step = 0x1p-6;
constexpr double value_limit = 0x1p7;
constexpr double largest_spread = 20.0;

Inputs with_values(const Inputs& from, double factor) {
  Inputs inputs = from;
  for (float& value : inputs[forward::v].values()) {
    // Eight significand bits fit every format.
    double x = std::clamp<double>(value, -value_limit, value_limit);
    x = round_to(ElementType::bf16, std::nearbyint(x / value_step) * value_step);
    value = static_cast<float>(x * factor);
  }
  return inputs;
}

/// Largest minus smallest visible logit of a row; a softcap only brings them nearer.
double logit_spread(const Problem& p, const Inputs& inputs, std::int64_t b, std::int64_t h,
                    std::int64_t n) {
  double low = std::numeric_limits<double>::infinity();
  double high = -low;
  const auto q = inputs[forward::q].row(b, h, n);
  for (const std::int64_t j : visible_keys_of(p, b, n)) {
    const auto k = inputs[forward::k].row(b, p.kv_head_of(h), j);
    double dot = 0;
    for (std::size_t d = 0; d < q.size(); ++d) dot += static_cast<double>(q[d]) * k[d];
    low = std::min(low, p.scale * dot);
    high = std::max(high, p.scale * dot);
  }
  return high - low;
}

Tensor<float> times(Tensor<float> tensor, double factor) {
  for (float& x : tensor.values()) x = static_cast<float>(x * factor);
  return tensor;
}

/// Parts of O that are stored in a narrow format are below its normal range, and rounded more
/// coarsely there, where the other parts' keys have all the weight: O itself does not show it.
bool stores_narrow_parts(const Run& run) {
  const auto how = run.kernel().precision(run.problem(), run.the_case().plan).as<PrecisionPlan>();
  return how.splits > 1 &&
         format_of(how.partial_format).min_normal > format_of(ElementType::fp32).min_normal;
}

/// Equal bits where the kernel claims them and its parts can have them; otherwise the error of O
/// times the factor, and that of the scaled launch.
Agreement agreement(Run& run, const Inputs& plain, const Inputs& larger, double factor) {
  if (claims_same_bits(run, {}) && !stores_narrow_parts(run)) return {};
  Answer once = run.answer_to(run.problem(), run.the_case().plan, plain);
  for (double& bound : once[forward::o].bound.values()) bound *= factor;
  return within_bounds(run.answer_to(run.problem(), run.the_case().plan, larger), once);
}

const LawRegistration registration{
    {.name = "scaled_values_bitwise",
     .statement = "V times 2^k gives O times 2^k bit for bit, and the same LSE",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) { return run.problem().key_len > 0 && !has_modifications(run.problem()); },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const auto exponent =
               1 + random_below(run.the_case().inputs.seed, stream_scaled_values, 0, 6);
           const double factor = std::ldexp(1.0, static_cast<int>(exponent));
           const Inputs plain = with_values(run.inputs(), 1.0);
           const Inputs larger = with_values(run.inputs(), factor);
           const Launch once = run.launch(run.the_case(), plain);
           const Launch scaled = run.launch(run.the_case(), larger);
           const double min_normal = format_of(p.element_type).min_normal;
           std::vector<bool> is_narrow;  // [batch, query_heads, query_len]
           (void)check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
             is_narrow.push_back(within(largest_spread, logit_spread(p, run.inputs(), b, h, n)));
             return Check::passed();
           });
           return check_agree(
               run.kernel(), scaled.outputs,
               {times(once.outputs[forward::o], factor), once.outputs[forward::lse]},
               agreement(run, plain, larger, factor),
               "V was multiplied by a power of two, O was not, or LSE depends on V",
               [&](OutputIndex output, std::int64_t b, std::int64_t h, std::int64_t n,
                   std::int64_t d) {
                 if (output == forward::lse) return true;
                 // Without a finite bound the largest weight need not be near 1. Below the output
                 // format's normal range, and up to it, the base is rounded more coarsely.
                 const auto row =
                     static_cast<std::size_t>((b * p.query_heads + h) * p.query_len + n);
                 return is_narrow[row] &&
                        std::isfinite(run.answer()[forward::o].bound.at(b, h, n, 0)) &&
                        !(std::abs(once.outputs[forward::o].at(b, h, n, d)) <= min_normal);
               });
         }}};

}  // namespace law_scaled_values_bitwise
}  // namespace attest
