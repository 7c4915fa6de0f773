#include <cmath>

#include "core/attention/element_type.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_unit_weights_sum_exactly {

/// -1, 0 or 1. Sums of them, whatever is kept of them in between, have few bits.
void fill_with_units(Tensor<float>& tensor, std::uint64_t seed, std::uint64_t stream) {
  std::uint64_t i = 0;
  for (float& x : tensor.values()) x = static_cast<float>(random_below(seed, stream, i++, 3) - 1);
}

/// Q = 0, slopes and bias 0, and LSE 0 of rows that see keys then, so that each visible pair has
/// the weight exp(0 - 0) = 1.
Inputs with_unit_weights(Run& run) {
  Inputs inputs = run.inputs();
  for (const InputIndex index :
       {backward::k, backward::v, backward::o, backward::d_o, backward::d_lse}) {
    fill_with_units(inputs[index], run.the_case().inputs.seed, stream_units + index.number);
  }
  for (float& x : inputs[backward::q].values()) x = 0;
  for (float& x : inputs[backward::slopes].values()) x = 0;
  for (float& x : inputs[backward::bias].values()) x = 0;
  const Problem& p = run.problem();
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      if (visible_key_count(p, b, n) == 0) continue;
      for (std::int64_t h = 0; h < p.query_heads; ++h) inputs[backward::lse].at(b, h, n, 0) = 0;
    }
  }
  return inputs;
}

/// dV: of each key the sum of dO over the rows that see it, of all query heads of the group.
Tensor<double> sums_of_gradients(const Problem& problem, const Tensor<float>& gradients) {
  Tensor<double> sums(value_shape(problem));
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const auto gradient = gradients.row(b, h, n);
        for (const std::int64_t key : visible_keys_of(problem, b, n)) {
          const auto sum = sums.row(b, problem.kv_head_of(h), key);
          for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += gradient[c];
        }
      }
    }
  }
  for (double& x : sums.values()) x = round_to(problem.element_type, x);
  return sums;
}

Check check_sums(Run& run) {
  const Inputs inputs = with_unit_weights(run);
  const Launch launch = run.launch(run.the_case(), inputs);
  const auto check_exact = [&](OutputIndex output, const Tensor<double>& want,
                               std::string_view failure) {
    if (!run.kernel().gives(output)) return Check::passed();
    return check_of(std::string(backward_operation[output].label),
                    compare(launch.outputs[output], want, Tensor<double>(want.shape())), failure);
  };
  const Check of_dv = check_exact(
      backward::dv, sums_of_gradients(run.problem(), inputs[backward::d_o]),
      "all weights are 1, and this is not the sum of dO over the rows that see the key");
  if (of_dv.status == Check::Status::failed) return of_dv;
  return check_exact(backward::dk, Tensor<double>(key_shape(run.problem())),
                     "Q is 0, and this gradient is not");
}

const LawRegistration registration{
    {.name = "unit_weights_sum_exactly",
     .statement = "where Q and LSE are 0 every weight is 1: dV is the sum of dO over the rows that "
                  "see a key, to the last bit, and dK is 0",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies = [](Run& run) { return run.problem().dropout == 0; },
     .check = check_sums}};

}  // namespace law_unit_weights_sum_exactly
}  // namespace attest
