#include "experiments/explain/explanation.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/gradient_roundings.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/select_roundings.hpp"
#include "core/attention/tensor_bytes.hpp"
#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/gradient.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"
#include "experiments/explain/access_lines.hpp"
#include "gpu/model/cost_model.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

Dataflow dataflow_of(const KernelInfo& kernel, const Plan& plan) {
  switch (plan.loop_order) {
    case LoopOrder::keys_outside:
      return Dataflow::keys_outside;
    case LoopOrder::queries_outside:
      return Dataflow::queries_outside;
    default:
      return kernel.dataflow;
  }
}

const CompiledKernel* machine_code_of(const LaunchConfiguration& launch) {
  static const std::vector<CompiledKernel> compiled = compiled_kernels();
  const auto found = std::ranges::find(compiled, launch.kernel, &CompiledKernel::name);
  return found == compiled.end() ? nullptr : &*found;
}

/// Resources that a block of the launch takes; registers where the machine code of it is in the
/// program.
BlockNeeds needs_of(const LaunchConfiguration& launch) {
  BlockNeeds needs{.threads = launch.block.count(), .shared_bytes = launch.dynamic_shared_bytes};
  if (const CompiledKernel* const code = machine_code_of(launch)) {
    needs.registers_per_thread = code->registers;
    needs.shared_bytes += code->static_shared_bytes;
  }
  return needs;
}

/// Number of blocks that run at once, for kernels that ask: on the GPU that is explained, not on
/// the executor that explains.
ResidentBlocks resident_blocks_on(const GpuModel& gpu) {
  return
      [&gpu](const LaunchConfiguration& launch) { return blocks_at_once(gpu, needs_of(launch)); };
}

std::vector<ExplainedLaunch> explain_launches(const KernelInfo& kernel, const Explanation& e) {
  std::vector<ExplainedLaunch> launches;
  for (const LaunchConfiguration& c :
       observe_launches(kernel, e.problem, e.plan, {resident_blocks_on(*e.gpu), e.paging})) {
    const auto same = std::ranges::find(launches, c, &ExplainedLaunch::configuration);
    if (same != launches.end()) {
      ++same->launches;
      continue;
    }
    ExplainedLaunch launch{.configuration = c,
                           .occupancy = occupancy_of(*e.gpu, needs_of(c), c.grid.count())};
    if (const CompiledKernel* const code = machine_code_of(c)) launch.compiled = *code;
    launches.push_back(std::move(launch));
  }
  return launches;
}

/// A sentence when the device lacks what the kernel takes.
std::string why_not_run(const Explanation& e) {
  const auto [least, most] = e.kernel->compute_capabilities;
  const int has = e.gpu->compute_capability;
  if (has < least || has > most) {
    return fmt::format("it takes instructions of sm_{}, and {} is sm_{}", least, e.gpu->title, has);
  }
  constexpr int first_with_clusters = 90;
  if (e.plan.combine == Combine::cluster && has < first_with_clusters) {
    return fmt::format("it launches clusters of blocks, which take sm_{}, and {} is sm_{}",
                       first_with_clusters, e.gpu->title, has);
  }
  for (const ExplainedLaunch& launch : e.launches) {
    if (launch.occupancy.blocks > 0) continue;
    const LaunchConfiguration& c = launch.configuration;
    return fmt::format("a block of {} threads and {} B of shared memory does not fit an SM of {}",
                       c.block.count(), launch.shared_bytes(), e.gpu->title);
  }
  return {};
}

/// Blocks of the launch that makes most of them.
std::int64_t resident_blocks(const Explanation& e) {
  const auto largest = std::ranges::max_element(e.launches, {}, [](const ExplainedLaunch& launch) {
    return launch.configuration.grid.count();
  });
  return largest == e.launches.end() ? e.gpu->sms : largest->occupancy.resident_blocks;
}

void explain_traffic(Explanation& e) {
  if (e.dataflow == Dataflow::unknown) {
    e.why_no_traffic = "the kernel does not say which tensors it moves how often";
    return;
  }
  if (e.plan.query_tile < 1 || e.plan.key_tile < 1) {
    e.why_no_traffic = "the plan names no tiles";
    return;
  }
  if (e.plan.pack_gqa == PackGqa::yes) {
    e.why_no_traffic = "the laws are about tiles of one query head, and the plan packs several";
    return;
  }
  Problem full = e.problem;
  take_away_seeds(full);
  if (full != e.problem) {
    e.why_no_traffic =
        "the laws are about entries of one length without padding, prefix, documents and lists";
    return;
  }
  e.tiling = tiling_of(*e.kernel, e.problem, e.plan);
  e.law = traffic_without_cache(e.dataflow, e.problem, *e.tiling);
  e.l2 = simulate_l2({.problem = e.problem,
                      .tiling = *e.tiling,
                      .dataflow = e.dataflow,
                      .grid_order = e.plan.grid_order,
                      .group = e.plan.group,
                      .resident_blocks = resident_blocks(e)},
                     *e.gpu);
  if (!e.l2) e.why_no_traffic = "the launch is too large for the L2 model";
}

}  // namespace

