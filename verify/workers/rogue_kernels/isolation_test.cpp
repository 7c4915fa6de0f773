#include <fcntl.h>
#include <gtest/gtest.h>
#include <sched.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>
#include <string>
#include <thread>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/workers/isolated_runner.hpp"
#include "verify/workers/rogue_kernels/rogue_kernels.hpp"

namespace attest {
namespace {

const KernelInfo* kernel(std::string_view name, Executor executor = Executor::cpu) {
  const KernelInfo* found = find_kernel(name, executor);
  EXPECT_NE(found, nullptr) << name;
  return found;
}

/// Ten times what a correct case here takes under a sanitizer, which keeps freed memory for a
/// while. Waiting for a core does not count.
constexpr WorkerLimits limits{.seconds = 4, .memory_bytes = std::uint64_t{1} << 30};

CampaignOptions isolated_options() {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 10;
  options.jobs = 2;
  options.generator.max_len = 20;
  options.shrink.candidate_seconds = 1;
  // How far a case shrinks is then no matter of how busy the machine is.
  options.shrink.seconds_without_answer = std::numeric_limits<double>::infinity();
  options.make_runner = [] {
    return std::make_unique<IsolatedRunner>(Isolation{.limits = limits});
  };
  return options;
}

/// Processes whose parent is `parent`.
std::vector<pid_t> children_of(pid_t parent) {
  std::vector<pid_t> children;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    if (entry.path().filename().string().find_first_not_of("0123456789") != std::string::npos) {
      continue;
    }
    std::ifstream file(entry.path() / "stat");
    std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t after_name = text.rfind(')');
    if (after_name == std::string::npos) continue;
    if (std::stoi(text.substr(after_name + 4)) != parent) continue;
    children.push_back(std::stoi(entry.path().filename()));
  }
  return children;
}

struct Rogue {
  std::string name;
  Verdict verdict;
  std::string what;
};

// The bytes of the struct would be part of the test's name.
void PrintTo(const Rogue& rogue, std::ostream* out) {
  *out << rogue.name;
}
class RogueKernel : public testing::TestWithParam<Rogue> {};

TEST_P(RogueKernel, GetsItsVerdictWithASmallCaseThatReplaysAndTheOthersAreJudged) {
  const KernelInfo* rogue = kernel("rogue/" + GetParam().name);
  CampaignOptions options = isolated_options();
  if (GetParam().verdict == Verdict::timed_out) options.shrink.candidate_seconds = 0.1;
  const std::vector<KernelResult> results = run_campaign({rogue, kernel("o5_deferred")}, options);
  const KernelResult& result = results[0];
  EXPECT_EQ(result.verdict(), GetParam().verdict);
  EXPECT_FALSE(result.is_as_expected());
  EXPECT_GE(result.crashed + result.timed_out, 1);
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_NE(result.failure->check.detail.find(GetParam().what), std::string::npos)
      << result.failure->check.detail;
  EXPECT_TRUE(result.is_shrunk);
  // Fewer where a law asks the kernel of a problem with more queries than the case's.
  EXPECT_LE(result.failure->the_case.problem.query_len, rogue_from + 1)
      << to_string(result.failure->the_case);
  EXPECT_EQ(results[1].verdict(), Verdict::passed);
  EXPECT_EQ(results[1].cases, 10);

  const TemporaryFolder folder;
  const auto path = write_counterexample(folder, *result.failure, rogue->executor, "");
  const Counterexample read = read_counterexample(path);
  EXPECT_EQ(read.kind, GetParam().verdict);
  IsolatedRunner runner({.limits = limits});
  const CaseVerdict again =
      runner.run(*rogue, task_of(*rogue, {.law = read.law, .the_case = read.the_case})).verdict;
  EXPECT_EQ(again.verdict, GetParam().verdict);
}

INSTANTIATE_TEST_SUITE_P(
    , RogueKernel,
    testing::Values(
        Rogue{"segfault", Verdict::crashed, "SIGSEGV"},
        Rogue{"abort", Verdict::crashed, "SIGABRT; its last words: corrupted double-linked list"},
        Rogue{"exit", Verdict::crashed, "exit(0)"},
        Rogue{"hang", Verdict::timed_out, "gave no answer within"},
        Rogue{"memory", Verdict::crashed, "GiB of memory"},
        Rogue{"throw", Verdict::crashed, "no kernel image is available"},
        Rogue{"throw_int", Verdict::crashed, "not an exception"},
        Rogue{"close_all", Verdict::crashed, "closed the channel"},
        Rogue{"wild_writes", Verdict::crashed, "something else than an answer"},
        Rogue{"channel_prefix", Verdict::crashed, "something else than an answer"},
        Rogue{"input_writes", Verdict::crashed,
              "SIGSEGV, while the kernel ran; it wrote to K, which is an input"},
        Rogue{"fork", Verdict::crashed, "the child came back"},
        Rogue{"fork_and_crash", Verdict::crashed, "SIGSEGV"},
        Rogue{"crash_in_unsupported", Verdict::crashed,
              "while the kernel was asked whether it can run the case"},
        Rogue{"crash_in_precision", Verdict::crashed, "while the kernel was asked how it rounds"},
        Rogue{"crash_in_workspace", Verdict::crashed,
              "while the kernel was asked for its scratch memory"}),
    [](const auto& rogue) { return rogue.param.name; });

TEST(Isolation, WhatAKernelPrintsIsNoAnswer) {
  const KernelResult result = run_campaign({kernel("rogue/noise")}, isolated_options()).front();
  EXPECT_EQ(result.verdict(), Verdict::passed);
  EXPECT_EQ(result.cases, 10);
}

/// A drawn case of a kernel with so many queries.
Case case_with_queries(const KernelInfo& rogue, std::int64_t queries) {
  Case c = *draw_case(rogue, {}, 1, 0);
  c.problem = {.query_len = queries, .key_len = 5, .head_dim = 8};
  c.layouts = {};
  c.inputs = {};
  return c;
}

CaseVerdict judged(CaseRunner& runner, const KernelInfo& rogue, const Case& c) {
  return runner.run(rogue, {.executor = rogue.executor, .the_case = c, .laws = {}}).verdict;
}

TEST(Isolation, AKernelThatForksNeverPasses) {
  IsolatedRunner runner({.limits = limits});
  for (const char* name : {"rogue/fork", "rogue/fork_and_wrong"}) {
    const KernelInfo& rogue = *kernel(name);
    for (int i = 0; i < 10; ++i) {
      const CaseVerdict verdict = judged(runner, rogue, case_with_queries(rogue, rogue_from + 1));
      ASSERT_EQ(verdict.verdict, Verdict::crashed) << name;
      EXPECT_NE(verdict.failure->check.detail.find("the child came back"), std::string::npos)
          << verdict.failure->check.detail;
      const Case harmless = case_with_queries(rogue, rogue_from);
      EXPECT_EQ(judged(runner, rogue, harmless).verdict, Verdict::passed) << name;
    }
  }
}

TEST(Isolation, ReadingPastAnInputIsSeenWhereItsBufferEndsAtAPage) {
  CampaignOptions options = isolated_options();
  options.laws.glob = "within_bound";
  const KernelResult result = run_campaign({kernel("rogue/reads_past_v")}, options).front();
  ASSERT_EQ(result.verdict(), Verdict::crashed);
  // Of V, or of the pool that V shares with K.
  const std::string& said = result.failure->check.detail;
  EXPECT_NE(said.find("it read past the end of "), std::string::npos) << said;
  EXPECT_TRUE(said.ends_with("V")) << said;
  EXPECT_NE(result.failure->the_case.schedule_seed, 0U);
}

TEST(Isolation, MemoryThatAKernelDidNotWriteHoldsNoZeros) {
  const KernelResult result =
      run_campaign({kernel("rogue/unwritten_memory")}, isolated_options()).front();
  EXPECT_EQ(result.verdict(), Verdict::failed);
}

TEST(Isolation, WhatAKernelPrintedIsShownWithTheLawThatItBreaks) {
  CampaignOptions options = isolated_options();
  options.shrink.calls = 5;
  const KernelResult result = run_campaign({kernel("rogue/chatter")}, options).front();
  ASSERT_EQ(result.verdict(), Verdict::failed);
  EXPECT_NE(result.failure->check.detail.find("its last words: about to be wrong"),
            std::string::npos)
      << result.failure->check.detail;
}

TEST(Isolation, AReturnedErrorIsItsOwnLawAndShrinksAndReplays) {
  const KernelInfo& rogue = *kernel("rogue/returned_error");
  const KernelResult result = run_campaign({&rogue}, isolated_options()).front();
  ASSERT_EQ(result.verdict(), Verdict::failed);
  EXPECT_EQ(result.failure->law, error_law);
  EXPECT_NE(result.failure->check.detail.find("no fourth query today"), std::string::npos);
  EXPECT_EQ(result.failure->the_case.problem.query_len, rogue_from + 1);
  IsolatedRunner runner({.limits = limits});
  const CaseVerdict again = runner.run(rogue, task_of(rogue, *result.failure)).verdict;
  ASSERT_EQ(again.verdict, Verdict::failed);
  EXPECT_EQ(again.failure->law, error_law);
}

TEST(Isolation, AWorkerIsReplacedSoThatLaterCasesAreFirstOnesToo) {
  const KernelInfo& rogue = *kernel("rogue/cold_start");
  IsolatedRunner runner({.limits = limits});
  EXPECT_EQ(judged(runner, rogue, case_with_queries(rogue, rogue_from)).verdict, Verdict::passed);
  std::optional<Failure> failure;
  for (int i = 0; i < 60 && !failure; ++i) {
    failure = judged(runner, rogue, case_with_queries(rogue, rogue_from + 1)).failure;
    EXPECT_EQ(failure.has_value(), i == 49) << i;
  }
  ASSERT_TRUE(failure.has_value());
  EXPECT_EQ(failure->repetition, "") << "every fresh process repeats it";
}

TEST(Isolation, AWrongAnswerThatDependsOnEarlierCallsSaysSoAndIsNotShrunk) {
  struct Impure {
    const char* name;
    const char* says;
  };
  for (const Impure& impure :
       {Impure{"rogue/every_13th",
               "not repeated in a fresh process, where the case passed 3 times"},
        Impure{"rogue/every_3rd",
               "try 3 of 3 in a fresh process failed, those before it passed"}}) {
    CampaignOptions options = isolated_options();
    options.jobs = 1;
    options.cases_per_kernel = 100;
    options.laws.glob = "*within_bound";
    const KernelInfo& rogue = *kernel(impure.name);
    const KernelResult result = run_campaign({&rogue}, options).front();
    ASSERT_EQ(result.verdict(), Verdict::failed)
        << (result.failure ? describe(*result.failure, rogue) : impure.name);
    EXPECT_NE(result.failure->repetition.find(impure.says), std::string::npos)
        << result.failure->repetition;
    EXPECT_FALSE(result.is_shrunk);
    EXPECT_EQ(result.failure->the_case,
              *draw_case(rogue, options.generator, options.seed,
                         static_cast<std::uint64_t>(result.failing_case)));
    EXPECT_NE(describe(*result.failure, rogue).find(impure.says), std::string::npos);
    const TemporaryFolder folder;
    std::ifstream file(write_counterexample(folder, *result.failure, rogue.executor, ""));
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    EXPECT_NE(text.find(impure.says), std::string::npos) << text;
  }
}

TEST(Isolation, AnAnswerThatIsCachedByAddressIsSeenByLawsThatLaunchAgain) {
  CampaignOptions options = isolated_options();
  options.laws.every_law = true;
  const KernelResult result = run_campaign({kernel("rogue/cache_by_address")}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::failed);
}

TEST(Isolation, WaitingForACoreDoesNotCountAgainstAKernel) {
  // All on one core, where each gets a share.
  cpu_set_t all, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof all, &all), 0);
  CPU_ZERO(&one);
  CPU_SET(sched_getcpu(), &one);
  ASSERT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  std::atomic<bool> stop = false;
  const KernelInfo& slow = *kernel("rogue/slow");
  Case c = *draw_case(slow, {}, 1, 0);
  c.problem.query_len = rogue_from + 1;
  const WorkerLimits ten_times_its_time{.seconds = 4};
  CaseVerdict verdict;
  {
    std::vector<std::jthread> others(15);  // so that waiting takes longer than the limit
    for (std::jthread& other : others) {
      other = std::jthread([&] {
        while (!stop) continue;
      });
    }
    IsolatedRunner runner({.limits = ten_times_its_time});
    verdict = runner.run(slow, task_of(slow, {.law = "within_bound", .the_case = c})).verdict;
    stop = true;
  }
  ASSERT_EQ(sched_setaffinity(0, sizeof all, &all), 0);
  EXPECT_EQ(verdict.verdict, Verdict::passed)
      << (verdict.failure ? verdict.failure->check.detail : verdict.reason);
}

