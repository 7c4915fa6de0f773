#include "core/base/glob.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

const std::vector<std::string> names{"k1_naive", "k2_coalesced", "o5_deferred"};

std::string complaint_about(std::string_view globs) {
  try {
    require_matches({"--kernel", "kernel", "attest list kernels"}, globs, names);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(Glob, SeveralAreSeparatedByCommas) {
  EXPECT_TRUE(matches_glob("k1_naive", "o*,k1*"));
  EXPECT_FALSE(matches_glob("k2_coalesced", "o*,k1*"));
  EXPECT_FALSE(matches_glob("k1_naive", ""));
}

TEST(Glob, EachOfAListMustMatchSomething) {
  EXPECT_EQ(complaint_about("k*,o5_deferred"), "");
  EXPECT_EQ(complaint_about("k1_naive,k2_coalescd"),
            "--kernel 'k2_coalescd' matches no kernel; near: k2_coalesced");
  EXPECT_EQ(complaint_about("zz*"), "--kernel 'zz*' matches no kernel; see attest list kernels");
  EXPECT_EQ(complaint_about("k1_naive,"), "--kernel '' matches no kernel; see attest list kernels");
}

}  // namespace
}  // namespace attest
