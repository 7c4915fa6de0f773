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

TimedProblem& BenchmarkRunner::timed(const BenchmarkPoint& point) {
  const bool is_here = timed_ != nullptr && timed_on_ == point.kernel->executor &&
                       timed_->problem() == point.problem;
  if (!is_here) {
    timed_ = nullptr;  // before the next one needs the memory
    timed_ = std::make_unique<TimedProblem>(point.problem, InputSpec{},
                                            devices_(point.kernel->executor));
    timed_on_ = point.kernel->executor;
  }
  return *timed_;
}

std::optional<std::string> BenchmarkRunner::why_wrong(const BenchmarkPoint& point) {
  if (auto why = gate_.why_wrong({point.kernel, point.problem, point.plan})) return why;
  ResidentProblem& resident = timed(point).resident();
  resident.put_values(0);
  return resident.sample(*point.kernel, point.plan).why_wrong();
}

void BenchmarkRunner::refuse(const BenchmarkPoint& point, std::string why) {
  why_wrong_[point.name()] = std::move(why);
  ++refused_;
}

std::optional<std::int64_t> BenchmarkRunner::prepare(const BenchmarkPoint& point,
                                                     std::string& why) {
  if (is_interrupted_()) {
    why = "interrupted";
    return std::nullopt;
  }
  if (why_wrong_.try_emplace(point.name()).second) {
    if (auto wrong = why_wrong(point)) refuse(point, "it is wrong: " + *wrong);
  }
  if (const auto& wrong = why_wrong_[point.name()]) {
    why = "not timed, because " + *wrong;
    return std::nullopt;
  }
  return timed(point).launches(*point.kernel, point.plan);
}

double BenchmarkRunner::time_s(const BenchmarkPoint& point, std::int64_t launches) {
  timed(point).change_values();
  const auto count = static_cast<int>(launches);
  return timed(point).time_ms(*point.kernel, point.plan, count) * 1e-3 *
         static_cast<double>(launches);
}

bool BenchmarkRunner::keeps_its_answers(const BenchmarkPoint& point, std::string& why) {
  auto wrong = timed(point).why_timed_answers_wrong(*point.kernel, point.plan);
  if (!wrong) return true;
  why = *wrong;
  refuse(point, *std::move(wrong));
  return false;
}

}  // namespace attest
