#include "verify/campaign/campaign.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <limits>
#include <mutex>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/base/on_threads.hpp"
#include "core/run/registry.hpp"
#include "verify/cases/claimed.hpp"
#include "verify/cases/shrinking.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

using Clock = std::chrono::steady_clock;

// One case in this many has a row of its reference certified: an oracle row costs about as much as
// a small case.
constexpr std::int64_t certify_every = 4;
constexpr auto checkpoint_every = std::chrono::seconds(2);

/// State shared by the threads. Turn t of all is turn t / kernels of kernel t % kernels: a time
/// limit cuts all kernels alike. The tasks of a kernel are the corpus and then the drawn cases of
/// this shard.
class Campaign {
 public:
  Campaign(const std::vector<const KernelInfo*>& kernels, const CampaignOptions& options)
      : kernels_(kernels), options_(options), results_(kernels.size()) {
    for (std::size_t k = 0; k < kernels.size(); ++k) {
      for (const KernelResult& earlier : options.resume_from) {
        if (earlier.kernel == kernels[k]) results_[k] = earlier;
      }
      results_[k].kernel = kernels[k];
    }
  }

  std::vector<KernelResult> run() {
    on_threads(static_cast<std::size_t>(jobs()), [this] { work(); });
    checkpoint();
    return std::move(results_);
  }

  KernelResult run_tasks(const Tasks& tasks, CaseRunner& runner) {
    for (std::int64_t turn = tasks.begin; turn < tasks.end && !is_over(); ++turn) {
      run_task(0, task_at(turn), runner);
    }
    return std::move(results_.front());
  }

 private:
  [[nodiscard]] int jobs() const { return std::max(1, options_.jobs); }
  [[nodiscard]] std::int64_t corpus_size() const {
    return static_cast<std::int64_t>(options_.regressions.size());
  }

  [[nodiscard]] std::int64_t total_turns() const {
    if (options_.time_limit) return std::numeric_limits<std::int64_t>::max();
    std::int64_t most = 0;
    for (const KernelInfo* kernel : kernels_) {
      most = std::max(most, cases_of_shard(*kernel, options_));
    }
    return (corpus_size() + most) * static_cast<std::int64_t>(kernels_.size());
  }

  /// The task of a kernel's turn. Without a time limit they go in their order; under one the corpus
  /// and drawn cases alternate, or the past alone would take a short limit.
  [[nodiscard]] std::int64_t task_at(std::int64_t turn) const {
    if (!options_.time_limit || turn >= 2 * corpus_size()) return turn;
    return turn % 2 == 0 ? turn / 2 : corpus_size() + turn / 2;
  }

  [[nodiscard]] bool is_interrupted() const {
    return stop_ || (options_.is_interrupted && options_.is_interrupted());
  }

  [[nodiscard]] bool is_over() const {
    return is_interrupted() ||
           (options_.time_limit && Clock::now() - start_ > *options_.time_limit);
  }

  void work() {
    try {
      const std::unique_ptr<CaseRunner> runner =
          options_.make_runner ? options_.make_runner() : std::make_unique<InProcessRunner>();
      while (!is_over()) {
        const std::int64_t turn = next_turn_++;
        if (turn >= total_turns()) break;
        const auto count = static_cast<std::int64_t>(kernels_.size());
        run_task(static_cast<std::size_t>(turn % count), task_at(turn / count), *runner);
        checkpoint_if_due();
      }
      shrink_failures(*runner);
      name_what_was_never_judged(*runner);
    } catch (const Interrupted&) {
      // The case is not done, and will be when the campaign is resumed.
    } catch (...) {
      stop_ = true;
      throw;
    }
    ++ended_threads_;
  }

