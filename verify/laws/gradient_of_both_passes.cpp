#include <optional>
#include <vector>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/backward/exact_gradient.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_gradient_of_both_passes {

/// A forward kernel of the CPU, and its Plan, that runs the problem: drawn by the case's seed.
struct ForwardPass {
  const KernelInfo* kernel;
  Case the_case;
};

std::optional<ForwardPass> drawn_forward_pass(const Run& run) {
  const std::uint64_t seed = run.the_case().inputs.seed;
  Case c;
  c.problem = backward::forward_problem(run.problem());
  std::vector<ForwardPass> all;
  for (const KernelInfo& kernel : all_kernels()) {
    const bool is_candidate = kernel.operation == &forward_operation &&
                              kernel.executor == Executor::cpu &&
                              kernel.role == KernelRole::kernel && kernel.plugin.empty() &&
                              kernel.missing_outputs.empty();
    if (!is_candidate) continue;
    const std::vector<Plan> plans = kernel.plans(c.problem);
    if (plans.empty()) continue;
    c.kernel = kernel.name;
    c.plan = plans[static_cast<std::size_t>(random_below(seed, stream_forward_pass, all.size() + 1,
                                                         static_cast<std::int64_t>(plans.size())))];
    if (!why_unsupported(kernel, c)) all.push_back({&kernel, c});
  }
  if (all.empty()) return std::nullopt;
  return all[static_cast<std::size_t>(
      random_below(seed, stream_forward_pass, 0, static_cast<std::int64_t>(all.size())))];
}

Check check_both(Run& run) {
  const ForwardPass pass = *drawn_forward_pass(run);
  Inputs inputs = run.inputs();
  const Inputs of_forward = backward::forward_inputs(run.problem(), inputs);
  HostMemoryDevice host;
  Run forward_run(*pass.kernel, pass.the_case, host);
  const Launch forward = forward_run.launch(pass.the_case, of_forward);
  inputs[backward::o] = forward.outputs[forward::o];
  inputs[backward::lse] = forward.outputs[forward::lse];
  const Launch launch = run.launch(run.the_case(), inputs);
  const InPhase phase(run.clock(), Phase::reference);
  const Answer answer = exact_gradient(
      run.problem(), inputs,
      run.kernel().precision(run.problem(), run.the_case().plan).as<BackwardRoundings>(),
      forward_run.answer_to(pass.the_case.problem, pass.the_case.plan, of_forward));
  Check nearest = Check::passed();
  for (const OutputIndex output :
       {backward::dq, backward::dk, backward::dv, backward::d_sinks, backward::d_bias}) {
    Check check = check_output(run.kernel(), output, launch.outputs, answer,
                               "after " + pass.the_case.kernel +
                                   " this is not the gradient of attention: further from it than "
                                   "the roundings of both passes");
    if (check.status == Check::Status::failed) return check;
    if (check.status == Check::Status::passed && check.worst.ratio > nearest.worst.ratio) {
      nearest = check;
    }
  }
  return nearest;
}

const LawRegistration registration{
    {.name = "gradient_of_both_passes",
     .statement =
         "with O and LSE of a forward kernel, drawn from those of the CPU, dQ, dK and dV are the "
         "gradient of attention within the sum of both passes' bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&backward_operation},
     .applies = [](Run& run) { return drawn_forward_pass(run).has_value(); },
     .check = check_both}};

}  // namespace law_gradient_of_both_passes
}  // namespace attest
