#include <cmath>

#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_scale_may_move {

/// Problem's scale stays a normal number when it is halved.
constexpr float least_scale = 0x1p-100F;

bool has_scales_of_scores(const Problem& p) {
  return p.codes.k_scales != Scales::none || p.codes.q_scales != Scales::none;
}

void multiply(Tensor<float>& scales, float factor) {
  for (float& scale : scales.values()) scale *= factor;
}

const LawRegistration registration{
    {.name = "scale_may_move",
     .statement =
         "half of Problem's scale with twice the scales of K, or else of Q, gives the same "
         "bits; twice the scales of V give twice O",
     .cost = Law::Cost::more_launches,
     .operations = {&quantised_operation},
     .applies =
         [](Run& run) {
           const Problem& p = run.problem();
           return (has_scales_of_scores(p) && !(std::abs(p.scale) < least_scale)) ||
                  p.codes.v_scales != Scales::none;
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           Case moved = run.the_case();
           Inputs inputs = run.inputs();
           if (has_scales_of_scores(p) && !(std::abs(p.scale) < least_scale)) {
             moved.problem.scale /= 2;
             const bool is_k = p.codes.k_scales != Scales::none;
             multiply(inputs[is_k ? quantised::k_scale : quantised::q_scale], 2);
           }
           const bool doubles = p.codes.v_scales != Scales::none;
           if (doubles) multiply(inputs[quantised::v_scale], 2);
           const Launch launch = run.launch(moved, inputs);
           Outputs want = run.base().outputs;
           if (doubles) multiply(want[quantised::o], 2);
           const ElementFormat& format = format_of(p.element_type);
           return check_agree(
               run.kernel(), launch.outputs, want, {},
               "a power of two that moved from one scale to another changed the answer",
               [&](OutputIndex output, std::int64_t b, std::int64_t h, std::int64_t n,
                   std::int64_t d) {
                 // Of products and sums that leave fp32's range on the way nothing is claimed.
                 if (!std::isfinite(run.answer()[output].bound.at(b, h, n, d))) return false;
                 // Nor of O below the format's normal range, where it is rounded more coarsely.
                 const float x = std::abs(want[output].at(b, h, n, d));
                 return output != quantised::o || !doubles ||
                        (x <= format.max_finite && x > 2 * format.min_normal);
               });
         }}};

}  // namespace law_scale_may_move
}  // namespace attest
