#pragma once

#include <gtest/gtest.h>

#include "gpu/runtime/device_info.hpp"

// Skips the rest of a test where there is no GPU; CTest then reports `Skipped`, never `Passed`.
inline void skip_without_gpu() {
  if (const std::string reason = attest::why_no_gpu(); !reason.empty()) GTEST_SKIP() << reason;
}

/// Base of tests that need a GPU. Their suites are named Gpu*: `ctest -R '\.Gpu'` runs them alone.
class OnGpu : public ::testing::Test {
 protected:
  void SetUp() override { skip_without_gpu(); }
};
