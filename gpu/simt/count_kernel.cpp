#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

/// Lengths up to this one are run as they are.
constexpr std::int64_t short_len = 128;

/// A problem as a function of its number of whole steps, the rest of its lengths held fixed.
struct Family {
  std::function<Problem(std::int64_t steps)> problem;
  std::int64_t steps = 0;  ///< of the problem in question
};

/// Query heads that share tiles, and so what they read.
std::int64_t packed_heads(const Problem& problem, const Plan& plan) {
  return plan.pack_gqa == PackGqa::yes ? problem.query_heads / problem.kv_heads : 1;
}

/// `group` query heads of one key head. Along which length counts are continued: both, if they are
/// equal; else the long one.
std::optional<Family> family_of(const Problem& problem, std::int64_t step, std::int64_t group) {
  const bool grows_queries = problem.query_len > short_len || problem.query_len == problem.key_len;
  const bool grows_keys = problem.key_len > short_len || problem.query_len == problem.key_len;
  if (grows_queries && grows_keys && problem.query_len != problem.key_len) return std::nullopt;
  const std::int64_t len = grows_queries ? problem.query_len : problem.key_len;
  Family family;
  family.steps = len / step;
  family.problem = [=, rest = len % step](std::int64_t steps) {
    Problem p = problem;
    p.batch = p.kv_heads = 1;
    p.query_heads = group;
    if (grows_queries) p.query_len = steps * step + rest;
    if (grows_keys) p.key_len = steps * step + rest;
    p.shared_keys = std::min(p.shared_keys, p.key_len);
    return p;
  };
  return family;
}

/// Whole tiles, and whole warps of loops over rows.
std::int64_t step_of(const Plan& plan) {
  constexpr std::int64_t warp = 32, at_least = 1;
  return std::lcm(warp,
                  std::lcm(std::max(at_least, plan.query_tile), std::max(at_least, plan.key_tile)));
}

/// Every count of a trace, in a fixed order.
void visit_counts(std::vector<KernelTrace>& traces,
                  const std::function<void(std::int64_t&)>& visit) {
  for (KernelTrace& trace : traces) {
    for (std::int64_t* count : {&trace.launches, &trace.blocks, &trace.warps, &trace.barriers,
                                &trace.warp_operations, &trace.fmas})
      visit(*count);
    for (AccessSite& site : trace.sites)
      for (const auto member : access_count_members()) visit(site.counts.*member);
  }
}

std::vector<std::int64_t> counts_of(std::vector<KernelTrace> traces) {
  std::vector<std::int64_t> counts;
  visit_counts(traces, [&](std::int64_t& count) { counts.push_back(count); });
  return counts;
}

bool have_same_sites(const std::vector<KernelTrace>& a, const std::vector<KernelTrace>& b) {
  const auto same_site = [](const AccessSite& x, const AccessSite& y) {
    return x.point == y.point && x.space == y.space && x.access_bytes == y.access_bytes;
  };
  return std::ranges::equal(a, b, [&](const KernelTrace& x, const KernelTrace& y) {
    return x.configuration.kernel == y.configuration.kernel &&
           std::ranges::equal(x.sites, y.sites, same_site);
  });
}

/// The quadratic through three values one step apart, `n` steps after the first [Newton's forward
/// differences]. Exact: n (n - 1) is even.
std::int64_t continued(const std::array<std::int64_t, 3>& f, std::int64_t n) {
  return f[0] + n * (f[1] - f[0]) + n * (n - 1) / 2 * (f[2] - 2 * f[1] + f[0]);
}

/// Counts of an instruction that its lanes run `lane_accesses` times, all else as it was in
/// `sample`.
AccessCounts in_proportion(const AccessCounts& sample, std::int64_t lane_accesses) {
  const double factor = sample.lane_accesses == 0 ? 0.0
                                                  : static_cast<double>(lane_accesses) /
                                                        static_cast<double>(sample.lane_accesses);
  AccessCounts counts;
  for (const auto member : access_count_members()) {
    counts.*member = std::llround(factor * static_cast<double>(sample.*member));
  }
  counts.lane_accesses = lane_accesses;
  return counts;
}

/// Samples at four consecutive numbers of steps.
struct Samples {
  std::int64_t first = 0;
  std::array<std::vector<KernelTrace>, 4> traces;

