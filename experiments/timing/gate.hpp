#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/run/kernel.hpp"
#include "experiments/timing/verified_cache.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {
/// Nothing passes that does not fulfil all laws on a small problem of its kind (small_case). What
/// gives no answer (KernelRole::limit) is asked for none.
class Gate {
 public:
  /// A kernel with a Plan that shall be timed on a problem.
  struct Candidate {
    const KernelInfo* kernel = nullptr;
    Problem problem{};
    Plan plan{};
    Paging paging{};
  };
  /// Way to judge many cases, and who is told of it.
  struct Options {
    std::size_t jobs = 1;  ///< cases that are judged at a time
    std::function<bool()> is_interrupted{};
    std::function<void(std::size_t cases)> on_start{};  ///< how many are not in the cache
    std::function<void()> on_case_done{};               ///< called from any thread
  };

  /// `make_runner` is called from any thread. What is in `cache` has passed; it may be null, and
  /// outlives the gate.
  explicit Gate(std::function<std::unique_ptr<CaseRunner>()> make_runner,
                VerifiedCache* cache = nullptr)
      : make_runner_(std::move(make_runner)), cache_(cache) {}

  /// Judges the small cases of `candidates`, each once. Throws Interrupted when asked to end, with
  /// what was judged kept.
  void judge(const std::vector<Candidate>& candidates, const Options& options);

  /// The law that a candidate breaks and how, or nothing; judged now where it was not before.
  [[nodiscard]] std::optional<std::string> why_wrong(const Candidate& candidate);
  /// The kernel runs no problem of the kind that is small enough for all laws.
  [[nodiscard]] static bool has_no_small_case(const Candidate& candidate);
  /// Cases that were judged here, the cached ones not among them.
  [[nodiscard]] std::size_t judged() const { return answers_.size(); }

 private:
  [[nodiscard]] std::optional<std::string> judged_now(CaseRunner& runner, const KernelInfo& kernel,
                                                      const Case& c);

  std::function<std::unique_ptr<CaseRunner>()> make_runner_;
  VerifiedCache* cache_;
  std::mutex mutex_;
  std::map<std::string, std::optional<std::string>> answers_;  ///< by executor and case
  std::unique_ptr<CaseRunner> runner_;                         ///< for questions that come late
};

/// A problem of the same kind, with few heads and with lengths that end one past a tile of the
/// Plan: small enough for all laws, the same for all lengths of a suite.
[[nodiscard]] Case small_case(const Gate::Candidate& candidate);

/// The law that the case breaks and how; nothing when it passes. The kernel supports it.
[[nodiscard]] std::optional<std::string> why_case_fails(CaseRunner& runner,
                                                        const KernelInfo& kernel, const Case& c);

}  // namespace attest
