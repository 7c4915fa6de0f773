#include "experiments/study/gate.hpp"

#include <fmt/format.h>

#include <utility>

#include "core/run/registry.hpp"
#include "experiments/study/on_threads.hpp"
#include "experiments/tuning/small_case.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

Case small_case_of(const Contender& contender) {
  return small_case(*contender.kernel, contender.subject.problem, contender.subject.plan);
}

std::string key_of(const Contender& contender, const Case& c) {
  return fmt::format("{} {}", name_of(contender.kernel->executor), to_string(c));
}

/// What a library computes changes without our build: its verdicts are not kept.
bool is_of_library(const KernelInfo& kernel) {
  return kernel.executor == Executor::gpu && kernel.unavailable &&
         find_kernel(kernel.name, Executor::simt) == nullptr;
}

}  // namespace

bool Gate::has_no_small_case(const Contender& contender) {
  return why_unsupported(*contender.kernel, small_case_of(contender)).has_value();
}

void Gate::judge(const std::vector<const Contender*>& contenders, const Options& options) {
  std::map<std::string, const Contender*> waiting;
  for (const Contender* const contender : contenders) {
    const Case c = small_case_of(*contender);
    if (why_unsupported(*contender->kernel, c) || cache_.holds(*contender->kernel, c)) continue;
    const std::string key = key_of(*contender, c);
    if (!answers_.contains(key)) waiting.try_emplace(key, contender);
  }
  std::vector<std::pair<std::string, const Contender*>> cases(waiting.begin(), waiting.end());
  if (options.on_start) options.on_start(cases.size());
  on_threads(cases.size(), options.jobs, [&] {
    return [&, runner = std::shared_ptr<CaseRunner>(options.make_runner())](std::size_t i) {
      if (options.is_interrupted && options.is_interrupted()) throw Interrupted{};
      const auto& [key, contender] = cases[i];
      const Case c = small_case_of(*contender);
      auto why = why_case_fails(*runner, *contender->kernel, c);
      if (!why && !is_of_library(*contender->kernel)) cache_.add(*contender->kernel, c);
      {
        const std::scoped_lock lock(mutex_);
        answers_[key] = std::move(why);
      }
      if (options.on_case_done) options.on_case_done();
    };
  });
}

std::optional<std::string> Gate::why_wrong(const Contender& contender) const {
  const Case c = small_case_of(contender);
  const auto found = answers_.find(key_of(contender, c));
  if (found != answers_.end()) return found->second;
  if (cache_.holds(*contender.kernel, c) || has_no_small_case(contender)) return std::nullopt;
  return "it was not judged";
}

}  // namespace attest
