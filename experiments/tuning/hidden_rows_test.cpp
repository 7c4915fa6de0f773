// The default Plan of a problem whose own row, or whose card's rows, are hidden, against the row. A
// row holds what the winner and the runner-up of its race took; a few more Plans were timed by
// studies. Where the Plan is none of these nobody knows what it takes: it is counted, not judged.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/records/record.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

/// A Plan's text without the field that its rule does not read. Races offer such Plans twice.
std::string as_run(std::string_view text) {
  Plan plan = plan_from_string(text);
  if (plan.key_split_rule == KeySplitRule::fixed_keys) plan.key_splits = 0;
  return to_string(plan);
}

struct TimedPlan {
  std::string kernel, problem, plan;
  friend auto operator<=>(const TimedPlan&, const TimedPlan&) = default;
};
using Times = std::map<TimedPlan, double>;  // ms

/// Times of a study of one card, K and V not in pages.
Times times_in(const std::string& study) {
  Times times;
  const std::string path =
      fmt::format("{}/experiments/results/{}/records.jsonl", ATTEST_SOURCE_DIR, study);
  for (const Record& record : read_records(path).records) {
    const auto page = record.labels.find("axis.layout.page_size");
    if (!record.subject || (page != record.labels.end() && page->second != "0")) continue;
    for (const Measurement& m : record.measurements) {
      if (m.name != "time") continue;
      times[{record.subject->kernel, record.labels.at("problem"),
             as_run(record.labels.at("plan"))}] = m.value;
    }
  }
  return times;
}

/// Rate of the Plan over the row's own, at most 1; nothing where nobody knows.
std::optional<double> rate_over(const TunedPlan& row, const std::string& plan) {
  if (plan == as_run(row.plan)) return 1;
  if (!row.runner_up.empty() && plan == as_run(row.runner_up)) {
    return std::min(1.0, 1 / row.runner_up_ratio);
  }
  const auto time_in = [&](const Times& times, const std::string& which) -> std::optional<double> {
    const auto found = times.find({row.key.kernel, row.problem, which});
    return found == times.end() ? std::nullopt : std::optional(found->second);
  };
  if (row.key.gpu == "NVIDIA H200") {  // where both were timed in the same rounds
    static const Times beside_each_other = times_in("h200/studies/causal_balance");
    const auto winner = time_in(beside_each_other, as_run(row.plan)),
               other = time_in(beside_each_other, plan);
    if (winner && other) return std::min(1.0, *winner / *other);
  } else {  // on another day, in graphs, which leave 2 us of the host out: of long launches alone
    constexpr double long_ms = 0.3;
    static const Times by_themselves = times_in("h100/studies/decode_graph");
    if (const auto other = time_in(by_themselves, plan); other && row.time_ms > long_ms) {
      return std::min(1.0, row.time_ms / *other);
    }
  }
  return std::nullopt;
}

struct Judged {
  std::size_t rows = 0;                   ///< that were asked for
  std::size_t first = 0;                  ///< of them, those for which no other row says anything
  std::map<std::string, double> rates{};  ///< of those that can be judged, by problem

  [[nodiscard]] double least() const {
    double rate = 1;
    for (const auto& [problem, r] : rates) rate = std::min(rate, r);
    return rate;
  }
  [[nodiscard]] double mean() const {  // geometric
    double sum = 0;
    for (const auto& [problem, r] : rates) sum += std::log(r);
    return std::exp(sum / static_cast<double>(rates.size()));
  }
};

void judge(Judged& judged, const TunedPlan& row, const TuningTable& others) {
  const KernelInfo& kernel = *find_kernel(row.key.kernel, Executor::simt);
  const Problem problem = problem_from_string(row.problem);
  const DefaultPlan choice = *default_plan(kernel, problem, row.key.gpu, others);
  ++judged.rows;
  judged.first += choice.origin == DefaultPlan::Origin::first;
  if (const auto rate = rate_over(row, as_run(to_string(choice.plan)))) {
    judged.rates[row.problem] = *rate;
  }
}

void print(const std::string& title, const Judged& judged) {
  fmt::print(
      "{}: {} rows, {} of them by the kernel's first Plan; {} judged, at {:.4f} of the "
      "tuned rate in the geometric mean, {:.4f} at least\n",
      title, judged.rows, judged.first, judged.rates.size(), judged.mean(), judged.least());
}

constexpr double enough = 0.97;

// The rules were made on an H200.
TEST(HiddenCard, OfAnH100HasPlansByRuleThatRunAtNearlyTheTunedRate) {
  constexpr std::string_view hidden = "NVIDIA H100 80GB HBM3";
  TuningTable others = embedded_tuning_table();
  std::erase_if(others.rows, [&](const TunedPlan& row) { return row.key.gpu == hidden; });
  Judged judged;
  for (const TunedPlan& row : embedded_tuning_table().rows) {
    if (row.key.gpu == hidden) judge(judged, row, others);
  }
  print(std::string(hidden), judged);
  EXPECT_EQ(judged.rates.size(), judged.rows);
  EXPECT_GE(judged.rows, 13);
  EXPECT_GE(judged.least(), enough);
  EXPECT_GE(judged.mean(), 0.99);
}

struct HiddenRows {
  const char* kernel;
  std::size_t judged;              ///< at least
  std::set<std::string> slower{};  ///< exceptions from the law, by name
};

TEST(HiddenRow, IsAnsweredByItsNeighboursOrTheKernelAtNearlyTheTunedRate) {
  for (const HiddenRows& hidden : std::vector<HiddenRows>{
           {"fa2_mma",
            53,
            {"b1 h32/8 q1 k65536 d128 none bf16", "b1 h32/8 q1 k131072 d128 none bf16"}},
           {"fa3_wgmma",
            47,
            {"b4 h16/16 q4096 k4096 d128 causal_bottom_right fp16",
             "b1 h32/8 q1 k4096 d128 none bf16", "b64 h16/1 q1 k8192 d128 none bf16"}},
           {"fp32_wgmma", 6},
           {"k10_wide_tiles", 4}}) {
    TuningTable of_kernel = embedded_tuning_table();
    std::erase_if(of_kernel.rows,
                  [&](const TunedPlan& row) { return row.key.kernel != hidden.kernel; });
    Judged judged;
    for (const TunedPlan& row : of_kernel.rows) {
      TuningTable others = of_kernel;
      std::erase_if(others.rows, [&](const TunedPlan& other) { return other.key == row.key; });
      judge(judged, row, others);
    }
    print(hidden.kernel, judged);
    EXPECT_GE(judged.rates.size(), hidden.judged) << hidden.kernel;
    EXPECT_GE(judged.mean(), 0.99) << hidden.kernel;
    for (const auto& [problem, rate] : judged.rates) {
      EXPECT_EQ(rate < enough, hidden.slower.contains(problem))
          << hidden.kernel << " " << problem << ": " << rate;
    }
  }
}

}  // namespace
}  // namespace attest
