#include "experiments/benchmarks/benchmark_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/run/default_plan.hpp"

namespace attest {

std::string BenchmarkPoint::name() const {
  return fmt::format(
      "{}{}/{}{}{}", kernel->name,
      kernel->executor == Executor::gpu ? "" : fmt::format(" on {}", name_of(kernel->executor)),
      to_string(problem), plan == Plan{} ? "" : "/", plan == Plan{} ? "" : to_string(plan));
}

std::string BenchmarkPoint::label() const {
  switch (kernel->executor) {
    case Executor::gpu:
      return "";
    case Executor::simt:
      return "time of the host that simulates a GPU";
    case Executor::cpu:
      break;
  }
  return "time of the host";
}

BenchmarkPoints benchmark_points(const std::vector<const KernelInfo*>& kernels,
                                 const std::vector<Problem>& problems, std::string_view gpu) {
  BenchmarkPoints result;
  for (const Problem& problem : problems) {
    for (const KernelInfo* const kernel : kernels) {
      if (kernel->role != KernelRole::kernel) continue;
      const auto choice = default_plan(*kernel, problem, gpu);
      if (!choice || why_unsupported(*kernel, problem, choice->plan)) {
        ++result.left_out;
        continue;
      }
      result.points.push_back({kernel, problem, choice->plan});
    }
  }
  return result;
}

std::optional<std::string> why_not_benchmarked(const Provenance& build) {
  if (!build.sanitizers.empty()) {
    return fmt::format("bench times Release builds only; this one has sanitizers: {}",
                       build.sanitizers);
  }
  if (build.build_type != "Release") {
    return fmt::format("bench times Release builds only; this one is '{}'", build.build_type);
  }
  return std::nullopt;
}

ResidentProblem& BenchmarkRunner::resident(const BenchmarkPoint& point) {
  const bool is_here = resident_ != nullptr && resident_on_ == point.kernel->executor &&
                       to_string(resident_->problem()) == to_string(point.problem);
  if (!is_here) {
    resident_ = nullptr;  // before the next one needs the memory
    resident_ = std::make_unique<ResidentProblem>(point.problem, InputSpec{},
                                                  devices_(point.kernel->executor));
    resident_on_ = point.kernel->executor;
  }
  return *resident_;
}

std::optional<std::string> BenchmarkRunner::why_wrong(const BenchmarkPoint& point) {
  if (auto reason = small_cases_.why_wrong(*point.kernel, point.problem, point.plan)) return reason;
  return resident(point).sample(*point.kernel, point.plan).why_wrong();
}

std::optional<std::int64_t> BenchmarkRunner::prepare(const BenchmarkPoint& point,
                                                     std::string& why) {
  if (is_interrupted_()) {
    why = "interrupted";
    return std::nullopt;
  }
  const auto [at, is_new] = judged_.try_emplace(point.name());
  Judged& judged = at->second;
  if (is_new) {
    judged.why_wrong = why_wrong(point);
    if (judged.why_wrong) ++refused_;
  }
  if (judged.why_wrong) {
    why = "not timed, because it is wrong: " + *judged.why_wrong;
    return std::nullopt;
  }
  if (judged.launches == 0) {
    constexpr double shortest_s = 2e-3;  // far above the clock's half microsecond
    (void)time_s(point, 1);
    judged.launches = static_cast<std::int64_t>(
        std::max(1.0, std::ceil(shortest_s / std::max(time_s(point, 1), 1e-6))));
  }
  return judged.launches;
}

double BenchmarkRunner::time_s(const BenchmarkPoint& point, std::int64_t launches) {
  const auto count = static_cast<int>(launches);
  return resident(point).time_ms(*point.kernel, point.plan, count) * 1e-3 *
         static_cast<double>(launches);
}

}  // namespace attest
