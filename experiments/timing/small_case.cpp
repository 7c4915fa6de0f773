#include "experiments/timing/small_case.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

/// One past `tiles` tiles, and no longer than the problem.
std::int64_t short_length(std::int64_t tile, std::int64_t tiles, std::int64_t length) {
  constexpr std::int64_t usual_tile = 64;  // of Plans that name none
  return std::min(length, tiles * (tile > 0 ? tile : usual_tile) + 1);
}

}  // namespace

Case small_case(const KernelInfo& kernel, const Problem& problem, const Plan& plan) {
  constexpr std::int64_t most_heads = 8;
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  Case c{.kernel = kernel.name, .problem = problem, .plan = plan, .inputs = {.seed = 1}};
  Problem& small = c.problem;
  small.batch = problem.length_seed == 0 ? 1 : std::min<std::int64_t>(problem.batch, 4);
  small.kv_heads = std::min<std::int64_t>(problem.kv_heads, group == 1 ? 2 : 1);
  small.query_heads = small.kv_heads * group;
  // Rings of stages wrap within four key tiles; many heads need fewer rows.
  small.query_len = short_length(plan.query_tile, group > most_heads ? 1 : 2, problem.query_len);
  small.key_len = short_length(plan.key_tile, 4, problem.key_len);
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
