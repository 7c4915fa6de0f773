#include "core/layout.hpp"

#include <gtest/gtest.h>

#include <set>

namespace attest {
namespace {

TEST(Layout, EveryLayoutGivesEachElementItsOwnPlaceInsideTheSpan) {
  const Shape shape{2, 3, 5, 4};
  for (const DimOrder order : {DimOrder::bhnd, DimOrder::bnhd}) {
    for (const std::int64_t gap : {0, 1, 7}) {
      const TensorLayout layout{.order = order, .row_gap = gap, .base_offset = 3};
      const Strides strides = strides_of(shape, layout);
      std::set<std::int64_t> places;
      for (std::int64_t b = 0; b < 2; ++b) {
        for (std::int64_t h = 0; h < 3; ++h) {
          for (std::int64_t n = 0; n < 5; ++n) {
            for (std::int64_t d = 0; d < 4; ++d) places.insert(strides.offset(b, h, n) + d);
          }
        }
      }
      EXPECT_EQ(places.size(), 2U * 3 * 5 * 4);
      EXPECT_EQ(*places.begin(), 0);
      EXPECT_EQ(*places.rbegin(), span_of(shape, layout) - 1);
    }
  }
}

TEST(Layout, AnEmptyTensorSpansNothing) {
  EXPECT_EQ(span_of({2, 3, 0, 4}, {.row_gap = 5}), 0);
}

TEST(Layout, TextNamesOnlyWhatIsNotContiguous) {
  EXPECT_EQ(to_string(Layouts{}), "contiguous");
  EXPECT_EQ(to_string(Layouts{.k = {DimOrder::bnhd, 3, 1}}), "k:bnhd+3@1");
}

}  // namespace
}  // namespace attest
