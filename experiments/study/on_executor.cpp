#include "experiments/study/on_executor.hpp"

#include "experiments/study/row_errors.hpp"
#include "experiments/timing/resident_problem.hpp"

namespace attest {

OnExecutor measure_on_executor(const Contender& contender, Gate& gate,
                               const std::vector<ErrorMetric>& errors, DevicesOfThread& devices) {
  constexpr std::int64_t rows = 32;
  OnExecutor result;
  std::string& why = result.measured.why_refused;
  why = gate.why_wrong(contender.candidate()).value_or("");
  if (why.empty() && Gate::has_no_small_case(contender.candidate())) {
    why = "no problem of its kind is small enough to verify it on an executor";
  }
  if (!why.empty() || errors.empty()) return result;
  const KernelInfo& kernel = *contender.kernel;
  const Plan& plan = contender.subject.plan;
  const Problem small = problem_for_errors(contender.subject.problem);
  if (why_unsupported(kernel, small, plan)) return result;
  ResidentProblem resident(small, contender.subject.inputs, devices[kernel.executor]);
  const SampledRows sampled = resident.sample(kernel, plan, rows);
  why = sampled.why_wrong().value_or("");
  if (!why.empty()) return result;
  result.measured.errors = row_errors(sampled, small.element_type, errors);
  result.error_problem = to_string(small);
  return result;
}

}  // namespace attest