  /// The index of a task: what the case is drawn from, negative for the corpus. Nothing when it
  /// belongs to another shard or is not meant for this kernel.
  [[nodiscard]] std::optional<std::int64_t> index_of(const KernelInfo& kernel,
                                                     std::int64_t task) const {
    const Shard& shard = options_.shard;
    if (task >= corpus_size()) {
      const std::int64_t index = (task - corpus_size()) * shard.count + shard.index;
      if (!options_.time_limit && index >= cases_of(kernel, options_)) return {};
      return index;
    }
    if (task % shard.count != shard.index || kernel.role != KernelRole::kernel) return {};
    return task - corpus_size();
  }

  /// Outcome of a task.
  struct Judged {
    std::optional<Case> the_case{};  ///< nothing: the kernel took none of what was drawn
    CaseAnswer answer{};
    std::int64_t drawn = 0;
    Refusals refusals{};
    PhaseTimes seconds{};  ///< of all attempts
  };

  /// A past counterexample, for kernels that take it.
  [[nodiscard]] Judged judge_regression(const KernelInfo& kernel, std::int64_t index,
                                        CaseRunner& runner) const {
    const auto at = static_cast<std::size_t>(index + corpus_size());
    const auto c = fitted_case(options_.regressions[at].the_case, kernel);
    Judged judged;
    if (c && judge(kernel, *c, index, runner, judged)) judged.the_case = c;
    return judged;
  }

  /// Draws until the kernel takes a case. What this process knows of the kernel is asked here; a
  /// plugin is asked in the worker.
  [[nodiscard]] Judged judge_drawn(const KernelInfo& kernel, std::int64_t index,
                                   CaseRunner& runner) const {
    Judged judged;
    for (std::int64_t attempt = 0; attempt < draw_attempts && !judged.the_case; ++attempt) {
      const auto before = Clock::now();
      const Case c =
          draw_attempt(kernel, draws_for(kernel), options_.seed, static_cast<std::uint64_t>(index),
                       attempt, judged.refusals.count());
      const bool is_a_case = has_inputs(c);
      const auto refusal = is_a_case ? why_refused(kernel, c) : std::nullopt;
      const std::chrono::duration<double> drawing = Clock::now() - before;
      judged.seconds[static_cast<std::size_t>(Phase::draw)] += drawing.count();
      if (!is_a_case) continue;
      ++judged.drawn;
      if (refusal) {
        judged.refusals.add(*refusal);
      } else if (judge(kernel, c, index, runner, judged)) {
        judged.the_case = c;
      } else {
        judged.refusals.add(judged.answer.verdict.reason);
      }
    }
    return judged;
  }

  /// False if the kernel refused the case where it was to run.
  bool judge(const KernelInfo& kernel, const Case& c, std::int64_t index, CaseRunner& runner,
             Judged& judged) const {
    CaseTask question{.executor = kernel.executor, .the_case = c, .laws = laws_for(kernel)};
    if (index < 0) question.laws.every_law = true;
    if (index % certify_every == 0) question.certify = static_cast<std::uint64_t>(index);
    try {
      judged.answer = runner.run(kernel, question);
    } catch (const MachineError& error) {
      throw MachineError(fmt::format("{}; case {} on {}: {}", error.what(), index,
                                     name_of(kernel.executor), to_string(c)));
    }
    for (std::size_t i = 0; i < judged.seconds.size(); ++i) {
      judged.seconds[i] += judged.answer.seconds[i];
    }
    return judged.answer.verdict.verdict != Verdict::unsupported;
  }