  /// Each count continued on its own. Nothing when some instruction runs at one length only.
  [[nodiscard]] std::optional<std::vector<KernelTrace>> quadratic(std::int64_t steps) const {
    std::array<std::vector<std::int64_t>, 3> counts;
    for (std::size_t i = 0; i < 3; ++i) {
      if (!have_same_sites(traces[i], traces[3])) return std::nullopt;
      counts[i] = counts_of(traces[i]);
    }
    std::vector<KernelTrace> result = traces[3];
    std::size_t i = 0;
    visit_counts(result, [&](std::int64_t& count) {
      count = continued({counts[0][i], counts[1][i], counts[2][i]}, steps - first);
      ++i;
    });
    return result;
  }
  /// Counts at so many steps, but for instructions of which some count is no quadratic. Whether
  /// lanes meet in a request may depend on the values: one request more in one sample would become
  /// thousands, and counts of one instruction would contradict each other. Only how often lanes run
  /// it is continued then.
  [[nodiscard]] std::optional<std::vector<KernelTrace>> at(std::int64_t steps) const {
    const auto expected = quadratic(first + 3);
    auto result = quadratic(steps);
    if (!expected || !result) return std::nullopt;
    for (std::size_t k = 0; k < result->size(); ++k) {
      for (std::size_t s = 0; s < (*result)[k].sites.size(); ++s) {
        const AccessCounts& last = traces[3][k].sites[s].counts;
        if (last == (*expected)[k].sites[s].counts) continue;
        AccessCounts& counts = (*result)[k].sites[s].counts;
        counts = in_proportion(last, counts.lane_accesses);
      }
    }
    return result;
  }
  /// Distance of the last sample from what the others say of it, over all counts, relative to them;
  /// infinite where quadratic() has nothing.
  [[nodiscard]] double disagreement() const {
    const auto expected = quadratic(first + 3);
    if (!expected) return std::numeric_limits<double>::infinity();
    const std::vector<std::int64_t> want = counts_of(*expected), got = counts_of(traces[3]);
    std::int64_t apart = 0, all = 1;
    for (std::size_t i = 0; i < got.size(); ++i) {
      apart += std::abs(got[i] - want[i]);
      all += got[i];
    }
    return static_cast<double>(apart) / static_cast<double>(all);
  }
};

void multiply(std::vector<KernelTrace>& traces, std::int64_t heads) {
  visit_counts(traces, [&](std::int64_t& count) { count *= heads; });
}

/// Launches of the whole problem are known; what is sampled is what happens inside.
void take_configurations(std::vector<KernelTrace>& traces,
                         const std::vector<LaunchConfiguration>& launches) {
  for (KernelTrace& trace : traces) {
    trace.launches = 0;
    trace.blocks = 0;
    for (const LaunchConfiguration& launch : launches) {
      if (launch.kernel != trace.configuration.kernel) continue;
      if (trace.launches++ == 0) trace.configuration = launch;
      trace.blocks += launch.grid.count();
    }
    const std::int64_t warps = (trace.configuration.block.count() + 31) / 32;
    trace.warps = trace.blocks * warps;
  }
}

}  // namespace

ProblemCounters count_kernel(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                             TraceMemo* memo, const LaunchSetting& setting) {
  const std::vector<LaunchConfiguration> launches =
      observe_launches(kernel, problem, plan, setting);
  const std::int64_t step = step_of(plan), group = packed_heads(problem, plan);
  const std::optional<Family> family = family_of(problem, step, group);
  if (!family)
    throw InvalidInput(fmt::format(
        "counters of query_len {} and key_len {}; allowed: equal lengths, or one of at most {}",
        problem.query_len, problem.key_len, short_len));
  const auto trace = [&](std::int64_t steps) {
    const Problem sample = family->problem(steps);
    const auto run = [&] { return trace_kernel(kernel, sample, plan, {}, setting.paging); };
    if (memo == nullptr) return run();
    return memo->get(fmt::format("{} | {} | {} | {}", kernel.name, to_string(sample),
                                 to_string(plan), to_string(setting.paging)),
                     run);
  };

  const std::string heads =
      group == 1 ? "one head" : fmt::format("one head of K and V with its {} of Q", group);
  ProblemCounters counters;
  constexpr std::int64_t last_first = 3;
  if (family->steps <= last_first) {
    counters.kernels = trace(family->steps);
    counters.is_exact = true;
    counters.basis = fmt::format("{} was run at full length", heads);
  } else {
    Samples samples;
    double disagreement = 0;
    for (samples.first = 1;; ++samples.first) {
      for (std::int64_t i = 0; i < 4; ++i) {
        auto& sample = samples.traces[static_cast<std::size_t>(i)];
        if (samples.first > 1 && i < 3)
          sample = samples.traces[static_cast<std::size_t>(i + 1)];
        else
          sample = trace(samples.first + i);
      }
      disagreement = samples.disagreement();
      counters.is_exact = disagreement == 0;
      if (counters.is_exact || samples.first == last_first) break;
    }
    const Problem shortest = family->problem(samples.first),
                  longest = family->problem(samples.first + 3);
    auto whole = samples.at(family->steps);
    if (!whole) {
      throw InvalidInput(fmt::format(
          "which instructions run differs between {} and {}, and in an unknown way at {}",
          to_string(shortest), to_string(longest), to_string(problem)));
    }
    counters.kernels = std::move(*whole);
    counters.basis = fmt::format(
        "{} was run at 4 lengths, {} to {}, each continued as a quadratic in steps of {}; {}",
        heads, std::max(shortest.query_len, shortest.key_len),
        std::max(longest.query_len, longest.key_len), step,
        counters.is_exact ? "the last run agreed in every count"
                          : fmt::format("the last run differed by {:.2g} % of what it counted",
                                        100 * disagreement));
  }
  multiply(counters.kernels, problem.batch * problem.query_heads / group);
  take_configurations(counters.kernels, launches);
  return counters;
}

}  // namespace attest
