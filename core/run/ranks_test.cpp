#include "core/run/ranks.hpp"

#include <gtest/gtest.h>

#include <map>

#include "core/base/error.hpp"

namespace attest {
namespace {

Environment with(std::map<std::string, std::string> variables) {
  return [variables](const char* name) {
    const auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  };
}

TEST(Ranks, EveryLauncherSaysWhoWeAre) {
  for (const auto& [name, environment] :
       {std::pair("Open MPI", with({{"OMPI_COMM_WORLD_RANK", "2"},
                                    {"OMPI_COMM_WORLD_SIZE", "8"},
                                    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"}})),
        std::pair("PMI", with({{"PMI_RANK", "2"}, {"PMI_SIZE", "8"}, {"MPI_LOCALRANKID", "1"}})),
        std::pair(
            "Slurm",
            with({{"SLURM_PROCID", "2"}, {"SLURM_STEP_NUM_TASKS", "8"}, {"SLURM_LOCALID", "1"}})),
        std::pair("torchrun", with({{"TORCHELASTIC_RUN_ID", "none"},
                                    {"RANK", "2"},
                                    {"WORLD_SIZE", "8"},
                                    {"LOCAL_RANK", "1"}}))}) {
    const auto rank = rank_from(environment);
    ASSERT_TRUE(rank) << name;
    EXPECT_EQ(rank->launcher, name);
    EXPECT_EQ(rank->index, 2);
    EXPECT_EQ(rank->count, 8);
    EXPECT_EQ(rank->local_index, 1);
  }
  EXPECT_FALSE(rank_from(with({})));
  EXPECT_FALSE(rank_from(with({{"SLURM_PROCID", "2"}})));
}

TEST(Ranks, TasksOfAJobAreNotThoseOfItsStep) {
  const auto rank = rank_from(
      with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_STEP_NUM_TASKS", "1"}}));
  EXPECT_EQ(rank->count, 1);
}

TEST(Ranks, TheScriptOfAJobWithoutSrunIsNoRank) {
  EXPECT_FALSE(
      rank_from(with({{"SLURM_PROCID", "0"}, {"SLURM_NTASKS", "8"}, {"SLURM_LOCALID", "0"}})));
}

TEST(Ranks, ARankThatOtherProgramsSetIsNotTorchruns) {
  EXPECT_FALSE(rank_from(with({{"RANK", "2"}, {"WORLD_SIZE", "8"}})));
}

TEST(Ranks, NumbersThatAreNoneAreNamed) {
  for (const auto& [index, count] : {std::pair("x", "4"), std::pair("4", "4"), std::pair("-1", "4"),
                                     std::pair("0", "0"), std::pair("1", "4 ")}) {
    try {
      (void)rank_from(with({{"PMI_RANK", index}, {"PMI_SIZE", count}}));
      ADD_FAILURE() << index << " of " << count << " was taken";
    } catch (const InvalidInput& error) {
      EXPECT_NE(std::string(error.what()).find("allowed:"), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find("PMI_"), std::string::npos) << error.what();
    }
  }
}

TEST(Ranks, TakeTheGpusOfTheirMachineInTurn) {
  const auto taken = [](std::int64_t local, std::int64_t gpus, const Environment& environment) {
    return gpu_of({.index = local + 4, .count = 8, .local_index = local, .local_count = 4},
                  environment, gpus);
  };
  EXPECT_EQ(taken(1, 4, with({})).visible, "1");
  EXPECT_FALSE(taken(1, 4, with({})).is_shared);
  EXPECT_EQ(taken(3, 2, with({})).visible, "1");
  EXPECT_TRUE(taken(0, 2, with({})).is_shared) << "rank 2 takes GPU 0 as well";
  EXPECT_EQ(taken(3, 0, with({})).visible, "") << "no GPU";
  EXPECT_EQ(taken(1, 8, with({{"CUDA_VISIBLE_DEVICES", "6,GPU-a,3,2"}})).visible, "GPU-a");
  const GpuBinding bound = taken(3, 8, with({{"CUDA_VISIBLE_DEVICES", "5"}}));
  EXPECT_EQ(bound.visible, "5");
  EXPECT_FALSE(bound.is_shared) << "the launcher gave each rank its own";
}

}  // namespace
}  // namespace attest
