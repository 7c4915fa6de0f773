#include <algorithm>
#include <cmath>

#include "core/attention/shared_bias.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_groups_equal_copied_heads {

/// A KV head for every query head.
Case with_copied_heads(const Run& run) {
  Case c = run.the_case();
  c.problem.kv_heads = c.problem.query_heads;
  c.layouts = {};  // a gap between heads, of which there are more now, may be 2^32 elements
  return c;
}

Tensor<float> copied_heads(const Problem& grouped, const Tensor<float>& from) {
  Shape shape = from.shape();
  shape[1] = grouped.query_heads;
  Tensor<float> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(from.row(b, grouped.kv_head_of(h), n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

/// Sums over the query heads of each group.
Tensor<double> summed(const Problem& grouped, const auto& from) {
  Shape shape = from.shape();
  shape[1] = grouped.kv_heads;
  Tensor<double> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < grouped.query_heads; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const auto sum = to.row(b, grouped.kv_head_of(h), n);
        const auto part = from.row(b, h, n);
        for (std::size_t c = 0; c < sum.size(); ++c) sum[c] += part[c];
      }
    }
  }
  return to;
}

Tensor<double> in_double(const auto& from) {
  Tensor<double> to(from.shape());
  std::ranges::copy(from.values(), to.values().begin());
  return to;
}

/// Sums over query heads, which a kernel may form group by group: no bits follow. A sink and a bias
/// of each query head are no group's.
bool sums_heads(const Problem& problem, OutputIndex output) {
  return output == backward::dk || output == backward::dv ||
         (output == backward::d_bias && heads_share_bias(problem));
}

Check check_groups(Run& run) {
  const Problem& grouped = run.problem();
  const Case copied = with_copied_heads(run);
  Inputs inputs = run.inputs();
  for (const InputIndex index : {backward::k, backward::v}) {
    inputs[index] = copied_heads(grouped, inputs[index]);
  }
  const Launch launch = run.launch(copied, inputs);
  const Answer of_copies = run.answer_to(copied.problem, copied.plan, inputs);
  const Differences of_heads{.batch = true, .addresses = true, .neighbours = true};
  for (std::size_t number = 0; number < of_copies.size(); ++number) {
    const OutputIndex output{number};
    if (!run.kernel().gives(output)) continue;
    const bool is_of_kv_heads = output == backward::dk || output == backward::dv;
    const auto joined = [&](const auto& of_heads_tensor) {
      return is_of_kv_heads ? summed(grouped, of_heads_tensor) : in_double(of_heads_tensor);
    };
    const bool has_bits = !sums_heads(grouped, output) && claims_same_bits(run, of_heads);
    Tensor<double> allowed = joined(of_copies[output].bound);
    for (std::size_t i = 0; i < allowed.values().size(); ++i) {
      double& bound = allowed.values()[i];
      bound += run.answer()[output].bound.values()[i];
      if (has_bits && std::isfinite(bound)) bound = 0;
    }
    const Check check =
        check_of(std::string(backward_operation[output].label),
                 compare(run.base().outputs[output], joined(launch.outputs[output]), allowed),
                 "with a KV head of its own for every query head this gradient is another");
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "groups_equal_copied_heads",
     .statement =
         "heads that share K and V have the gradients that they have with copies of their "
         "own: dQ, dSink and dBias the same bits, a dBias that heads share within its bounds, "
         "dK and dV the sums over the group",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies =
         [](Run& run) {
           return run.problem().kv_heads < run.problem().query_heads &&
                  !why_unsupported(run.kernel(), with_copied_heads(run));
         },
     .check = check_groups}};

}  // namespace law_groups_equal_copied_heads
}  // namespace attest
