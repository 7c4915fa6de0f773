#include "experiments/errors/error_rows.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace attest {
namespace {

ErrorProfile profile_of(double largest, double vacuous) {
  return {.measurements = {{"elements", 8, "1"},
                           {"vacuous", vacuous, "1"},
                           {"error_over_bound_max", largest, "1"}}};
}

TEST(BeyondItsBound, IsWhatIsNotProvenToBeWithin) {
  EXPECT_FALSE(is_beyond_bound(profile_of(0.5, 0)));
  EXPECT_FALSE(is_beyond_bound(profile_of(1, 0))) << "the bound itself is within";
  EXPECT_TRUE(is_beyond_bound(profile_of(std::nextafter(1.0, 2.0), 0)));
  EXPECT_TRUE(is_beyond_bound(profile_of(HUGE_VAL, 0)));
  EXPECT_TRUE(is_beyond_bound(profile_of(NAN, 0)));
  EXPECT_TRUE(is_beyond_bound(profile_of(2, 7))) << "one element with a bound is enough";
  EXPECT_FALSE(is_beyond_bound(profile_of(NAN, 8))) << "no element has a finite bound";
  EXPECT_FALSE(is_beyond_bound(ErrorProfile{.measurements = {{"elements", 8, "1"}}}))
      << "a truth that the bound is not about";
}

TEST(BeyondItsBound, OfOneOutputIsARowsAndItsRecordsVerdict) {
  ErrorsRow row;
  row.outputs.push_back({"O", {profile_of(0.5, 0), {}, {}}});
  EXPECT_FALSE(is_beyond_bound(row));
  row.outputs.push_back({"LSE", {profile_of(2, 0), {}, {}}});
  EXPECT_TRUE(is_beyond_bound(row));
  const std::vector<Record> records = records_of(row, "");
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].verdict, "") << "nothing was judged";
  EXPECT_EQ(records[1].verdict, "failed");
}

}  // namespace
}  // namespace attest