namespace {

double compulsory(const Problem& problem, TensorRole role) {
  double bytes = 0;
  for (const TensorSpec& tensor : problem.operation->tensors) {
    if (tensor.role == role) bytes += bytes_of(tensor, problem);
  }
  return bytes;
}

/// FLOP of the operation for each of the forward pass: the same for all pairs.
double products_over_forward(const Problem& problem) {
  Problem pair = problem;
  pair.batch = pair.query_heads = pair.kv_heads = pair.query_len = pair.key_len = 1;
  pair.mask = Mask::none;
  pair.window = {};
  take_away_seeds(pair);
  return problem.operation->flops(pair) / forward_flops(pair);
}

/// FLOP/s of the products on the units that the kernel says it multiplies on.
double product_rate(const Explanation& e) {
  const ElementType type = e.problem.element_type;
  const Roundings roundings = e.kernel->precision(e.problem, e.plan);
  const auto rate = [&](const auto& how) { return product_flops_per_s(*e.gpu, type, how); };
  if (e.problem.operation == &backward_operation) return rate(roundings.as<BackwardRoundings>());
  if (e.problem.operation == &gradient_operation) {
    return rate(roundings.as<GradientRoundings>().backward);
  }
  if (e.problem.operation == &select_operation) {
    const Accumulation score = roundings.as<SelectRoundings>().score;
    return rate(PrecisionPlan{.score = score, .value = score});
  }
  const bool has_codes = e.problem.operation == &quantised_operation;
  return product_flops_per_s(*e.gpu, type, roundings.as<PrecisionPlan>(),
                             has_codes ? e.problem.codes : Codes{});
}

}  // namespace

NamedTensors tensors_of(const Problem& problem) {
  NamedTensors all;
  for (const TensorSpec& tensor : problem.operation->tensors) {
    if (!tensor.is_strided) continue;
    all.names += fmt::format("{}{}", all.names.empty() ? "" : ", ", tensor.label);
    all.bytes += bytes_of(tensor, problem);
  }
  return all;
}

std::string why_not_run(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                        const GpuModel& gpu, const Paging& paging) {
  Explanation e;
  e.kernel = &kernel;
  e.problem = problem;
  e.plan = plan;
  e.paging = paging;
  e.gpu = &gpu;
  if (std::string lacks = why_not_run(e); !lacks.empty()) return lacks;  // whatever it launches
  try {
    if (kernel.executor == Executor::simt) e.launches = explain_launches(kernel, e);
  } catch (const InvalidInput&) {
    // Its launches are not known, and so not what they lack.
  }
  return why_not_run(e);
}

bool is_explained(const Operation& operation) {
  return &operation == &forward_operation || operation.extends == &forward_operation;
}

Explanation explain(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                    const GpuModel& gpu, TraceMemo* memo, const Paging& paging) {
  Explanation e{.kernel = &kernel,
                .problem = problem,
                .plan = plan,
                .paging = paging,
                .gpu = &gpu,
                .flops_visible = problem.operation->flops(problem),
                .flops_full = full_flops(problem) * products_over_forward(problem),
                .exponentials = exponentials(problem),
                .footprint = footprint_of(problem),
                .compulsory_read = compulsory(problem, TensorRole::input),
                .compulsory_written = compulsory(problem, TensorRole::output),
                .dataflow = dataflow_of(kernel, plan)};
  if (kernel.executor == Executor::simt) {
    try {
      e.launches = explain_launches(kernel, e);
      e.why_not_run = why_not_run(e);
      if (!e.why_not_run.empty()) return e;
      e.counters = count_kernel(kernel, problem, plan, memo, {resident_blocks_on(gpu), paging});
    } catch (const InvalidInput& error) {
      e.why_no_counters = error.what();
    } catch (const KernelError& error) {
      e.why_no_counters = error.what();
    }
  } else {
    e.why_no_counters = "the kernel does not run on the SIMT executor";
  }
  explain_traffic(e);

  const SharedPasses passes = e.counters ? shared_passes(*e.counters) : SharedPasses{};
  e.work = {.flops = e.flops_visible,
            .dram_bytes = e.compulsory_read + e.compulsory_written,
            .l2_bytes = e.law ? e.law->total() : e.compulsory_read + e.compulsory_written,
            .exponentials = e.exponentials,
            .shared_passes = passes.merged};
  if (e.l2) {
    e.work.dram_bytes = static_cast<double>(e.l2->counts.dram_read + e.l2->counts.dram_written);
  }
  e.floors = time_floors(gpu, problem.element_type, e.work);
  if (kernel.precision) {
    // The element type's own peak is no floor: parts of fp32 are multiplied on faster units.
    e.floors.flops = e.work.flops / product_rate(e);
  }
  e.shared_as_written_s =
      time_floors(gpu, problem.element_type, {.shared_passes = passes.as_written}).shared;
  return e;
}

std::string_view largest_floor(const TimeFloors& floors) {
  const double largest = floors.largest();
  return largest == floors.shared         ? "shared memory"
         : largest == floors.flops        ? "arithmetic"
         : largest == floors.exponentials ? "exponentials"
         : largest == floors.l2           ? "L2"
                                          : "memory";
}

}  // namespace attest
