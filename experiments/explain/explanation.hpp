#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/run/launch_trace.hpp"
#include "experiments/explain/rank_scaling.hpp"
#include "gpu/model/compiled_kernels.hpp"
#include "gpu/model/cost_model.hpp"
#include "gpu/model/l2_model.hpp"
#include "gpu/model/occupancy.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {

/// A launch on the device that is asked about.
struct ExplainedLaunch {
  LaunchConfiguration configuration;
  std::int64_t launches = 1;                 ///< of this kernel with this configuration
  std::optional<CompiledKernel> compiled{};  ///< nothing: no machine code of it is in the program
  Occupancy occupancy{};

  /// Shared memory of a block, static and dynamic.
  [[nodiscard]] std::int64_t shared_bytes() const {
    return configuration.dynamic_shared_bytes + (compiled ? compiled->static_shared_bytes : 0);
  }
};

/// Everything that `attest explain` says about a kernel, all of it without running it on a GPU.
/// What is not known is absent, and a sentence says why.
struct Explanation {
  const KernelInfo* kernel = nullptr;
  Problem problem;
  Plan plan;
  std::string plan_origin{};  ///< empty: it was given
  Paging paging{};            ///< of K and V
  const GpuModel* gpu = nullptr;
  std::string why_not_run{};  ///< on that device, whatever is known else; empty: it runs

  double flops_visible = 0, flops_full = 0;  ///< of visible pairs, and as if nothing were masked
  double exponentials = 0;
  Footprint footprint;
  /// Each tensor once.
  double compulsory_read = 0, compulsory_written = 0;

  Dataflow dataflow = Dataflow::unknown;
  std::optional<Tiling> tiling{};
  std::optional<Traffic> law{};  ///< without a cache
  std::optional<L2Simulation> l2{};
  std::string why_no_traffic{};  ///< of law or l2

  std::vector<ExplainedLaunch> launches{};
  std::optional<ProblemCounters> counters{};
  std::string why_no_counters{};  ///< of launches or counters

  Work work{};          ///< as far as known: memory by the L2 model, else compulsory
  TimeFloors floors{};  ///< shared memory as if nvcc merged scalar accesses into 16 bytes
  double shared_as_written_s = 0;  ///< the time that it takes if nvcc merges none

  std::optional<RankScaling> ranks{};  ///< of a kernel of several ranks, whoever asks for it
};

/// The tensors of the operation but for LSE: `Q, K, V, O`.
struct NamedTensors {
  std::string names;
  double bytes = 0;
};
[[nodiscard]] NamedTensors tensors_of(const Problem& problem);

/// True for attention and its gradients, whose work and units are known.
[[nodiscard]] bool is_explained(const Operation& operation);

/// `kernel` must support problem and plan. Of a kernel that does not run on the device there are
/// no counters, traffic or times. Pages change launches and what the executor counts; traffic is
/// that of the keys, wherever they lie, without tables. `memo` keeps what several explanations
/// share; may be null.
[[nodiscard]] Explanation explain(const KernelInfo& kernel, const Problem& problem,
                                  const Plan& plan, const GpuModel& gpu, TraceMemo* memo = nullptr,
                                  const Paging& paging = {});

/// A sentence when the device lacks what the kernel takes, or empty. Nothing runs.
[[nodiscard]] std::string why_not_run(const KernelInfo& kernel, const Problem& problem,
                                      const Plan& plan, const GpuModel& gpu,
                                      const Paging& paging = {});

/// The explanation for people, and as a JSON object.
[[nodiscard]] std::string explanation_text(const Explanation& explanation);
[[nodiscard]] Json explanation_json(const Explanation& explanation);

/// The floor that is largest, in words.
[[nodiscard]] std::string_view largest_floor(const TimeFloors& floors);

}  // namespace attest
