#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <set>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/campaign_state.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

/// Cases that ran, over all threads of a campaign.
struct Log {
  std::mutex mutex;
  std::multiset<std::string> cases;
};

class LoggingRunner : public CaseRunner {
 public:
  explicit LoggingRunner(Log& log) : log_(log) {}
  CaseAnswer run(const KernelInfo& kernel, const CaseTask& task) override {
    {
      const std::scoped_lock lock(log_.mutex);
      log_.cases.insert(to_json(task.the_case));
    }
    return runner_.run(kernel, task);
  }

 private:
  Log& log_;
  InProcessRunner runner_;
};

std::vector<const KernelInfo*> two_kernels() {
  return {find_kernel("o5_deferred", Executor::cpu),
          find_kernel("o6_split_combine", Executor::cpu)};
}

CampaignOptions logged_options(Log& log) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 23;
  options.jobs = 2;
  options.generator.max_len = 20;
  options.regressions = all_regressions();
  options.make_runner = [&log] { return std::make_unique<LoggingRunner>(log); };
  return options;
}

void expect_same(const KernelResult& got, const KernelResult& want) {
  EXPECT_EQ(got.cases, want.cases);
  EXPECT_EQ(got.regressions, want.regressions);
  EXPECT_EQ(got.checks, want.checks);
  EXPECT_EQ(got.families, want.families);
  EXPECT_EQ(got.certified_rows, want.certified_rows);
  EXPECT_EQ(got.worst_over_bound.of("o"), want.worst_over_bound.of("o"));
  EXPECT_EQ(got.worst_over_bound.of("lse"), want.worst_over_bound.of("lse"));
  EXPECT_EQ(got.verdict(), want.verdict());
  EXPECT_EQ(got.drawn, want.drawn);
  EXPECT_EQ(got.decided, want.decided);
  EXPECT_EQ(got.given_up, want.given_up);
  EXPECT_EQ(got.refusals, want.refusals);
  EXPECT_EQ(got.facts, want.facts);
  EXPECT_EQ(got.example, want.example);
  EXPECT_EQ(got.never_judged, want.never_judged);
}

class CampaignFolder : public testing::Test {
 protected:
  TemporaryFolder folder_;
};

TEST(Shards, ShareNoCaseAndAreTogetherTheWholeCampaign) {
  Log whole;
  (void)run_campaign(two_kernels(), logged_options(whole));
  for (const std::int64_t count : {2, 3, 50}) {
    Log parts;
    for (std::int64_t index = 0; index < count; ++index) {
      CampaignOptions options = logged_options(parts);
      options.shard = {.index = index, .count = count};
      (void)run_campaign(two_kernels(), options);
    }
    EXPECT_EQ(parts.cases, whole.cases) << count << " parts";
  }
}

TEST_F(CampaignFolder, AnInterruptedCampaignGoesOnWithoutRunningACaseTwice) {
  Log whole;
  const std::vector<KernelResult> want = run_campaign(two_kernels(), logged_options(whole));

  Log parts;
  std::atomic<int> done = 0;
  CampaignOptions options = logged_options(parts);
  options.on_case_done = [&](const KernelInfo&) { ++done; };
  options.is_interrupted = [&] { return done >= 11; };
  options.on_checkpoint = [&](const std::vector<KernelResult>& results) {
    write_campaign_state(folder_, {.program = "abc", .arguments = {"--x=1"}, .results = results});
  };
  (void)run_campaign(two_kernels(), options);
  EXPECT_LT(parts.cases.size(), whole.cases.size());

  const CampaignState state = read_campaign_state(folder_);
  EXPECT_EQ(state.program, "abc");
  EXPECT_EQ(state.arguments, std::vector<std::string>{"--x=1"});
  options.resume_from = state.results;
  options.is_interrupted = {};
  const std::vector<KernelResult> got = run_campaign(two_kernels(), options);
  EXPECT_EQ(parts.cases, whole.cases);
  for (std::size_t k = 0; k < want.size(); ++k) expect_same(got[k], want[k]);

  Log nothing;
  options = logged_options(nothing);
  options.resume_from = got;
  for (const KernelResult& result : run_campaign(two_kernels(), options)) {
    expect_same(result, got[result.kernel == got[0].kernel ? 0 : 1]);
  }
  EXPECT_TRUE(nothing.cases.empty()) << "a finished campaign has nothing left to run";
}

TEST_F(CampaignFolder, AFailureIsKeptWithNaNAndNotShrunkAgain) {
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 200;  // enough for the control to fail
  const std::vector<const KernelInfo*> control{find_kernel("o1_unshifted", Executor::cpu)};
  const std::vector<KernelResult> first = run_campaign(control, options);
  ASSERT_TRUE(first[0].failure.has_value());
  write_campaign_state(folder_, {.results = first});
  Log log;
  options.make_runner = [&] { return std::make_unique<LoggingRunner>(log); };
  options.resume_from = read_campaign_state(folder_).results;
  const std::vector<KernelResult> again = run_campaign(control, options);
  EXPECT_TRUE(log.cases.empty());
  EXPECT_EQ(describe(*again[0].failure, *control[0]), describe(*first[0].failure, *control[0]));
}

