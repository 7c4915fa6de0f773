#include "core/records/hardware_counters.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "core/base/error.hpp"

namespace attest {
namespace {

using Names = std::vector<std::string>;

Names names_of(const Names& asked) {
  Names names;
  for (const HardwareCounter& counter : hardware_counters_of(asked)) names.push_back(counter.name);
  return names;
}

std::string refusal_of(const std::string& name) {
  try {
    (void)hardware_counters_of(Names{name});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(HardwareCounters, no_name_stands_for_two_things) {
  std::set<std::string> seen;
  for (const std::string& name : hardware_counter_names()) {
    EXPECT_TRUE(seen.insert(name).second) << name;
    // Else it would pass for a metric of CUPTI.
    EXPECT_EQ(name.find("__"), std::string::npos) << name;
  }
}

TEST(HardwareCounters, the_groups_that_studies_name_are_there) {
  for (const char* group : {"dram", "l2", "tensor", "shared", "occupancy", "stalls"}) {
    const auto counters = hardware_counters_of(Names{group});
    EXPECT_GE(counters.size(), 2U) << group;
    for (const HardwareCounter& counter : counters) EXPECT_EQ(counter.group, group);
  }
}

TEST(HardwareCounters, groups_counters_and_metrics_mix_and_each_counter_comes_once) {
  EXPECT_EQ(names_of({"l2_hit_rate", "l2", "lts__t_requests.sum", "l2_sectors"}),
            (Names{"l2_hit_rate", "l2_sectors", "lts__t_requests.sum"}));
  EXPECT_EQ(names_of({}), Names{});
}

TEST(HardwareCounters, an_unknown_name_is_refused_with_what_may_be_meant) {
  EXPECT_EQ(refusal_of("drm"),
            "counter 'drm' is unknown; near: dram; or a metric of CUPTI such as "
            "dram__bytes_read.sum");
  EXPECT_NE(refusal_of("tensor_activ").find("near: tensor_active;"), std::string::npos);
  EXPECT_NE(refusal_of("everything").find("allowed: dram, l2, tensor, shared, occupancy, stalls"),
            std::string::npos);
  EXPECT_EQ(refusal_of("a\nb").find('\n'), std::string::npos);
}

TEST(HardwareCounters, a_share_is_in_percent_and_of_nothing_it_is_no_number) {
  const HardwareCounter quotient{.name = "busy", .unit = "%", .metric = "a", .per = "b"};
  EXPECT_EQ(value_of(quotient, 3, 4, 7), 75);
  EXPECT_TRUE(std::isnan(value_of(quotient, 0, 0, 0)));
  const HardwareCounter share{.name = "hits", .unit = "%", .metric = "hit", .rest = "miss"};
  EXPECT_EQ(value_of(share, 3, 7, 1), 75);
  EXPECT_TRUE(std::isnan(value_of(share, 0, 7, 0)));
  EXPECT_EQ(value_of({.name = "x", .unit = "%", .metric = "x"}, 3, 0, 0), 3);
  EXPECT_EQ(value_of({.name = "x", .unit = "1", .metric = "x", .per = "y"}, 3, 4, 0), 0.75);
}

}  // namespace
}  // namespace attest
