#include "experiments/study/gpu_users.hpp"

#include <gtest/gtest.h>

#include <optional>

#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

TEST(GpuUsers, SeeEachOtherOnOneGpuAsLongAsTheyLive) {
  const TemporaryFolder folder;
  const GpuUsers first("H200, PCI 0000:1b:00.0", folder / "");
  EXPECT_FALSE(first.are_several());
  {
    const GpuUsers second("H200, PCI 0000:1b:00.0", folder / "");
    EXPECT_TRUE(first.are_several());
    EXPECT_TRUE(second.are_several());
  }
  EXPECT_FALSE(first.are_several());
}

TEST(GpuUsers, DoNotMindThoseOfAnotherGpu) {
  const TemporaryFolder folder;
  const GpuUsers first("H200, PCI 0000:1b:00.0", folder / "");
  const GpuUsers other("H200, PCI 0000:43:00.0", folder / "");
  EXPECT_FALSE(first.are_several());
  EXPECT_FALSE(other.are_several());
}

TEST(GpuUsers, SeeNobodyWithoutAFolder) {
  const GpuUsers first("a GPU", ""), second("a GPU", "/nowhere/at/all");
  EXPECT_FALSE(first.are_several());
  EXPECT_FALSE(second.are_several());
}

}  // namespace
}  // namespace attest