TEST(Isolation, OutcomesAreThoseOfOneProcess) {
  const std::vector<const KernelInfo*> kernels{kernel("o1_unshifted"), kernel("o6_split_combine"),
                                               kernel("k3_sequence_parallel", Executor::simt)};
  CampaignOptions options = isolated_options();
  options.cases_per_kernel = options.cases_per_simt_kernel = 30;
  const std::vector<KernelResult> isolated = run_campaign(kernels, options);
  options.make_runner = {};
  const std::vector<KernelResult> direct = run_campaign(kernels, options);
  for (std::size_t k = 0; k < kernels.size(); ++k) {
    EXPECT_EQ(isolated[k].failing_case, direct[k].failing_case);
    ASSERT_EQ(isolated[k].failure.has_value(), direct[k].failure.has_value());
    if (!direct[k].failure) {  // else the other thread may have judged a later case meanwhile
      EXPECT_EQ(isolated[k].cases, direct[k].cases);
      EXPECT_EQ(isolated[k].checks, direct[k].checks);
      EXPECT_EQ(isolated[k].worst_over_bound.of("o"), direct[k].worst_over_bound.of("o"));
      EXPECT_EQ(isolated[k].worst_over_bound.of("lse"), direct[k].worst_over_bound.of("lse"));
      EXPECT_EQ(isolated[k].worst_certificate, direct[k].worst_certificate);
      continue;
    }
    EXPECT_EQ(isolated[k].failure->the_case, direct[k].failure->the_case);
    EXPECT_EQ(describe(*isolated[k].failure, *kernels[k]),
              describe(*direct[k].failure, *kernels[k]));
  }
}

