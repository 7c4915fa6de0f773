#include "core/attention/layout.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"

namespace attest {
namespace {

constexpr Shape shape{2, 3, 5, 7};

TEST(Layout, EveryOrderPutsEveryRowIntoAPlaceOfItsOwnInsideTheSpan) {
  for (const DimOrder order : all_dim_orders()) {
    for (const std::int64_t gap : {0, 1, 6}) {
      const TensorLayout layout{
          .order = order, .row_gap = gap, .plane_gap = 2 * gap, .outer_gap = 5 * gap};
      const Strides strides = strides_of(shape, layout);
      std::set<std::int64_t> used;
      std::int64_t last = 0;
      for (std::int64_t b = 0; b < shape[0]; ++b) {
        for (std::int64_t h = 0; h < shape[1]; ++h) {
          for (std::int64_t n = 0; n < shape[2]; ++n) {
            for (std::int64_t d = 0; d < shape[3]; ++d) {
              const std::int64_t at = strides.offset(b, h, n) + d;
              EXPECT_TRUE(used.insert(at).second) << name_of(order) << " shares element " << at;
              last = std::max(last, at);
            }
          }
        }
      }
      EXPECT_EQ(*used.begin(), 0);
      EXPECT_EQ(last + 1, span_of(shape, layout)) << name_of(order);
      EXPECT_EQ(last + 1 == 2 * 3 * 5 * 7, gap == 0) << "without gaps nothing is left unused";
    }
  }
}

TEST(Layout, EachGapLiesAfterTheDimensionItIsNamedFor) {
  const Strides s = strides_of(shape, {.row_gap = 1, .plane_gap = 10, .outer_gap = 100});
  EXPECT_EQ(s.row, 7 + 1);
  EXPECT_EQ(s.head, 5 * 8 + 10);
  EXPECT_EQ(s.batch, 3 * 50 + 100);
}

TEST(Layout, ALoneStrideReplacesTheStridesOfDimensionsOfSize1AndMovesNoElement) {
  constexpr std::int64_t huge = std::int64_t{1} << 33;
  const Shape lone{1, 3, 1, 7};
  const Strides s = strides_of(lone, {.lone_stride = huge});
  EXPECT_EQ(s.batch, huge);
  EXPECT_EQ(s.row, huge);
  EXPECT_EQ(s.head, 7);
  EXPECT_EQ(span_of(lone, {.lone_stride = huge}), span_of(lone, {}));
}

TEST(Layout, NamesOfOrdersReadBackAndOthersAreRefusedWithTheList) {
  for (const DimOrder order : all_dim_orders()) {
    EXPECT_EQ(dim_order_from_name(name_of(order)), order);
  }
  try {
    (void)dim_order_from_name("bhdn");
    FAIL() << "accepted";
  } catch (const InvalidInput& error) {
    EXPECT_EQ(std::string(error.what()),
              "order 'bhdn' is unknown; allowed: bhnd, bnhd, hbnd, hnbd, nbhd, nhbd");
  }
}

TEST(Layout, TheTextShowsWhatDiffersFromContiguous) {
  EXPECT_EQ(to_string(Layouts{}, forward_operation), "contiguous");
  EXPECT_EQ(to_string(Layouts(ForwardLayouts{
                          .q = {.order = DimOrder::nbhd, .row_gap = 3, .base_offset = 1},
                          .v = {.plane_gap = 2, .outer_gap = 5, .lone_stride = 9}}),
                      forward_operation),
            "q:nbhd+3@1 v:bhnd+0/2/5|9");
}

}  // namespace
}  // namespace attest
