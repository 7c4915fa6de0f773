#include "core/base/shared_claims.hpp"

#include <gtest/gtest.h>

#include <fstream>

#include "core/base/error.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {
namespace {

/// Moves the time at which the claim's owner touched it last into the past.
void age(const std::filesystem::path& claim, std::chrono::seconds seconds) {
  std::filesystem::last_write_time(claim, std::filesystem::last_write_time(claim) - seconds);
}

TEST(SharedClaims, OneProcessHasAClaimUntilItGivesItBackOrEnds) {
  const TemporaryFolder folder;
  SharedClaims others(folder.path());
  {
    SharedClaims claims(folder.path());
    EXPECT_TRUE(claims.take("7"));
    EXPECT_FALSE(claims.take("7")) << "threads of one process are several, too";
    EXPECT_FALSE(others.take("7"));
    EXPECT_TRUE(others.is_held("7"));
    EXPECT_TRUE(others.take("8"));
    claims.give_back("7");
    EXPECT_FALSE(others.is_held("7"));
    EXPECT_TRUE(others.take("7"));
    EXPECT_TRUE(claims.take("9"));
  }
  EXPECT_TRUE(others.take("9"));
}

TEST(SharedClaims, WhatADeadProcessLeftHasOneNewOwner) {
  const TemporaryFolder folder;
  std::ofstream(folder / "7.claim1") << "";
  SharedClaims first(folder.path()), second(folder.path());
  age(folder / "7.claim1", SharedClaims::dead_after - std::chrono::seconds(5));
  EXPECT_FALSE(first.take("7")) << "may only be slow";
  EXPECT_TRUE(first.is_held("7"));
  age(folder / "7.claim1", std::chrono::seconds(6));
  EXPECT_FALSE(first.is_held("7"));
  EXPECT_TRUE(first.take("7"));
  EXPECT_FALSE(second.take("7"));
}

TEST(SharedClaims, ALivingOwnerTouchesWhatItHolds) {
  const TemporaryFolder folder;
  SharedClaims claims(folder.path());
  ASSERT_TRUE(claims.take("7"));
  age(folder / "7.claim1", 2 * SharedClaims::dead_after);
  while (!claims.is_held("7")) std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

TEST(SharedClaims, AFolderThatCannotBeMadeIsNamed) {
  try {
    const SharedClaims claims("/proc/no/claims");
    ADD_FAILURE();
  } catch (const MachineError& error) {
    EXPECT_EQ(std::string(error.what()).find("/proc/no/claims/clock: cannot be written: "), 0U);
  }
}

}  // namespace
}  // namespace attest
