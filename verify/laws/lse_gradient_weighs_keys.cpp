#include <algorithm>
#include <cmath>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/element_type.hpp"
#include "core/attention/shared_bias.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/backward.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_lse_gradient_weighs_keys {

constexpr float scale_size = 0x1p-3F;  ///< wherever it is applied, nothing is rounded

Case with_power_of_two_scale(const Run& run) {
  Case c = run.the_case();
  c.problem.scale = std::copysign(scale_size, c.problem.scale);
  return c;
}

/// -1, 0 or 1 in every other column, from `first` on, and 0 between them.
void fill_columns(Tensor<float>& tensor, std::int64_t first, std::uint64_t seed,
                  std::uint64_t stream) {
  const std::int64_t columns = tensor.shape()[3];
  std::int64_t i = 0;
  for (float& x : tensor.values()) {
    const bool is_zero = i % columns % 2 != first;
    x = is_zero
            ? 0.0F
            : static_cast<float>(random_below(seed, stream, static_cast<std::uint64_t>(i), 3) - 1);
    ++i;
  }
}

/// Q and K have no column in common, slopes, bias, sinks and LSE are 0: scores are 0, and weights
/// 1, a sink's too. With dO = 0, dS is dLSE of the row, which is -1, 0 or 1.
Inputs with_unit_weights(Run& run) {
  const Problem& p = run.problem();
  const std::uint64_t seed = run.the_case().inputs.seed;
  Inputs inputs = run.inputs();
  const std::int64_t of_queries = random_below(seed, stream_lse_gradient, 0, 2);
  fill_columns(inputs[backward::q], of_queries, seed, stream_lse_gradient + 1);
  fill_columns(inputs[backward::k], 1 - of_queries, seed, stream_lse_gradient + 2);
  fill_columns(inputs[backward::d_lse], 0, seed, stream_lse_gradient + 3);
  std::ranges::fill(inputs[backward::d_o].values(), 0.0F);
  std::ranges::fill(inputs[backward::slopes].values(), 0.0F);
  std::ranges::fill(inputs[backward::sinks].values(), 0.0F);
  std::ranges::fill(inputs[backward::bias].values(), 0.0F);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) {
      // LSE is that of such a row, its sink where there is one.
      if (visible_key_count(p, b, n) == 0 && p.sinks == Sinks::none) continue;
      for (std::int64_t h = 0; h < p.query_heads; ++h) inputs[backward::lse].at(b, h, n, 0) = 0;
    }
  }
  return inputs;
}

struct KeySums {
  Tensor<double> dq, dk;
};

void add_row(double factor, std::span<const float> row, std::span<double> to) {
  for (std::size_t c = 0; c < to.size(); ++c) to[c] += factor * row[c];
}

/// Sums of whole numbers of dLSE times the scale, to K for dQ and to Q for dK, over all pairs that
/// are seen.
KeySums weighed(const Problem& p, const Inputs& inputs) {
  KeySums sums{Tensor<double>(query_shape(p)), Tensor<double>(key_shape(p))};
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const std::int64_t kv_head = p.kv_head_of(h);
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const double dscore = p.scale * static_cast<double>(inputs[backward::d_lse].at(b, h, n, 0));
        for (const std::int64_t key : visible_keys_of(p, b, n)) {
          add_row(dscore, inputs[backward::k].row(b, kv_head, key), sums.dq.row(b, h, n));
          add_row(dscore, inputs[backward::q].row(b, h, n), sums.dk.row(b, kv_head, key));
        }
      }
    }
  }
  for (Tensor<double>* const tensor : {&sums.dq, &sums.dk}) {
    for (double& x : tensor->values()) x = round_to(p.element_type, x);
  }
  return sums;
}

/// Errors that are allowed: none, but where nothing is proven, or where sums are rounded on their
/// way: a format holds only so large whole numbers.
Tensor<double> allowed_of(Tensor<double> bound, ElementType on_the_way) {
  for (double& x : bound.values()) {
    if (std::isfinite(x) && on_the_way == ElementType::fp32) x = 0;
  }
  return bound;
}

