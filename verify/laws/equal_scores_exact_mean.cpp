#include <algorithm>
#include <bit>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace law_equal_scores_exact_mean {

/// Rows that see 2^r keys: their mean is a sum and a change of exponent.
bool sees_power_of_two(const Problem& problem, std::int64_t b, std::int64_t n) {
  return std::has_single_bit(static_cast<std::uint64_t>(visible_key_count(problem, b, n)));
}

bool has_such_rows(const Problem& problem) {
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      if (sees_power_of_two(problem, b, n)) return true;
    }
  }
  return false;
}

/// 8, or what a code of V holds.
std::int64_t largest_value(const Problem& problem) {
  return static_cast<std::int64_t>(
      std::min(8.0, largest_whole((*problem.operation)[forward::v].format(problem))));
}

/// Equal whole scores and V in whole numbers of [-8, 8], or of those of them that V holds.
Inputs equal_scores(const Run& run, bool zero_scores) {
  const Problem& p = run.problem();
  const auto draw = [&](std::uint64_t stream, std::int64_t index, std::int64_t bound) {
    return random_below(run.the_case().inputs.seed, stream, static_cast<std::uint64_t>(index),
                        bound);
  };
  Inputs inputs{Tensor<float>(query_shape(p)), Tensor<float>(key_shape(p)),
                Tensor<float>(value_shape(p))};
  for (std::int64_t i = 0; i < inputs[forward::q].size() && !zero_scores; ++i) {
    inputs[forward::q].values()[static_cast<std::size_t>(i)] =
        static_cast<float>(draw(stream_equal_queries, i, 5) - 2);
  }
  for (std::int64_t i = 0; i < inputs[forward::k].size(); ++i) {
    const auto at = static_cast<std::size_t>(i);
    // Every key of a case is the same vector.
    inputs[forward::k].values()[at] =
        static_cast<float>(draw(stream_equal_keys, i % p.head_dim, 3) - 1);
  }
  const std::int64_t most = largest_value(p);
  for (std::int64_t i = 0; i < inputs[forward::v].size(); ++i) {
    inputs[forward::v].values()[static_cast<std::size_t>(i)] =
        static_cast<float>(draw(stream_equal_values, i, 2 * most + 1) - most);
  }
  set_scales(p, inputs, 1);
  return inputs;
}

/// Exact in every order: weights of 1, sums of whole numbers that the accumulator holds, divided by
/// a power of two, rounded once.
bool is_exact(const Problem& p, const PrecisionPlan& precision) {
  const std::int64_t chain = precision.promoted_keys > 0 ? precision.promoted_keys : p.key_len;
  return averages_exactly(precision) &&
         static_cast<double>(largest_value(p) * chain) <= largest_exact_sum(precision.value);
}

Check check_exact_means(const Problem& p, const Inputs& inputs, const Outputs& outputs) {
  return check_rows(p, [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    if (!sees_power_of_two(p, b, n)) return Check::passed();
    const std::vector<std::int64_t> keys = visible_keys_of(p, b, n);
    for (std::int64_t d = 0; d < p.output_dim(); ++d) {
      double sum = 0;
      for (const std::int64_t j : keys) {
        sum += static_cast<double>(inputs[forward::v].at(b, p.kv_head_of(h), j, d));
      }
      const double want = round_to(p.element_type, sum / static_cast<double>(keys.size()));
      const float got = outputs[forward::o].at(b, h, n, d);
      if (static_cast<double>(got) == want) continue;
      return Check::failed_at("O", {.index = {b, h, n, d}, .got = got, .want = want},
                              "O is not the correctly rounded mean of V");
    }
    return Check::passed();
  });
}

const LawRegistration registration{
    {.name = "equal_scores_exact_mean",
     .statement = "equal whole scores over 2^r keys and small whole V give the correctly rounded "
                  "mean of V (within the bound where a declared rounding is on the way), and ln n "
                  "within its bound",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &quantised_operation},
     .needs_own_values = true,
     .applies =
         [](Run& run) {
           return !has_modifications(run.problem()) && has_such_rows(run.problem()) &&
                  run.problem().key_len < (1 << 20);
         },
     .check =
         [](Run& run) {
           const Problem& p = run.problem();
           const PrecisionPlan precision =
               run.kernel().precision(p, run.the_case().plan).as<PrecisionPlan>();
           // Only s = fl(scale x) is the same number in every key for certain and cancels to 0: a
           // maximum multiplied by the scale, or capped, apart does not.
           const Inputs inputs = equal_scores(run, p.softcap != 0 || !precision.scale_after_dot);
           const Launch launch = run.launch(run.the_case(), inputs);
           const Answer answer = run.answer_to(p, run.the_case().plan, inputs);
           const Check mean =
               is_exact(p, precision)
                   ? check_exact_means(p, inputs, launch.outputs)
                   : check_of("O",
                              compare(launch.outputs[forward::o], answer[forward::o].value,
                                      answer[forward::o].bound),
                              "equal scores, and O is not the mean of V");
           if (mean.status == Check::Status::failed) return mean;
           return check_output(run.kernel(), forward::lse, launch.outputs, answer,
                               "equal scores, but LSE is not the score plus ln n");
         }}};

}  // namespace law_equal_scores_exact_mean
}  // namespace attest
