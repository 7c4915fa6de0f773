#include "cpu_reference/backward/gradient_choices.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "core/run/registry.hpp"
#include "cpu_reference/kernels/backward_emulation.hpp"

namespace attest {
namespace {

/// Numbers that have the problem's element type instead of fp32.
using Formats = std::vector<ElementType BackwardRoundings::*>;
using How = BackwardRoundings;

/// Weights of which dS is formed.
enum class DscoreFrom { weights, rounded_weights };

/// Form in which the parts of dQ are added.
enum class DqSums { format, units };

/// `backward_tiled` that rounds its outputs and, of what is inside, `rounded` alone. Query heads of
/// a group are summed apart, as kernels do that give each of them a block.
KernelInfo choice(const std::string& name, std::string summary, const Formats& rounded,
                  DscoreFrom dscore = DscoreFrom::weights, DqSums sums = DqSums::format) {
  const KernelInfo& tiled = *find_kernel("backward_tiled", Executor::cpu);
  KernelInfo kernel = tiled;
  kernel.name = "choice/bwd_" + name;
  kernel.summary = std::move(summary);
  kernel.element_types = {ElementType::fp16, ElementType::bf16};
  kernel.plans = [](const Problem&) {
    return std::vector<Plan>{{.query_tile = 64, .key_tile = 64}};
  };
  const auto roundings = [rounded, dscore, sums, of_tiled = tiled.precision](const Problem& problem,
                                                                             const Plan& plan) {
    BackwardRoundings how = of_tiled(problem, plan).as<BackwardRoundings>();
    how.weight_format = how.dscore_format = ElementType::fp32;
    how.kv_parts = problem.query_heads / problem.kv_heads;
    how.kv_chain = std::max<std::int64_t>(1, problem.query_len);
    for (const auto format : rounded) how.*format = problem.element_type;
    how.dscore_of_rounded_weights = dscore == DscoreFrom::rounded_weights;
    how.sums_dq_in_units = sums == DqSums::units;
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
      choice("nothing_rounded", "fp32 inside, dQ, dK and dV rounded to 16 bits at the end", {}),
      choice("flash", "P and dS in 16 bits before their products, all else fp32 inside",
             {&How::weight_format, &How::dscore_format}),
      choice("p_rounded", "P in 16 bits before dV, all else fp32 inside", {&How::weight_format}),
      choice("ds_rounded", "dS in 16 bits before dQ and dK, all else fp32 inside",
             {&How::dscore_format}),
      choice("ds_of_rounded_p", "as bwd_flash, and dS is formed from P in 16 bits",
             {&How::weight_format, &How::dscore_format}, DscoreFrom::rounded_weights),
      choice("lse_rounded", "LSE in 16 bits, all else fp32 inside", {&How::lse_format}),
      choice("delta_rounded", "delta in 16 bits, all else fp32 inside", {&How::delta_format}),
      choice("dq_sums_rounded", "dQ summed in 16 bits from key tile to key tile",
             {&How::dq_sum_format}),
      choice("dq_parts_rounded", "dQ of each key tile in 16 bits", {&How::dq_part_format}),
      choice("dq_sums_in_units", "dQ summed in 32-bit integers from key tile to key tile", {},
             DscoreFrom::weights, DqSums::units),
      // A part is what one query head of a group gives to dK and dV.
      choice("kv_parts_rounded", "dK and dV of each query head of a group in 16 bits",
             {&How::kv_part_format}),
      choice("all_rounded", "P, dS from it, LSE, delta, sums of dQ and parts of dK and dV",
             {&How::weight_format, &How::dscore_format, &How::lse_format, &How::delta_format,
              &How::dq_sum_format, &How::kv_part_format},
             DscoreFrom::rounded_weights),
  };
}

}  // namespace attest