  void run_task(std::size_t k, std::int64_t task, CaseRunner& runner) {
    const KernelInfo& kernel = *kernels_[k];
    const std::optional<std::int64_t> index = index_of(kernel, task);
    if (!index) return;
    {
      const std::scoped_lock lock(mutex_);
      const KernelResult& result = results_[k];
      if (result.done.contains(task) || (result.failure && result.failing_case < *index)) return;
    }
    const Judged judged =
        *index < 0 ? judge_regression(kernel, *index, runner) : judge_drawn(kernel, *index, runner);
    const auto& failure = judged.answer.verdict.failure;
    const KnownFinding* known =
        failure ? known_finding(options_.known_findings, kernel, *failure, judged.answer.library)
                : nullptr;
    {
      const std::scoped_lock lock(mutex_);
      KernelResult& result = results_[k];
      result.done.insert(task);
      result.drawn += judged.drawn;
      result.refusals.add(judged.refusals);
      for (std::size_t i = 0; i < judged.seconds.size(); ++i) {
        result.seconds[i] += judged.seconds[i];
      }
      if (judged.the_case) {
        result.add(*judged.the_case, judged.answer, *index, known);
        note_what_is_mended(*index, judged.answer, result);
      } else if (*index >= 0) {
        ++result.given_up;
      }
    }
    if (options_.on_case_done && *index >= 0) options_.on_case_done(kernel);
  }

  /// A finding whose stored case a kernel passes that it is about.
  void note_what_is_mended(std::int64_t index, const CaseAnswer& answer,
                           KernelResult& result) const {
    if (index >= 0 || answer.verdict.verdict != Verdict::passed) return;
    const std::string& name =
        options_.regressions[static_cast<std::size_t>(index + corpus_size())].name;
    for (const KnownFinding& finding : options_.known_findings) {
      if (finding.stored_case != name || !matches_glob(result.kernel->name, finding.kernels))
        continue;
      result.not_reproduced[finding.id] =
          answer.library.empty() ? result.kernel->name : answer.library;
    }
  }

  /// A negative control asks whether the judge sees at all, so it draws from everything: among
  /// inputs without large logits, say, it would be right.
  [[nodiscard]] GeneratorOptions draws_for(const KernelInfo& kernel) const {
    return kernel.role == KernelRole::negative_control ? GeneratorOptions{} : options_.generator;
  }

  /// A planted bug is judged by the law that must catch it, by all if it must give no answer.
  [[nodiscard]] LawSelection laws_for(const KernelInfo& kernel) const {
    if (find_law(kernel.killed_by) == nullptr) return options_.laws;
    return {.glob = kernel.killed_by, .every_law = true};
  }

