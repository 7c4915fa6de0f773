#include "verify/judge/agreement.hpp"

#include <algorithm>
#include <limits>

namespace attest {
namespace {

Tensor<double> sum(const Tensor<double>& a, const Tensor<double>& b) {
  Tensor<double> total = a;
  for (std::size_t i = 0; i < total.values().size(); ++i) total.values()[i] += b.values()[i];
  return total;
}

/// The elements of one output that are compared.
Check check_tensor(std::string_view label, OutputIndex output, const Tensor<float>& got,
                   const Tensor<float>& want, const Tensor<double>* bound, std::string_view failure,
                   const IsCompared& is_compared) {
  const Shape shape = want.shape();
  Comparison comparison;
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        for (std::int64_t d = 0; d < shape[3]; ++d) {
          if (is_compared && !is_compared(output, b, h, n, d)) continue;
          WorstElement here{
              .index = {b, h, n, d}, .got = got.at(b, h, n, d), .want = want.at(b, h, n, d)};
          if (!same_bits_or_both_nan(got.at(b, h, n, d), want.at(b, h, n, d))) {
            here.bound = bound == nullptr ? 0 : bound->at(b, h, n, d);
            here.ratio = bound == nullptr ? std::numeric_limits<double>::infinity()
                                          : error_over_bound(here.got, here.want, here.bound);
          }
          comparison.add(here);
        }
      }
    }
  }
  return check_of(std::string(label), comparison, failure);
}

}  // namespace

bool treats_shared_keys_apart(const Plan& plan) {
  return plan.cascade == Cascade::yes && plan.overlap == Overlap::yes;
}

bool claims_same_bits(const KernelInfo& kernel, const Plan& plan, const Differences& differences) {
  const auto holds = [&](const std::function<bool(const Plan&)>& of_plan) {
    return of_plan && of_plan(plan);
  };
  const bool by_share = holds(kernel.plan_depends_on_batch);
  const bool by_sharing = treats_shared_keys_apart(plan);
  // A batch, and queries that do not see all of them, decide which keys are shared.
  const bool by_batch = !kernel.is_batch_invariant || by_share || by_sharing;
  const bool by_queries =
      !kernel.is_query_invariant || by_sharing || holds(kernel.plan_depends_on_queries);
  return kernel.is_deterministic && !holds(kernel.plan_depends_on_order) &&
         !(differences.batch && by_batch) && !(differences.queries && by_queries) &&
         !(differences.device && by_share) && !(differences.sharing && by_sharing) &&
         !(differences.addresses && kernel.depends_on_alignment) &&
         !(differences.neighbours && kernel.shares_reference);
}

bool claims_same_bits(const Run& run, const Differences& differences) {
  return claims_same_bits(run.kernel(), run.the_case().plan, differences);
}

Agreement within_bounds(const Answer& of_got, const Answer& of_want) {
  Agreement agreement;
  for (std::size_t i = 0; i < of_got.size(); ++i) {
    const OutputIndex output{i};
    agreement.within[output] = sum(of_got[output].bound, of_want[output].bound);
  }
  return agreement;
}

Agreement agreement_of(const Run& run, const Differences& differences,
                       const std::function<Answer()>& answer) {
  if (claims_same_bits(run, differences)) return {};
  const Answer both = answer();
  return within_bounds(both, both);
}

Agreement agreement_of(Run& run, const Differences& differences) {
  return agreement_of(run, differences, [&] { return run.answer(); });
}

Check check_agree(const KernelInfo& kernel, const Outputs& got, const Outputs& want,
                  const Agreement& agreement, std::string_view failure,
                  const IsCompared& is_compared) {
  Check result;  // of the first output where nothing was found in another
  for (std::size_t i = 0; i < want.size(); ++i) {
    const OutputIndex output{i};
    if (!kernel.gives(output)) continue;
    const Tensor<double>* bound =
        agreement.within.size() == 0 ? nullptr : &agreement.within[output];
    Check check = check_tensor((*kernel.operation)[output].label, output, got[output], want[output],
                               bound, failure, is_compared);
    if (check.status == Check::Status::failed) return check;
    if (i == 0 || check.status != Check::Status::passed) result = std::move(check);
  }
  return result;
}

Check check_output(const KernelInfo& kernel, OutputIndex output, const Outputs& got,
                   const Answer& answer, std::string_view failure) {
  if (!kernel.gives(output)) return Check::passed();
  return check_of(std::string((*kernel.operation)[output].label),
                  compare(got[output], answer[output].value, answer[output].bound), failure);
}

Check check_answer(const KernelInfo& kernel, const Outputs& got, const Answer& answer,
                   std::string_view failure) {
  for (std::size_t i = 0; i < answer.size(); ++i) {
    Check check = check_output(kernel, OutputIndex{i}, got, answer, failure);
    if (check.status == Check::Status::failed) return check;
  }
  return Check::passed();
}

bool may_scale_heads(const KernelInfo& kernel, const Parts& parts) {
  const bool is_ours_on_a_gpu = kernel.executor != Executor::cpu && kernel.plugin.empty();
  return parts.scaled_to > 0 && !is_ours_on_a_gpu;
}

}  // namespace attest