TEST_F(CampaignFolder, AFinishedCampaignHasNothingLeftUnlessMoreIsAskedFor) {
  Log log;
  CampaignOptions options = logged_options(log);
  CampaignState state{.seconds = 5, .results = run_campaign(two_kernels(), options)};
  EXPECT_FALSE(has_nothing_left(state, two_kernels(), options)) << "its records are not written";
  state.is_finished = true;
  EXPECT_TRUE(has_nothing_left(state, two_kernels(), options));
  std::vector<const KernelInfo*> one_more = two_kernels();
  one_more.push_back(find_kernel("o8_exp2_skip_rescale", Executor::cpu));
  EXPECT_FALSE(has_nothing_left(state, one_more, options));
  ++options.cases_per_kernel;
  EXPECT_FALSE(has_nothing_left(state, two_kernels(), options));
  for (KernelResult& result : state.results) result.failure.emplace();
  EXPECT_TRUE(has_nothing_left(state, two_kernels(), options)) << "who failed gets no later cases";
  options.time_limit = std::chrono::duration<double>(5);
  EXPECT_TRUE(has_nothing_left(state, two_kernels(), options));
  options.time_limit = std::chrono::duration<double>(6);
  EXPECT_FALSE(has_nothing_left(state, two_kernels(), options));
}

TEST_F(CampaignFolder, AStateThatIsNoneGetsOneLine) {
  const auto message = [&] {
    try {
      (void)read_campaign_state(folder_);
    } catch (const InvalidInput& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  EXPECT_NE(message().find("no campaign to resume here"), std::string::npos) << message();
  for (const std::string_view text : {"", "{", "[]", "{\"program\": 3}"}) {
    std::ofstream(campaign_state_path(folder_)) << text;
    EXPECT_NE(message().find("not the state of a campaign"), std::string::npos) << text;
  }
}

TEST(DoneTasks, KnowsWhatWasInsertedInAnyOrder) {
  DoneTasks done;
  for (const std::int64_t task : {3, 0, 1, 5, 2}) {
    EXPECT_FALSE(done.contains(task));
    done.insert(task);
    done.insert(task);
    EXPECT_TRUE(done.contains(task));
  }
  EXPECT_EQ(done.below, 4);
  EXPECT_EQ(done.beyond, std::set<std::int64_t>{5});
  EXPECT_FALSE(done.contains(4));
}

TEST(Regressions, EachFitsAKernelAndEveryKernelItFitsPasses) {
  ASSERT_FALSE(all_regressions().empty());
  for (const Regression& regression : all_regressions()) {
    int fits = 0;
    for (const KernelInfo& kernel : all_kernels()) {
      if (kernel.role == KernelRole::kernel && fitted_case(regression.the_case, kernel)) ++fits;
    }
    EXPECT_GE(fits, 1) << regression.name;
  }
  CampaignOptions options;
  options.cases_per_kernel = options.cases_per_simt_kernel = 1;
  options.regressions = all_regressions();
  for (const KernelResult& result :
       run_campaign({find_kernel("k3_sequence_parallel", Executor::simt),
                     find_kernel("o8_exp2_skip_rescale", Executor::cpu)},
                    options)) {
    EXPECT_EQ(result.verdict(), Verdict::passed);
    EXPECT_GE(result.regressions, 5) << result.kernel->name;
  }
}

TEST(Regressions, UnderATimeLimitPastAndDrawnCasesTakeTurns) {
  CampaignOptions options;
  options.regressions = all_regressions();
  options.generator.max_len = 20;
  const std::int64_t past = std::ssize(options.regressions);
  const auto done_of = [&] {
    return judge_tasks(*find_kernel("o5_deferred", Executor::cpu), options, {.begin = 0, .end = 6},
                       *std::make_unique<InProcessRunner>())
        .done;
  };
  const auto is_done = [](const DoneTasks& done, const std::set<std::int64_t>& tasks) {
    return std::ranges::all_of(tasks, [&](std::int64_t task) { return done.contains(task); });
  };
  EXPECT_TRUE(is_done(done_of(), {0, 1, 2, 3, 4, 5}));
  options.time_limit = std::chrono::hours(1);
  EXPECT_TRUE(is_done(done_of(), {0, past, 1, past + 1, 2, past + 2}));
}

TEST(Regressions, AKernelThatHasAnOldBugAgainFailsBeforeTheFirstDrawnCase) {
  KernelInfo relapsed = *find_kernel("mutant/c05_tail_lanes_in_denominator", Executor::simt);
  relapsed.role = KernelRole::kernel;
  relapsed.killed_by.clear();
  CampaignOptions options;
  options.regressions = all_regressions();
  const KernelResult result = run_campaign({&relapsed}, options).front();
  EXPECT_EQ(result.verdict(), Verdict::failed);
  EXPECT_LT(result.failing_case, 0);
  EXPECT_EQ(result.cases, result.regressions) << "no case was drawn";
}

}  // namespace
}  // namespace attest