  /// Each thread takes kernels whose failure nobody shrinks yet, once all of their cases are done.
  void shrink_failures(CaseRunner& runner) {
    ++finished_threads_;
    while (!is_interrupted() && finished_threads_ + ended_threads_ < jobs()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    for (std::size_t k = next_shrink_++; k < kernels_.size() && !is_interrupted();
         k = next_shrink_++) {
      shrink_known(k, runner);
      if (!results_[k].failure || results_[k].is_shrunk) continue;
      // What depends on chance or on the calls before shrinks to anything.
      if (!results_[k].failure->repetition.empty()) continue;
      const Failure smallest =
          shrink_failure(runner, *kernels_[k], *results_[k].failure, options_.shrink, shown(k));
      {
        const std::scoped_lock lock(mutex_);
        results_[k].failure = smallest;
        results_[k].is_shrunk = true;
      }
      checkpoint();
    }
  }

  /// Shows what a shrinker does.
  [[nodiscard]] std::function<void(int)> shown(std::size_t k) const {
    return [this, k](int tried) {
      if (options_.on_shrink) options_.on_shrink(*kernels_[k], tried);
    };
  }

  /// Shrinks known findings of a kernel. A failure that is no longer the finding when it is shrunk
  /// never was.
  void shrink_known(std::size_t k, CaseRunner& runner) {
    for (const KnownFinding& finding : options_.known_findings) {
      const auto same = results_[k].known.find(finding.id);
      if (same == results_[k].known.end() || same->second.is_shrunk || is_interrupted()) continue;
      const Failure smallest =
          shrink_failure(runner, *kernels_[k], same->second.failure, options_.shrink, shown(k));
      {
        const std::scoped_lock lock(mutex_);
        results_[k].set_shrunk(finding, smallest);
      }
      checkpoint();
    }
  }

  /// Claims of the kernels without a failure, once all of their cases are done.
  void name_what_was_never_judged(CaseRunner& runner) {
    for (std::size_t k = next_claims_++; k < kernels_.size() && !is_interrupted();
         k = next_claims_++) {
      const KernelInfo& kernel = *kernels_[k];
      const KernelResult& result = results_[k];
      if (kernel.role != KernelRole::kernel || result.failure || !result.example) continue;
      runner.hurry(options_.shrink.candidate_seconds);
      std::vector<std::string> never_judged =
          claims_not_shown(kernel, *result.example, result.facts,
                           [&](const Case& c) { return takes_it(kernel, c, runner); });
      runner.hurry(0);
      const std::scoped_lock lock(mutex_);
      results_[k].never_judged = std::move(never_judged);
    }
  }

  /// True if a kernel that nothing known here speaks against takes a case. A plugin's own answer is
  /// its worker's; no law is asked, so nothing is launched.
  [[nodiscard]] static bool takes_it(const KernelInfo& kernel, const Case& c, CaseRunner& runner) {
    if (kernel.plugin.empty()) return true;
    const CaseTask question{.executor = kernel.executor, .the_case = c, .laws = {.layers = {}}};
    return runner.run(kernel, question).verdict.verdict != Verdict::unsupported;
  }

  void checkpoint_if_due() {
    auto last = last_checkpoint_.load();
    const auto now = Clock::now();
    if (now - last < checkpoint_every) return;
    if (last_checkpoint_.compare_exchange_strong(last, now)) checkpoint();
  }

  void checkpoint() {
    if (!options_.on_checkpoint) return;
    const std::scoped_lock one_at_a_time(checkpoint_mutex_);
    std::vector<KernelResult> now;
    {
      const std::scoped_lock lock(mutex_);
      now = results_;
    }
    options_.on_checkpoint(now);
  }

  const std::vector<const KernelInfo*>& kernels_;
  const CampaignOptions& options_;
  std::vector<KernelResult> results_;
  std::mutex mutex_;
  std::mutex checkpoint_mutex_;
  std::atomic<std::int64_t> next_turn_ = 0;
  std::atomic<std::size_t> next_shrink_ = 0;
  std::atomic<std::size_t> next_claims_ = 0;
  std::atomic<int> finished_threads_ = 0;
  std::atomic<int> ended_threads_ = 0;
  std::atomic<bool> stop_ = false;
  const Clock::time_point start_ = Clock::now();
  std::atomic<Clock::time_point> last_checkpoint_ = start_;
};

}  // namespace

std::int64_t cases_of(const KernelInfo& kernel, const CampaignOptions& options) {
  const std::int64_t asked =
      kernel.executor == Executor::simt ? options.cases_per_simt_kernel : options.cases_per_kernel;
  // Few cases prove nothing against the control: about one in fifteen has the logits it fails on.
  const bool is_control = kernel.role == KernelRole::negative_control;
  return is_control ? std::max(asked, thorough_cases.per_kernel) : asked;
}

std::int64_t cases_of_shard(const KernelInfo& kernel, const CampaignOptions& options) {
  const Shard& shard = options.shard;
  const std::int64_t cases = cases_of(kernel, options);
  return std::max<std::int64_t>(0, (cases - shard.index + shard.count - 1) / shard.count);
}

std::optional<std::int64_t> tasks_of(const KernelInfo& kernel, const CampaignOptions& options) {
  if (options.time_limit) return std::nullopt;
  return static_cast<std::int64_t>(options.regressions.size()) + cases_of_shard(kernel, options);
}

KernelResult judge_tasks(const KernelInfo& kernel, const CampaignOptions& options,
                         const Tasks& tasks, CaseRunner& runner) {
  return Campaign({&kernel}, options).run_tasks(tasks, runner);
}

std::vector<KernelResult> run_campaign(const std::vector<const KernelInfo*>& kernels,
                                       const CampaignOptions& options) {
  (void)all_kernels();  // sorts on first use: not something for several threads
  if (kernels.empty()) return {};
  return Campaign(kernels, options).run();
}

}  // namespace attest