TEST(Isolation, ACrashThatAFreshProcessDoesNotRepeatSaysSo) {
  CampaignOptions options = isolated_options();
  options.jobs = 1;
  options.cases_per_kernel = options.cases_per_simt_kernel = 40;
  options.laws.glob = "within_bound";
  const KernelResult result = run_campaign({kernel("rogue/fifth_time")}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::crashed);
  EXPECT_NE(result.failure->repetition.find("not repeated in a fresh process"), std::string::npos)
      << result.failure->repetition;
  EXPECT_NE(result.failure->repetition.find("cases ran before it in its process, the last rogue_"),
            std::string::npos)
      << result.failure->repetition;
}

TEST(Isolation, AWorkerThatCannotLoadEndsTheCampaignWithItsError) {
  CampaignOptions options = isolated_options();
  options.make_runner = [] {
    return std::make_unique<IsolatedRunner>(Isolation{.setup = {.inputs_file = "x.safetensors"}});
  };
  EXPECT_THROW((void)run_campaign({kernel("o5_deferred")}, options), InvalidInput);
}

TEST(Isolation, NoWorkerOutlivesTheCampaign) {
  (void)run_campaign({kernel("rogue/exit"), kernel("o5_deferred")}, isolated_options());
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a child, running or a zombie, is left";
  EXPECT_EQ(errno, ECHILD);
}

