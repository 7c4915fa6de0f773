#include <algorithm>
#include <cmath>
#include <limits>

#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_equal_values_leave_no_dscore {

float unit(std::uint64_t seed, std::uint64_t stream, std::uint64_t i) {
  return static_cast<float>(random_below(seed, stream, i, 3) - 1);
}

/// All keys of a head have one value, of -1, 0 and 1, which is O of every row, and dO is of -1, 0
/// and 1, dLSE 0: dO.v and delta are one whole number, without a rounding.
Inputs with_equal_values(Run& run) {
  const Problem& p = run.problem();
  const std::uint64_t seed = run.the_case().inputs.seed;
  Inputs inputs = run.inputs();
  const auto fill = [&](InputIndex index, bool of_queries) {
    Tensor<float>& tensor = inputs[index];
    const Shape shape = tensor.shape();
    for (std::int64_t b = 0; b < shape[0]; ++b) {
      for (std::int64_t h = 0; h < shape[1]; ++h) {
        const std::int64_t head = b * p.kv_heads + (of_queries ? p.kv_head_of(h) : h);
        for (std::int64_t n = 0; n < shape[2]; ++n) {
          const auto row = tensor.row(b, h, n);
          for (std::size_t c = 0; c < row.size(); ++c) {
            row[c] =
                unit(seed, stream_leveled_keys, static_cast<std::uint64_t>(head) * row.size() + c);
          }
        }
      }
    }
  };
  fill(backward::v, false);
  fill(backward::o, true);
  std::uint64_t i = 0;
  for (float& x : inputs[backward::d_o].values()) x = unit(seed, stream_leveled_gradient, i++);
  std::ranges::fill(inputs[backward::d_lse].values(), 0.0F);
  return inputs;
}

Check check_zeros(Run& run) {
  const Inputs inputs = with_equal_values(run);
  const Launch launch = run.launch(run.the_case(), inputs);
  const Answer answer = run.answer_to(run.problem(), run.the_case().plan, inputs);
  for (const OutputIndex output : {backward::dq, backward::dk, backward::d_bias}) {
    if (!run.kernel().gives(output) || !has_tensor(run.problem(), output)) continue;
    const Tensor<double> zeros(launch.outputs[output].shape());
    // A weight beyond its format makes no 0.
    Tensor<double> allowed = zeros;
    for (std::size_t at = 0; at < allowed.values().size(); ++at) {
      const double bound = answer[output].bound.values()[at];
      if (!std::isfinite(bound)) allowed.values()[at] = std::numeric_limits<double>::infinity();
    }
    const Check check = check_of(std::string(backward_operation[output].label),
                                 compare(launch.outputs[output], zeros, allowed),
                                 "all values are O, so that dS is 0, and this gradient is not");
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "equal_values_leave_no_dscore",
     .statement =
         "where all values of a head are O, of whole numbers, and dLSE is 0, dO.v is delta: dQ, "
         "dK and the gradient of a bias are 0, whatever Q, K and LSE are",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies = [](Run& run) { return run.problem().dropout == 0; },
     .check = check_zeros}};

}  // namespace law_equal_values_leave_no_dscore
}  // namespace attest
