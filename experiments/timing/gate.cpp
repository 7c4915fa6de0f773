#include "experiments/timing/gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/base/on_threads.hpp"
#include "core/run/registry.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

std::string key_of(const KernelInfo& kernel, const Case& c) {
  return fmt::format("{} {}", name_of(kernel.executor), to_string(c));
}

/// What a library computes changes without our build: its verdicts are not kept.
bool is_of_library(const KernelInfo& kernel) {
  return kernel.executor == Executor::gpu && kernel.unavailable &&
         find_kernel(kernel.name, Executor::simt) == nullptr;
}

/// One past `tiles` tiles, and no longer than the problem.
std::int64_t short_length(std::int64_t tile, std::int64_t tiles, std::int64_t length) {
  constexpr std::int64_t usual_tile = 64;  // of Plans that name none
  return std::min(length, tiles * (tile > 0 ? tile : usual_tile) + 1);
}

}  // namespace

bool Gate::has_no_small_case(const Candidate& candidate) {
  return why_unsupported(*candidate.kernel, small_case(candidate)).has_value();
}

std::optional<std::string> Gate::judged_now(CaseRunner& runner, const KernelInfo& kernel,
                                            const Case& c) {
  auto why = why_case_fails(runner, kernel, c);
  if (!why && cache_ != nullptr && !is_of_library(kernel)) cache_->add(kernel, c);
  return why;
}

void Gate::judge(const std::vector<Candidate>& candidates, const Options& options) {
  std::map<std::string, std::pair<const KernelInfo*, Case>> waiting;
  for (const Candidate& candidate : candidates) {
    Case c = small_case(candidate);
    const KernelInfo& kernel = *candidate.kernel;
    if (kernel.role == KernelRole::limit) continue;
    if (why_unsupported(kernel, c) || (cache_ != nullptr && cache_->holds(kernel, c))) continue;
    const std::string key = key_of(kernel, c);
    if (!answers_.contains(key)) waiting.try_emplace(key, &kernel, std::move(c));
  }
  const std::vector cases(waiting.begin(), waiting.end());
  if (options.on_start) options.on_start(cases.size());
  on_threads(cases.size(), options.jobs, [&] {
    return [&, runner = std::shared_ptr<CaseRunner>(make_runner_())](std::size_t i) {
      if (options.is_interrupted && options.is_interrupted()) throw Interrupted{};
      const auto& [key, subject] = cases[i];
      auto why = judged_now(*runner, *subject.first, subject.second);
      {
        const std::scoped_lock lock(mutex_);
        answers_[key] = std::move(why);
      }
      if (options.on_case_done) options.on_case_done();
    };
  });
}

std::optional<std::string> Gate::why_wrong(const Candidate& candidate) {
  const KernelInfo& kernel = *candidate.kernel;
  if (kernel.role == KernelRole::limit) return {};
  const Case c = small_case(candidate);
  const std::string key = key_of(kernel, c);
  const std::scoped_lock lock(mutex_);
  const auto found = answers_.find(key);
  if (found != answers_.end()) return found->second;
  if (why_unsupported(kernel, c) || (cache_ != nullptr && cache_->holds(kernel, c))) return {};
  if (runner_ == nullptr) runner_ = make_runner_();
  return answers_[key] = judged_now(*runner_, kernel, c);
}

Case small_case(const Gate::Candidate& candidate) {
  constexpr std::int64_t most_heads = 8;
  const Problem& problem = candidate.problem;
  const Plan& plan = candidate.plan;
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  Case c{.kernel = candidate.kernel->name, .problem = problem, .plan = plan, .inputs = {.seed = 1}};
  c.layouts.paging = candidate.paging;
  Problem& small = c.problem;
  small.batch = problem.length_seed == 0 ? 1 : std::min<std::int64_t>(problem.batch, 4);
  small.kv_heads = std::min<std::int64_t>(problem.kv_heads, group == 1 ? 2 : 1);
  small.query_heads = small.kv_heads * group;
  // Rings of stages wrap within four key tiles; many heads need fewer rows.
  small.query_len = short_length(plan.query_tile, group > most_heads ? 1 : 2, problem.query_len);
  small.key_len = short_length(plan.key_tile, 4, problem.key_len);
  small.shared_keys = std::min(problem.shared_keys, small.key_len);
  small.window = {short_length(plan.key_tile, 1, problem.window.left),
                  short_length(plan.key_tile, 1, problem.window.right)};
  return c;
}

std::optional<std::string> why_case_fails(CaseRunner& runner, const KernelInfo& kernel,
                                          const Case& c) {
  const CaseVerdict verdict =
      runner.run(kernel, {.executor = kernel.executor, .the_case = c}).verdict;
  if (verdict.verdict == Verdict::passed || verdict.verdict == Verdict::unsupported) return {};
  std::string why = fmt::format("{} on {}", name_of(verdict.verdict), to_string(c.problem));
  if (verdict.failure) {
    why += fmt::format(": {}: {}", verdict.failure->law, verdict.failure->check.detail);
  }
  return why;
}

}  // namespace attest
