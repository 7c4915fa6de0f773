#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "gpu/simt/simt_device.hpp"
#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

constexpr int clusters = 3, threads = 65;

struct Outcome {
  std::vector<int> values;
  std::vector<Finding> findings;
};
Outcome add_neighbours(int cluster, int steps, ClusterBug bug, std::uint64_t seed) {
  simt::SimtDevice device;
  const TestBuffer<int> out(
      device, "out", std::vector<int>(static_cast<std::size_t>(clusters * cluster * threads)));
  device.seed_schedule(seed);
  launch_add_neighbours(device, clusters, cluster, threads, steps, bug, out.data());
  return {out.read(), device.take_findings()};
}

TEST(Clusters, BlocksReadWhatOthersLeftUnderEverySchedule) {
  constexpr int steps = 4;
  for (const int cluster : {1, 2, 3, 8}) {
    std::vector<int> wanted;
    for (int block = 0; block < clusters * cluster; ++block) wanted.push_back(block);
    for (int step = 0; step < steps; ++step) {
      std::vector<int> next = wanted;
      for (std::size_t block = 0; block < wanted.size(); ++block) {
        const std::size_t first =
            block / static_cast<std::size_t>(cluster) * static_cast<std::size_t>(cluster);
        next[block] += wanted[first + (block - first + 1) % static_cast<std::size_t>(cluster)];
      }
      wanted = next;
    }
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const Outcome got = add_neighbours(cluster, steps, ClusterBug::none, seed);
      ASSERT_EQ(text_of(got.findings), "") << "seed " << seed;
      for (std::size_t i = 0; i < got.values.size(); ++i) {
        ASSERT_EQ(got.values[i], wanted[i / threads]) << "cluster of " << cluster << ", " << i;
      }
    }
  }
}

struct PlantedBug {
  ClusterBug bug;
  std::set<std::string> kinds;  ///< what it may look like, by the schedule
};

TEST(Clusters, PlantedBugsAreFoundUnderEverySchedule) {
  const std::set<std::string> too_early{"data race", "uninitialised read", "out of bounds"};
  // Who does not wait arrives at the next phase while others have not left this one.
  const std::set<std::string> too_early_or_in_vain{"data race", "uninitialised read",
                                                   "out of bounds", "divergent barrier"};
  const std::vector<PlantedBug> all{{ClusterBug::not_before_reading, too_early},
                                    {ClusterBug::no_wait, too_early_or_in_vain},
                                    {ClusterBug::not_before_writing, too_early},
                                    {ClusterBug::not_at_the_end, too_early},
                                    {ClusterBug::thread_exits, {"divergent barrier"}},
                                    {ClusterBug::unwritten, {"uninitialised read"}},
                                    {ClusterBug::past_the_end, {"out of bounds"}}};
  for (const PlantedBug& planted : all) {
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      const Outcome got = add_neighbours(3, 2, planted.bug, seed);
      ASSERT_FALSE(got.findings.empty())
          << "bug " << static_cast<int>(planted.bug) << ", seed " << seed;
      for (const Finding& finding : got.findings) {
        EXPECT_TRUE(planted.kinds.contains(finding.kind))
            << "bug " << static_cast<int>(planted.bug) << ": " << finding.message;
      }
    }
  }
}

TEST(Clusters, TheSameSeedGivesTheSameReport) {
  const auto report = [](std::uint64_t seed) {
    return text_of(add_neighbours(8, 2, ClusterBug::not_before_writing, seed).findings);
  };
  EXPECT_EQ(report(11), report(11));
}

TEST(Clusters, BlocksWriteToOthersOnceAllHaveBegun) {
  constexpr int cluster = 5;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    simt::SimtDevice device;
    const TestBuffer<int> out(device, "out", std::vector<int>(clusters * cluster * cluster));
    device.seed_schedule(seed);
    launch_write_to_all(device, clusters, cluster, false, out.data());
    ASSERT_EQ(text_of(device.take_findings()), "") << "seed " << seed;
    const std::vector<int> got = out.read();
    for (int i = 0; i < clusters * cluster * cluster; ++i) {
      ASSERT_EQ(got[static_cast<std::size_t>(i)], 100 * (i % cluster) + i / cluster % cluster);
    }
  }
}

TEST(Clusters, ALaunchAfterAnAbandonedOneIsWell) {
  simt::SimtDevice device;
  const TestBuffer<int> out(device, "out", std::vector<int>(clusters * 2 * threads));
  launch_add_neighbours(device, clusters, 2, threads, 2, ClusterBug::thread_exits, out.data());
  const std::string report = text_of(device.take_findings());
  EXPECT_NE(report.find("the barrier of the cluster"), std::string::npos) << report;
  launch_add_neighbours(device, clusters, 2, threads, 2, ClusterBug::none, out.data());
  EXPECT_EQ(text_of(device.take_findings()), "");
}

TEST(Clusters, SizesThatNoGpuTakesAreRefusedInASentence) {
  simt::SimtDevice device;
  const TestBuffer<int> out(device, "out", std::vector<int>(1024));
  EXPECT_THROW(launch_add_neighbours(device, 1, 9, 1, 1, ClusterBug::none, out.data()),
               MachineError);
}

}  // namespace
}  // namespace attest
