#include <memory>

#include "core/attention/backward_roundings.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/heavy_tail.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_executor_matches_bitwise {

/// The executor repeats IEEE operations, tensor cores and ex2.approx bit for bit, but not CUDA's
/// expf, exp2f and logf. Kernels that use ex2.approx take ln_of() for their LSE.
bool has_arithmetic_that_the_executor_repeats(Run& run) {
  if (run.problem().operation == &select_operation) return true;  // it has none of these
  const Roundings how = run.kernel().precision(run.problem(), run.the_case().plan);
  const bool is_backward = run.problem().operation == &backward_operation;
  const ExpMethod& exp =
      is_backward ? how.as<BackwardRoundings>().exp : how.as<PrecisionPlan>().exp;
  return exp.name == ex2_approx().name;
}

/// The executor takes minutes for what a GPU does in milliseconds: 2^16 entries, say.
bool is_dear(const KernelInfo& twin, const Case& c) {
  return work_of(twin, c.problem, c.plan) > 2 * most_work(twin, c.plan);
}

/// Kernel of the same source, compiled for the executor; nullptr when the case is not for it.
const KernelInfo* twin_of(Run& run) {
  if (run.kernel().executor != Executor::gpu) return nullptr;
  const KernelInfo* const twin = find_kernel(run.the_case().kernel, Executor::simt);
  if (twin == nullptr || why_unsupported(*twin, run.the_case())) return nullptr;
  return is_dear(*twin, run.the_case()) ? nullptr : twin;
}

const LawRegistration registration{
    {.name = "executor_matches_bitwise",
     .statement = "on a GPU: the SIMT executor gives the same bits (kernels whose "
                  "exponential is ex2.approx)",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &backward_operation, &quantised_operation,
                    &select_operation},
     .applies =
         [](Run& run) {
           return twin_of(run) != nullptr && has_arithmetic_that_the_executor_repeats(run);
         },
     .check =
         [](Run& run) {
           const std::unique_ptr<Device> executor = make_device(Executor::simt);
           Run twin(*twin_of(run), run.the_case(), *executor, &run.clock());
           return check_agree(run.kernel(), run.base().outputs, twin.base().outputs,
                              agreement_of(run, {.device = true}),
                              "the GPU and the executor give different results");
         }}};

}  // namespace law_executor_matches_bitwise
}  // namespace attest
