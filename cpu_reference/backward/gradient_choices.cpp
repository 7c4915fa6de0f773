#include "cpu_reference/backward/gradient_choices.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/backward_emulation.hpp"

namespace attest {
namespace {

using Change = void (*)(BackwardRoundings& how, ElementType type);

void round_weights(BackwardRoundings& how, ElementType type) {
  how.weight_format = type;
}

void round_dscores(BackwardRoundings& how, ElementType type) {
  how.dscore_format = type;
}

void round_lse(BackwardRoundings& how, ElementType type) {
  how.lse_format = type;
}

void round_delta(BackwardRoundings& how, ElementType type) {
  how.delta_format = type;
}

void round_dq_sums(BackwardRoundings& how, ElementType type) {
  how.dq_sum_format = type;
}

/// A part is what one query head of a group gives to dK and dV.
void round_kv_parts(BackwardRoundings& how, ElementType type) {
  how.kv_part_format = type;
}

void round_as_flash(BackwardRoundings& how, ElementType type) {
  round_weights(how, type);
  round_dscores(how, type);
}

/// `backward_tiled` with the roundings that `change` makes of those of its outputs alone. Query
/// heads of a group are summed apart, as kernels do that give each of them a block.
KernelInfo choice(const std::string& name, std::string summary, Change change) {
  const KernelInfo& tiled = *find_kernel("backward_tiled", Executor::cpu);
  KernelInfo kernel = tiled;
  kernel.name = "choice/bwd_" + name;
  kernel.summary = std::move(summary);
  kernel.element_types = {ElementType::fp16, ElementType::bf16};
  kernel.plans = [](const Problem&) {
    return std::vector<Plan>{{.query_tile = 64, .key_tile = 64}};
  };
  const auto roundings = [change, of_tiled = tiled.precision](const Problem& problem,
                                                              const Plan& plan) {
    BackwardRoundings how = of_tiled(problem, plan).as<BackwardRoundings>();
    how.weight_format = how.dscore_format = ElementType::fp32;
    how.kv_parts = problem.query_heads / problem.kv_heads;
    how.kv_chain = std::max<std::int64_t>(1, problem.query_len);
    change(how, problem.element_type);
    return how;
  };
  kernel.precision = roundings;
  kernel.launch = [roundings](const Arguments& arguments, Device& /*device*/) {
    emulate_backward(arguments, roundings(arguments.problem, arguments.plan));
  };
  return kernel;
}

}  // namespace

std::vector<KernelInfo> gradient_choices() {
  return {
      choice("nothing_rounded", "fp32 inside, dQ, dK and dV rounded to 16 bits at the end",
             [](BackwardRoundings&, ElementType) {}),
      choice("flash", "P and dS in 16 bits before their products, all else fp32 inside",
             round_as_flash),
      choice("p_rounded", "P in 16 bits before dV, all else fp32 inside", round_weights),
      choice("ds_rounded", "dS in 16 bits before dQ and dK, all else fp32 inside", round_dscores),
      choice("ds_of_rounded_p", "as bwd_flash, and dS is formed from P in 16 bits",
             [](BackwardRoundings& how, ElementType type) {
               round_as_flash(how, type);
               how.dscore_of_rounded_weights = true;
             }),
      choice("lse_rounded", "LSE in 16 bits, all else fp32 inside", round_lse),
      choice("delta_rounded", "delta in 16 bits, all else fp32 inside", round_delta),
      choice("dq_sums_rounded", "dQ summed in 16 bits from key tile to key tile", round_dq_sums),
      choice("kv_parts_rounded", "dK and dV of each query head of a group in 16 bits",
             round_kv_parts),
      choice("all_rounded", "P, dS from it, LSE, delta, sums of dQ and parts of dK and dV",
             [](BackwardRoundings& how, ElementType type) {
               for (const Change change :
                    {round_as_flash, round_lse, round_delta, round_dq_sums, round_kv_parts}) {
                 change(how, type);
               }
               how.dscore_of_rounded_weights = true;
             }),
  };
}

}  // namespace attest
