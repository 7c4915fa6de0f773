#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/records/provenance.hpp"
#include "core/run/kernel.hpp"
#include "experiments/timing/gate.hpp"
#include "experiments/timing/timed_problem.hpp"

namespace attest {

/// A kernel with its default Plan on a problem.
struct BenchmarkPoint {
  const KernelInfo* kernel = nullptr;
  Problem problem{};
  Plan plan{};
  Paging paging{};  ///< of K and V

  /// `fa2_mma/b1 h2/2 q256 k256 d64 none bf16/qt128,kt64`; kernels that do not run on a GPU with
  /// their executor.
  [[nodiscard]] std::string name() const;
  /// Whose time it is, where it is not a GPU's.
  [[nodiscard]] std::string label() const;
};

struct BenchmarkPoints {
  std::vector<BenchmarkPoint> points;
  std::size_t left_out = 0;    ///< pairs that a kernel does not run
  std::string why_left_out{};  ///< of the first of them
};

/// Every kernel on every problem that it runs, with its default Plan for `gpu` (a description or
/// a name), K and V in these pages; nothing: as default_paging() says. Throws InvalidInput for
/// pages that a problem cannot have, or that are not timed. Kernels that are wrong by design are no
/// kernels here.
[[nodiscard]] BenchmarkPoints benchmark_points(const std::vector<const KernelInfo*>& kernels,
                                               const std::vector<Problem>& problems,
                                               std::string_view gpu,
                                               const std::optional<Paging>& paging = {});

/// A sentence why this build may not time anything: it is not optimised, or a sanitizer watches.
/// Nothing: it may.
[[nodiscard]] std::optional<std::string> why_not_benchmarked(const Provenance& build);

/// Verifies and times points, one resident problem at a time. What does not pass is never timed.
class BenchmarkRunner {
 public:
  /// All outlive it. `devices` gives the device of an executor; `is_interrupted` ends the run.
  BenchmarkRunner(std::function<Device&(Executor)> devices, Gate& gate,
                  std::function<bool()> is_interrupted)
      : devices_(std::move(devices)), gate_(gate), is_interrupted_(std::move(is_interrupted)) {}

  /// Number of launches that fill about two milliseconds; nothing: the point may not be timed, and
  /// `why` says why. A verdict holds for the run.
  [[nodiscard]] std::optional<std::int64_t> prepare(const BenchmarkPoint& point, std::string& why);
  /// Seconds of so many launches in a row, on other values than the call before had. Throws like
  /// Device::time_ms.
  [[nodiscard]] double time_s(const BenchmarkPoint& point, std::int64_t launches);
  /// True if the answers of one timing more, after a measurement, are right; otherwise `why` says
  /// why not.
  [[nodiscard]] bool keeps_its_answers(const BenchmarkPoint& point, std::string& why);

  /// Points that were refused because they are wrong, or failed.
  [[nodiscard]] std::size_t refused() const { return refused_; }

 private:
  [[nodiscard]] TimedProblem& timed(const BenchmarkPoint& point);
  [[nodiscard]] std::optional<std::string> why_wrong(const BenchmarkPoint& point);
  void refuse(const BenchmarkPoint& point, std::string why);

  std::function<Device&(Executor)> devices_;
  Gate& gate_;
  std::function<bool()> is_interrupted_;
  std::map<std::string, std::optional<std::string>> why_wrong_;  ///< by name of the point
  std::unique_ptr<TimedProblem> timed_;
  Executor timed_on_ = Executor::cpu;
  std::size_t refused_ = 0;
};

}  // namespace attest