/// Of each head the sum of dLSE over the rows of all entries.
Tensor<double> of_sinks(const Problem& p, const Inputs& inputs) {
  Tensor<double> sums(backward_operation[backward::d_sinks].shape(p));
  for (std::int64_t b = 0; b < p.batch && p.sinks != Sinks::none; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len_of(b); ++n) {
        sums.at(0, h, 0, 0) += static_cast<double>(inputs[backward::d_lse].at(b, h, n, 0));
      }
    }
  }
  return sums;
}

/// Of each pair the sum of dLSE over the entries and heads that share its bias and see the key.
Tensor<double> of_bias(const Problem& p, const Inputs& inputs) {
  Tensor<double> sums(backward_operation[backward::d_bias].shape(p));
  for (std::int64_t b = 0; b < p.batch && p.bias != Bias::none; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const auto sum = sums.row(entries_share_bias(p) ? 0 : b, heads_share_bias(p) ? 0 : h, n);
        for (const std::int64_t key : visible_keys_of(p, b, n)) {
          sum[static_cast<std::size_t>(key)] +=
              static_cast<double>(inputs[backward::d_lse].at(b, h, n, 0));
        }
      }
    }
  }
  return sums;
}

Check check_sums(Run& run) {
  const Case c = with_power_of_two_scale(run);
  const Inputs inputs = with_unit_weights(run);
  const Launch launch = run.launch(c, inputs);
  const Answer answer = run.answer_to(c.problem, c.plan, inputs);
  const auto how = run.kernel().precision(c.problem, c.plan).as<BackwardRoundings>();
  const KeySums want = weighed(c.problem, inputs);
  const auto check_exact = [&](OutputIndex output, const Tensor<double>& sums,
                               ElementType on_the_way, std::string_view failure) {
    if (!run.kernel().gives(output)) return Check::passed();
    return check_of(
        std::string(backward_operation[output].label),
        compare(launch.outputs[output], sums, allowed_of(answer[output].bound, on_the_way)),
        failure);
  };
  for (const Check& check :
       {check_exact(
            backward::dq, want.dq,
            how.dq_part_format == ElementType::fp32 ? how.dq_sum_format : how.dq_part_format,
            "dO is 0 and all weights are 1, and this is not the sum of the keys that the "
            "row sees, times its dLSE"),
        check_exact(backward::dk, want.dk, how.kv_part_format,
                    "dO is 0 and all weights are 1, and this is not the sum of the rows that see "
                    "the key, times their dLSE"),
        check_exact(backward::dv, Tensor<double>(value_shape(c.problem)), ElementType::fp32,
                    "dO is 0, and this gradient is not: dLSE does not enter it"),
        check_exact(backward::d_sinks, of_sinks(c.problem, inputs), ElementType::fp32,
                    "dO is 0 and the weight of a sink is 1 in each row, and this is not the sum "
                    "of dLSE over all rows of the head"),
        check_exact(backward::d_bias, of_bias(c.problem, inputs), ElementType::fp32,
                    "dO is 0 and all weights are 1, and this is not the sum of dLSE over the "
                    "entries and heads that share the bias")}) {
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "lse_gradient_weighs_keys",
     .statement = "where dO and LSE are 0 and Q and K have no column in common, dS is dLSE: dQ and "
                  "dK are sums of keys and queries times dLSE, to the last bit, dV is 0, and the "
                  "gradients of a bias of 0 and of sinks of 0 are sums of dLSE",
     .cost = Law::Cost::more_launches,
     .operations = {&backward_operation},
     .applies =
         [](Run& run) {
           const Case other = with_power_of_two_scale(run);
           return run.problem().lse_gradient == LseGradient::given &&
                  run.kernel()
                      .precision(other.problem, other.plan)
                      .as<BackwardRoundings>()
                      .exp.is_one_at_zero &&
                  !why_unsupported(run.kernel(), other);
         },
     .check = check_sums}};

}  // namespace law_lse_gradient_weighs_keys
}  // namespace attest
