#include "gpu/runtime/counter_schedule.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <set>

#include "core/base/error.hpp"
#include "gpu/runtime/cupti_library.hpp"

namespace attest {
namespace {

using Names = std::vector<std::string>;

/// Needs CUPTI's library, and no GPU.
class CounterScheduleTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!why_no_cupti().empty()) GTEST_SKIP() << why_no_cupti();
  }
  static std::string refusal(const std::string& name) {
    try {
      const CounterSchedule schedule("GH100", {}, hardware_counters_of(Names{name}));
    } catch (const InvalidInput& error) {
      return error.what();
    }
    return "";
  }
};

TEST_F(CounterScheduleTest, every_metric_of_the_table_is_one_of_sm_90) {
  for (const HardwareCounter& counter : all_hardware_counters()) {
    const CounterSchedule schedule("GH100", {}, {counter});
    EXPECT_GE(schedule.passes(), 1U) << counter.name;
    EXPECT_EQ(schedule.metrics().size(), counter.per.empty() && counter.rest.empty() ? 1U : 2U)
        << counter.name;
  }
}

TEST_F(CounterScheduleTest, each_metric_is_asked_for_once) {
  const CounterSchedule schedule(
      "GH100", {},
      hardware_counters_of(Names{"l2", "tensor", "occupancy", "dram__bytes_read.sum"}));
  const auto metrics = schedule.metrics();
  const std::set<std::string> distinct(metrics.begin(), metrics.end());
  EXPECT_EQ(distinct.size(), metrics.size());
  EXPECT_FALSE(schedule.config_image().empty());
}

TEST_F(CounterScheduleTest, a_quotient_is_read_in_one_pass) {
  // Runs differ: of two it could exceed 100 %.
  for (const HardwareCounter& counter : all_hardware_counters()) {
    if (counter.per.empty()) continue;
    std::vector<HardwareCounter> group;
    for (const HardwareCounter& other : all_hardware_counters()) {
      if (other.group == counter.group) group.push_back(other);
    }
    EXPECT_EQ(CounterSchedule("GH100", {}, group).passes(), 1U) << counter.group;
  }
}

TEST_F(CounterScheduleTest, no_counters_need_no_pass) {
  EXPECT_EQ(CounterSchedule("GH100", {}, {}).passes(), 0U);
}

TEST_F(CounterScheduleTest, a_misspelt_metric_is_refused_with_what_may_be_meant) {
  const std::string misspelt = refusal("dram__bytes_raed.sum");
  EXPECT_TRUE(misspelt.starts_with(
      "counter 'dram__bytes_raed.sum' is no metric of GH100; near: dram__bytes_read"))
      << misspelt;
  EXPECT_EQ(refusal("nothing__like_this_at_all.sum"),
            "counter 'nothing__like_this_at_all.sum' is no metric of GH100");
}

TEST_F(CounterScheduleTest, a_metric_without_its_rollup_is_refused_with_those_it_has) {
  const std::string none = refusal("dram__bytes_read"), wrong = refusal("dram__bytes_read.total");
  EXPECT_NE(none.find("has no rollup; allowed for this metric: .sum, .avg"), std::string::npos)
      << none;
  EXPECT_NE(wrong.find("has an unknown rollup"), std::string::npos) << wrong;
  EXPECT_NE(refusal("lts__t_sector_hit_rate").find(".ratio, .pct"), std::string::npos);
}

TEST(CuptiFailure, says_what_to_do) {
  const auto said = [](CUptiResult result) { return cupti_failure(result, "cuptiX", "Y"); };
  EXPECT_NE(said(CUPTI_ERROR_INSUFFICIENT_PRIVILEGES).find("run as root"), std::string::npos);
  EXPECT_NE(said(CUPTI_ERROR_HARDWARE_BUSY).find("another profiler"), std::string::npos);
  EXPECT_NE(said(CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED).find("as it is configured"),
            std::string::npos);
  for (const CUptiResult result : {CUPTI_ERROR_UNKNOWN, CUPTI_ERROR_INSUFFICIENT_PRIVILEGES}) {
    EXPECT_NE(said(result).find("(cuptiX: Y)"), std::string::npos);
    EXPECT_EQ(said(result).find('\n'), std::string::npos);
  }
}

TEST(CounterUnit, bytes_and_percents_are_ours_and_others_stay) {
  EXPECT_EQ(counter_unit("byte"), "B");
  EXPECT_EQ(counter_unit("percent"), "%");
  EXPECT_EQ(counter_unit(""), "1");
  EXPECT_EQ(counter_unit("instruction"), "instruction");
}

TEST(CuptiLibraryDeathTest, a_missing_library_is_named_with_the_variable_to_set) {
  // In a process of its own: the library is opened once.
  EXPECT_EXIT(
      {
        setenv("ATTEST_CUPTI", "/nowhere/libcupti.so", 1);
        try {
          const CounterSchedule schedule("GH100", {}, hardware_counters_of(Names{"dram"}));
        } catch (const MachineError& error) {
          std::fputs(error.what(), stderr);
        }
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "no hardware counters: libcupti.* set ATTEST_CUPTI");
}

}  // namespace
}  // namespace attest
