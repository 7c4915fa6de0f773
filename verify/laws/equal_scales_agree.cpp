#include <algorithm>
#include <optional>

#include "core/attention/quantiser.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_equal_scales_agree {

/// The case with the one scale of a head said for each row, block or column, and its inputs.
struct Spread {
  Case the_case;
  Inputs inputs;
};

/// A finer kind of scales that the kernel takes instead of one a head, drawn by the case.
std::optional<Scales> finer(const std::vector<Scales>& taken, Scales now, std::uint64_t seed) {
  if (now != Scales::head) return std::nullopt;
  std::vector<Scales> finer;
  std::ranges::copy_if(taken, std::back_inserter(finer),
                       [](Scales kind) { return kind != Scales::none && kind != Scales::head; });
  if (finer.empty()) return std::nullopt;
  return finer[seed % finer.size()];
}

void spread(Inputs& inputs, InputIndex tensor, InputIndex scales, Scales kind) {
  const Tensor<float> of_heads = inputs[scales];
  Tensor<float> repeated(scales_shape(inputs[tensor].shape(), kind));
  const Shape& shape = repeated.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::fill(repeated.row(b, h, n), of_heads.at(b, h, 0, 0));
      }
    }
  }
  inputs[scales] = repeated;
}

std::optional<Spread> spread_scales(Run& run) {
  const std::uint64_t seed = run.the_case().inputs.seed;
  const KernelInfo& kernel = run.kernel();
  Codes codes = run.problem().codes;
  const auto of_k = finer(kernel.codes.k_scales, codes.k_scales, seed / 2);
  const auto of_v = finer(kernel.codes.v_scales, codes.v_scales, seed / 7);
  if (!of_k && !of_v) return std::nullopt;
  Spread result{run.the_case(), run.inputs()};
  // A layout of one scale a head may leave no room for more.
  result.the_case.layouts[quantised::k_scale] = result.the_case.layouts[quantised::v_scale] = {};
  if (of_k) {
    spread(result.inputs, quantised::k, quantised::k_scale, *of_k);
    codes.k_scales = *of_k;
  }
  if (of_v) {
    spread(result.inputs, quantised::v, quantised::v_scale, *of_v);
    codes.v_scales = *of_v;
  }
  result.the_case.problem.codes = codes;
  result.the_case.layouts =
      fitted(kernel.layout_needs, result.the_case.problem, result.the_case.layouts);
  return result;
}

const LawRegistration registration{
    {.name = "equal_scales_agree",
     .statement = "one scale a head, and the same scale said for each of its rows, blocks or "
                  "columns, give one answer within both bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&quantised_operation},
     .applies =
         [](Run& run) {
           const std::optional<Spread> other = spread_scales(run);
           return other && !why_unsupported(run.kernel(), other->the_case);
         },
     .check =
         [](Run& run) {
           const Spread other = *spread_scales(run);
           const Launch launch = run.launch(other.the_case, other.inputs);
           const Answer answer =
               run.answer_to(other.the_case.problem, other.the_case.plan, other.inputs);
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              within_bounds(answer, run.answer()),
                              "the same scale said more often gives another answer");
         }}};

}  // namespace law_equal_scales_agree
}  // namespace attest
