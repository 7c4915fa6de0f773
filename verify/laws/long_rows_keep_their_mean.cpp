#include <array>
#include <bit>
#include <optional>

#include "core/operations/quantised.hpp"
#include "verify/cases/heavy_tail.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/whole_numbers.hpp"

namespace attest {
namespace law_long_rows_keep_their_mean {

/// A sum of ones that is kept in 13 bits stands still at 2^14: the first length that it passes, and
/// some at which it does not.
constexpr std::array<std::int64_t, 4> lengths{131072, 32768, 20000, 16384};
constexpr std::int64_t few_columns = 16;
/// Largest usual cases that the row may cost: 131,072 keys in few columns are about as many.
constexpr std::int64_t most_times = 8;

/// One query of one head that sees as many keys as it may cost, in few columns where the
/// kernel takes so few.
std::optional<Case> long_row(Run& run) {
  const KernelInfo& kernel = run.kernel();
  Case c = run.the_case();
  Problem& p = c.problem;
  p.batch = p.query_heads = p.kv_heads = p.query_len = 1;
  p.mask = Mask::none;
  p.window = {};
  p.length_seed = p.padding_seed = 0;
  p.shared_keys = 0;
  c.layouts = {};
  for (const std::int64_t columns : {few_columns, p.head_dim}) {
    p.head_dim = columns;
    p.value_dim = run.problem().value_dim == 0 ? 0 : columns;
    for (const std::int64_t keys : lengths) {
      p.key_len = keys;
      c.layouts = fitted(kernel.layout_needs, p, {});
      if (work_of(kernel, p, c.plan) > most_times * most_work(kernel, c.plan)) continue;
      if (!why_unsupported(kernel, c)) return c;
    }
  }
  return std::nullopt;
}

const LawRegistration registration{
    {.name = "long_rows_keep_their_mean",
     .statement = "one query that weighs 16,384 to 131,072 keys of the same value alike gives that "
                  "value and ln n, within the bound, and to the last bit where nothing rounds: no "
                  "sum over keys stands still",
     .cost = Law::Cost::more_launches,
     .operations = {&quantised_operation},
     .needs_own_values = true,
     .applies = [](Run& run) { return run.problem().batch > 0 && long_row(run).has_value(); },
     .check =
         [](Run& run) {
           const Case c = *long_row(run);
           const Problem& p = c.problem;
           Inputs inputs{Tensor<float>(query_shape(p)), Tensor<float>(key_shape(p)),
                         Tensor<float>(value_shape(p), 1)};
           set_scales(p, inputs, 1);
           const Launch launch = run.launch(c, inputs);
           const Answer answer = run.answer_to(p, c.plan, inputs);
           const Check check = check_answer(run.kernel(), launch.outputs, answer,
                                            "a long row of equal keys has another mean");
           const PrecisionPlan precision = run.kernel().precision(p, c.plan).as<PrecisionPlan>();
           const std::int64_t chain =
               precision.promoted_keys > 0 ? precision.promoted_keys : p.key_len;
           const bool is_exact = averages_exactly(precision) &&
                                 std::has_single_bit(static_cast<std::uint64_t>(p.key_len)) &&
                                 static_cast<double>(chain) <= largest_exact_sum(precision.value);
           if (check.status == Check::Status::failed || !is_exact) return check;
           const Outputs ones{Tensor<float>(output_shape(p), 1), launch.outputs[quantised::lse]};
           return check_agree(run.kernel(), launch.outputs, ones, {},
                              "the mean of 2^r ones is not 1");
         }}};

}  // namespace law_long_rows_keep_their_mean
}  // namespace attest
