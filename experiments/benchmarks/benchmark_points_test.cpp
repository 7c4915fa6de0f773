#include "experiments/benchmarks/benchmark_points.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <set>
#include <sstream>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "experiments/benchmarks/run_benchmarks.hpp"

namespace attest {
namespace {

const KernelInfo& k3() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

const KernelInfo& wrong_k3() {
  return *find_kernel("mutant/c05_tail_lanes_in_denominator", Executor::simt);
}

struct OnExecutor {
  std::unique_ptr<Device> device = make_device(Executor::simt);
  Gate gate{[] { return std::make_unique<InProcessRunner>(); }};
  bool interrupted = false;
  BenchmarkRunner runner{[this](Executor) -> Device& { return *device; }, gate,
                         [this] { return interrupted; }};

  BenchmarkPoint point(const KernelInfo& kernel) const {
    const Problem problem = problem_from_string("b1 h2 n33 d16 causal_bottom_right fp32");
    return {&kernel, problem, kernel.plans(problem).front()};
  }
};

TEST(BenchmarkPoints, are_the_kernels_on_the_problems_that_they_run_and_the_rest_is_counted) {
  const std::vector<const KernelInfo*> kernels{&k3(), &wrong_k3()};
  const std::vector<Problem> problems{problem_from_string("b1 h1 n9 d16 none fp32"),
                                      problem_from_string("b1 h1 n9 d16 causal_top_left fp32"),
                                      problem_from_string("b1 h1 n9 d16 none bf16")};
  const BenchmarkPoints chosen = benchmark_points(kernels, problems, "");
  ASSERT_EQ(chosen.points.size(), 2U);  // fp32 alone, and mutants are no kernels
  EXPECT_EQ(chosen.left_out, 1U);
  std::set<std::string> names;
  for (const BenchmarkPoint& point : chosen.points) names.insert(point.name());
  EXPECT_EQ(names.size(), 2U);
  EXPECT_TRUE(chosen.points[0].name().starts_with("k3_sequence_parallel on simt/b1 h1/1 q9"))
      << chosen.points[0].name();
  EXPECT_FALSE(chosen.points[0].label().empty());
}

TEST(BenchmarkPoints,
     of_a_kernel_that_takes_pages_alone_lie_in_pages_or_are_left_out_with_the_reason) {
  KernelInfo paged = *find_kernel("paged_attention", Executor::simt);
  paged.layout_needs.pages = Pages::always;
  const std::vector<Problem> problems{problem_from_string("b1 h2 q1 k40 d64 none fp32")};
  const BenchmarkPoints in_pages = benchmark_points({&paged}, problems, "");
  ASSERT_EQ(in_pages.points.size(), 1U);
  EXPECT_EQ(to_string(in_pages.points[0].paging), "paged16");
  EXPECT_NE(in_pages.points[0].name().find("fp32 paged16"), std::string::npos);
  const BenchmarkPoints contiguous = benchmark_points({&paged}, problems, "", Paging{});
  EXPECT_TRUE(contiguous.points.empty());
  EXPECT_NE(contiguous.why_left_out.find("it needs K and V in pages"), std::string::npos)
      << contiguous.why_left_out;
  for (const char* text : {"paged16/joined", "paged16/large"}) {
    EXPECT_THROW((void)benchmark_points({&paged}, problems, "", paging_from_string(text)),
                 InvalidInput);
  }
}

TEST(BenchmarkRunner, times_the_layouts_of_a_point_and_not_those_of_the_one_before) {
  OnExecutor here;
  const KernelInfo& kernel = *find_kernel("paged_attention", Executor::simt);
  std::vector<std::int64_t> page_sizes;
  KernelInfo watched = kernel;
  watched.launch = [&](const ForwardArguments& a, Device& device) {
    page_sizes.push_back(a.page_table.page_size);
    kernel.launch(a, device);
  };
  BenchmarkPoint point{&watched, problem_from_string("b1 h1 q1 k33 d64 none fp32")};
  point.plan = kernel.plans(point.problem).front();
  std::string why;
  for (const char* text : {"paged16/csr", "paged8/shuffled1"}) {
    point.paging = paging_from_string(text);
    page_sizes.clear();
    ASSERT_TRUE(here.runner.prepare(point, why)) << why;
    EXPECT_EQ(page_sizes.back(), point.paging.page_size);
    EXPECT_TRUE(here.runner.keeps_its_answers(point, why)) << why;
  }
}

TEST(WhyNotBenchmarked, only_a_release_build_without_sanitizers_times) {
  EXPECT_EQ(why_not_benchmarked({.build_type = "Release"}), std::nullopt);
  EXPECT_EQ(why_not_benchmarked({.build_type = "Debug"}),
            "bench times Release builds only; this one is 'Debug'");
  EXPECT_EQ(why_not_benchmarked({.build_type = "Release", .sanitizers = "address"}),
            "bench times Release builds only; this one has sanitizers: address");
  EXPECT_TRUE(why_not_benchmarked({}));
}

TEST(BenchmarkRunner, refuses_a_wrong_kernel_once_and_for_all_with_the_law_it_breaks) {
  OnExecutor here;
  std::string why;
  for (int time = 0; time < 2; ++time) {
    EXPECT_EQ(here.runner.prepare(here.point(wrong_k3()), why), std::nullopt);
    EXPECT_NE(why.find(wrong_k3().killed_by), std::string::npos) << why;
  }
  EXPECT_EQ(here.runner.refused(), 1U);
}

TEST(BenchmarkRunner, refuses_what_gives_wrong_answers_while_it_is_timed) {
  OnExecutor here;
  KernelInfo lazy = k3();
  bool is_lazy = false;
  lazy.launch = [&](const ForwardArguments& a, Device& device) {
    if (!is_lazy) k3().launch(a, device);
  };
  std::string why;
  ASSERT_TRUE(here.runner.prepare(here.point(lazy), why)) << why;
  EXPECT_TRUE(here.runner.keeps_its_answers(here.point(lazy), why)) << why;
  is_lazy = true;
  EXPECT_FALSE(here.runner.keeps_its_answers(here.point(lazy), why));
  EXPECT_NE(why.find("was not written"), std::string::npos) << why;
  EXPECT_EQ(here.runner.refused(), 1U);
  EXPECT_EQ(here.runner.prepare(here.point(lazy), why), std::nullopt) << "once and for all";
}

TEST(BenchmarkRunner, times_a_right_kernel_and_nothing_after_an_interrupt) {
  OnExecutor here;
  std::string why;
  const auto launches = here.runner.prepare(here.point(k3()), why);
  ASSERT_TRUE(launches) << why;
  EXPECT_GE(*launches, 1);
  EXPECT_GT(here.runner.time_s(here.point(k3()), *launches), 0);
  here.interrupted = true;
  EXPECT_EQ(here.runner.prepare(here.point(k3()), why), std::nullopt);
  EXPECT_EQ(why, "interrupted");
  EXPECT_EQ(here.runner.refused(), 0U);
}

// One test, because there is one run a process.
TEST(RunBenchmarks, gives_the_time_and_the_rate_of_a_right_kernel_and_what_is_wrong_with_another) {
  OnExecutor here;
  const std::vector<BenchmarkPoint> points{here.point(k3()), here.point(wrong_k3())};
  const TemporaryFolder folder;
  const std::string out = (folder / "out.json").string();
  EXPECT_EQ(
      run_benchmarks(here.runner, points, {"--benchmark_min_time=0.0001", "--benchmark_out=" + out},
                     {{"commit", "abc"}}),
      2U);
  std::stringstream text;
  text << std::ifstream(out).rdbuf();
  const Json report = parse_json(text.str());
  EXPECT_EQ(report.at("context").at("commit"), "abc");

  const Json right = report.at("benchmarks").at(0);
  EXPECT_EQ(right.at("name"), points[0].name() + "/manual_time");
  const double seconds = right.at("real_time").get<double>() * 1e-6;
  const double flops = seconds * right.at("FLOP/s").get<double>();
  EXPECT_EQ(std::round(flops), std::round(forward_flops(points[0].problem)));

  const Json wrong = report.at("benchmarks").at(1);
  EXPECT_EQ(wrong.at("error_occurred"), true);
  EXPECT_NE(wrong.at("error_message").get<std::string>().find("not timed, because it is wrong"),
            std::string::npos);
}

std::string refusal(const std::string& flag) {
  try {
    require_benchmark_flags({flag});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(BenchmarkFlags, what_google_benchmark_would_answer_by_an_exit_is_bad_input) {
  EXPECT_EQ(refusal("--benchmark_repetitions=3"), "");
  EXPECT_EQ(refusal("--benchmark_filter=d128 (none|causal)"), "");
  EXPECT_NE(refusal("--rounds=3").find("'--rounds=3' is unknown"), std::string::npos);
  EXPECT_EQ(refusal("--benchmark_format=xml"),
            "--benchmark_format='xml' is unknown; allowed: console, json, csv");
  EXPECT_NE(refusal("--benchmark_filter=(").find("no regular expression"), std::string::npos);
  EXPECT_THROW(require_benchmark_flags({"--benchmark_out=/nowhere/x.json"}), MachineError);
}

}  // namespace
}  // namespace attest
