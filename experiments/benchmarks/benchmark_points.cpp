#include "experiments/benchmarks/benchmark_points.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/base/error.hpp"
#include "core/run/asked_paging.hpp"
#include "core/run/default_plan.hpp"
#include "experiments/timing/sampled_rows.hpp"

namespace attest {

namespace {

/// Throws InvalidInput for pages that nothing timed knows: as in studies, no pool has room for both
/// K and V, and nothing is asked of what no key uses.
void require_timed(const Paging& paging) {
  if (!paging.joins_kv && paging.unused == Unused::nan) return;
  throw InvalidInput(
      fmt::format("--layouts '{}': K and V in one pool, and what lies where no key does, are not "
                  "timed; allowed: page size, csr, shared, shuffled, spare, columns",
                  to_string(paging)));
}

}  // namespace

std::string BenchmarkPoint::name() const {
  return fmt::format(
      "{}{}/{}{}{}{}", kernel->name,
      kernel->executor == Executor::gpu ? "" : fmt::format(" on {}", name_of(kernel->executor)),
      to_string(problem), paging.is_used() ? " " + to_string(paging) : "",
      plan == Plan{} ? "" : "/", plan == Plan{} ? "" : to_string(plan));
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
                                 const std::vector<Problem>& problems, std::string_view gpu,
                                 const std::optional<Paging>& paging) {
  if (paging) require_timed(*paging);
  BenchmarkPoints result;
  for (const Problem& problem : problems) {
    for (const KernelInfo* const kernel : kernels) {
      if (kernel->role != KernelRole::kernel) continue;
      const auto choice = default_plan(*kernel, problem, gpu);
      Case c{.kernel = kernel->name, .problem = problem};
      c.layouts.paging = paging.value_or(default_paging(*kernel));
      validate(c.layouts.paging, problem);
      if (choice) c.plan = choice->plan;
      const auto why = choice ? why_unsupported(*kernel, c)
                              : fmt::format("{}: no plan for this problem", kernel->name);
      if (why) {
        if (result.left_out++ == 0) {
          result.why_left_out = fmt::format("{} ({})", *why, to_string(problem));
        }
        continue;
      }
      result.points.push_back({kernel, problem, c.plan, c.layouts.paging});
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
                       timed_->problem() == point.problem && timed_->paging() == point.paging;
  if (!is_here) {
    timed_ = nullptr;  // before the next one needs the memory
    timed_ =
        std::make_unique<TimedProblem>(point.problem, InputSpec{}, devices_(point.kernel->executor),
                                       TimedProblem::Options{.paging = point.paging});
    timed_on_ = point.kernel->executor;
  }
  return *timed_;
}

std::optional<std::string> BenchmarkRunner::why_wrong(const BenchmarkPoint& point) {
  if (auto why = gate_.why_wrong({point.kernel, point.problem, point.plan, point.paging}))
    return why;
  ResidentProblem& resident = timed(point).resident();
  resident.put_values(0);
  return why_launch_wrong(resident, *point.kernel, point.plan);
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
