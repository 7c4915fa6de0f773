#include "core/base/counted.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

TEST(Counted, OneIsSingularAndEveryOtherCountIsNot) {
  EXPECT_EQ(counted(0, "case"), "0 cases");
  EXPECT_EQ(counted(1, "case"), "1 case");
  EXPECT_EQ(counted(2U, "data set"), "2 data sets");
  EXPECT_EQ(counted(-1, "key"), "-1 keys");
}

}  // namespace
}  // namespace attest