TEST(Isolation, WorkersDieWithAParentThatIsKilled) {
  std::string name = "isolation_test", argument = "hanging-campaign";
  const std::array<char*, 3> arguments{name.data(), argument.data(), nullptr};
  pid_t parent = -1;
  ASSERT_EQ(posix_spawn(&parent, "/proc/self/exe", nullptr, nullptr, arguments.data(), environ), 0);
  std::vector<pid_t> workers;
  for (int i = 0; i < 20000 && workers.empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    workers = children_of(parent);
  }
  ASSERT_EQ(workers.size(), 1U);
  kill(parent, SIGKILL);
  waitpid(parent, nullptr, 0);
  bool is_gone = false;
  for (int i = 0; i < 20000 && !is_gone; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::ifstream file("/proc/" + std::to_string(workers[0]) + "/stat");
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    const std::size_t after_name = text.rfind(')');
    is_gone = after_name == std::string::npos || text[after_name + 2] == 'Z';
  }
  EXPECT_TRUE(is_gone);
}

TEST(Isolation, AnInterruptEndsACampaignWhoseKernelHangs) {
  // Two jobs: one waits for the hanging kernel at once, the other after its first case of the
  // second.
  std::atomic<int> done = 0;
  CampaignOptions options = isolated_options();
  options.is_interrupted = [&] { return done >= 1; };
  options.make_runner = [&] {
    return std::make_unique<IsolatedRunner>(
        Isolation{.limits = {.seconds = 3600}, .is_interrupted = options.is_interrupted});
  };
  options.on_case_done = [&](const KernelInfo&) { ++done; };
  const auto start = std::chrono::steady_clock::now();
  const std::vector<KernelResult> results =
      run_campaign({kernel("rogue/hang"), kernel("o5_deferred")}, options);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::minutes(10))
      << "its limit is an hour";
  EXPECT_FALSE(results[0].failure) << "an interrupted case decides nothing";
  EXPECT_GE(results[0].cases + results[1].cases, 1);
}

}  // namespace
}  // namespace attest
