#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "core/run/launch_trace.hpp"
#include "experiments/study/language/parse_study.hpp"
#include "gpu/model/device_table.hpp"

namespace attest {

/// One measurement that a study asks for.
struct Point {
  /// A baseline at this point: the same problem and inputs.
  struct BaselineCase {
    std::string name;  ///< of the baseline
    const KernelInfo* kernel = nullptr;
    Case subject{};
  };
  const KernelInfo* kernel = nullptr;     ///< on the executor where it runs
  Case subject{};                         ///< kernel, problem, plan, inputs with their seed
  AxisValues axes{};                      ///< what varies in the study: `problem.length` is 512
  std::vector<BaselineCase> baselines{};  ///< those that can run here
};

/// 16 hexadecimal digits of kernel, executor, problem, Plan, paging, inputs and seed: the same for
/// the same question in every version of the study's file.
[[nodiscard]] std::string point_id(const KernelInfo& kernel, const Case& subject);

/// Point or baseline that the file asks for and that is not run, with the reason.
struct Skipped {
  enum class By { kernel, constraint, sampling };
  By by = By::kernel;
  std::string what;    ///< kernel, problem and Plan, or `baseline NAME` and the point
  std::string reason;  ///< one sentence, the same for points that are skipped for the same reason
  AxisValues axes{};
};
[[nodiscard]] std::string_view name_of(Skipped::By by);

/// The launches of a kernel of the SIMT executor (observe_launches).
using LaunchesOf = std::function<std::vector<LaunchConfiguration>(
    const KernelInfo&, const Problem&, const Plan&, const LaunchSetting&)>;

/// Machine for which a study is expanded.
struct ExpansionContext {
  const GpuModel* gpu = nullptr;  ///< its limits, and its rows in the table of tuned Plans
  std::string gpu_description{};  ///< of the one that runs here; empty: gpu->driver_name
  bool has_gpu = false;           ///< auto is the GPU; otherwise the SIMT executor
  /// Empty: shared_bytes and its like are not known.
  LaunchesOf launches_of{};
};

/// Points of a study, and what its file asks for besides.
struct Expansion {
  std::vector<Point> points;  ///< in the order of the file: kernels, problems, plans, inputs, seeds
  std::vector<Skipped> skipped;
};
/// Throws MachineError when the study names an executor that this machine lacks, InvalidInput when
/// the grid is too large to expand.
[[nodiscard]] Expansion expand(const StudySpec& spec, const ExpansionContext& context);

/// Least work of a GPU for one launch of every point and baseline.
struct EstimatedWork {
  double flops = 0;
  double seconds = 0;  ///< at the peaks of the model
};
[[nodiscard]] EstimatedWork estimated_work(const Expansion& expansion, const GpuModel& gpu);

}  // namespace attest
