#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "experiments/study/schedule.hpp"
#include "experiments/study/verified_cache.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// Nothing passes that does not fulfil all laws on a small problem of its kind (small_case).
class Gate {
 public:
  struct Options {
    std::function<std::unique_ptr<CaseRunner>()> make_runner;  ///< called from any thread
    std::size_t jobs = 1;                                      ///< cases that are judged at a time
    std::function<bool()> is_interrupted{};
    std::function<void(std::size_t cases)> on_start{};  ///< how many are not in the cache
    std::function<void()> on_case_done{};               ///< called from any thread
  };
  explicit Gate(VerifiedCache& cache) : cache_(cache) {}

  /// Judges the small cases of `contenders`, each once; those in the cache have passed. Throws
  /// Interrupted when asked to end, with what was judged kept.
  void judge(const std::vector<const Contender*>& contenders, const Options& options);

  /// Of a contender that was judged: the law that it breaks and how, or nothing.
  [[nodiscard]] std::optional<std::string> why_wrong(const Contender& contender) const;
  /// The kernel runs no problem of the kind that is small enough for all laws.
  [[nodiscard]] static bool has_no_small_case(const Contender& contender);
  /// Cases that were judged here, the cached ones not among them.
  [[nodiscard]] std::size_t judged() const { return answers_.size(); }

 private:
  VerifiedCache& cache_;
  std::mutex mutex_;
  std::map<std::string, std::optional<std::string>> answers_;  ///< by executor and case
};

}  // namespace attest
