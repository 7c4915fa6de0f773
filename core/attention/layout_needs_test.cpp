#include "core/attention/layout_needs.hpp"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"

namespace attest {
namespace {

TensorLayout any_layout() {
  return {.order = *rc::gen::element(DimOrder::bhnd, DimOrder::bnhd, DimOrder::nhbd),
          .row_gap = *rc::gen::inRange<std::int64_t>(0, 20),
          .base_offset = *rc::gen::inRange<std::int64_t>(0, 20),
          .plane_gap = *rc::gen::inRange<std::int64_t>(0, 20),
          .outer_gap = *rc::gen::inRange<std::int64_t>(0, 20),
          .lone_stride = *rc::gen::inRange<std::int64_t>(0, 20)};
}

Problem any_problem() {
  return {.batch = *rc::gen::inRange<std::int64_t>(1, 4),
          .query_heads = 6,
          .kv_heads = *rc::gen::element<std::int64_t>(1, 2, 3, 6),
          .query_len = *rc::gen::inRange<std::int64_t>(1, 9),
          .key_len = *rc::gen::inRange<std::int64_t>(0, 9),
          .head_dim = *rc::gen::inRange<std::int64_t>(1, 66),
          .element_type = *rc::gen::element(ElementType::fp32, ElementType::fp16),
          .length_seed = *rc::gen::element<std::uint64_t>(0, 3, 4)};
}

RC_GTEST_PROP(LayoutNeeds, FittedLayoutsFit, ()) {
  const Problem problem = any_problem();
  const LayoutNeeds needs{.pointer_alignment_bytes = *rc::gen::element<std::int64_t>(1, 2, 8, 64),
                          .stride_alignment_bytes = *rc::gen::element<std::int64_t>(1, 4, 16, 128),
                          .aligns_lone_strides = *rc::gen::arbitrary<bool>()};
  const Layouts drawn = ForwardLayouts{any_layout(), any_layout(), any_layout(), any_layout()};
  const auto reason = why_layouts_do_not_fit(needs, problem, fitted(needs, problem, drawn));
  if (reason) RC_FAIL(*reason);
}

RC_GTEST_PROP(LayoutNeeds, FittedLayoutsOfAKernelForContiguousTensorsAreContiguous, ()) {
  const Problem problem = any_problem();
  const LayoutNeeds needs{.contiguous_only = true, .pointer_alignment_bytes = 16};
  const Layouts layouts = fitted(
      needs, problem, ForwardLayouts{any_layout(), any_layout(), any_layout(), any_layout()});
  RC_ASSERT(!why_layouts_do_not_fit(needs, problem, layouts));
  RC_ASSERT(layouts[forward::k].row_gap == 0 && layouts[forward::k].order == DimOrder::bhnd);
}

RC_GTEST_PROP(LayoutNeeds, AKernelWithoutNeedsTakesEveryLayoutAsItIs, ()) {
  const Problem problem = any_problem();
  const Layouts drawn = ForwardLayouts{any_layout(), any_layout(), any_layout(), any_layout()};
  RC_ASSERT(!why_layouts_do_not_fit({}, problem, drawn));
  RC_ASSERT(fitted({}, problem, drawn) == drawn);
}

TEST(LayoutNeeds, EachBrokenNeedIsNamedWithItsTensor) {
  const Problem problem{
      .query_len = 3, .key_len = 5, .head_dim = 8, .element_type = ElementType::fp16};
  const auto why = [&](const LayoutNeeds& needs, const Layouts& layouts) {
    return why_layouts_do_not_fit(needs, problem, layouts).value_or("fits");
  };
  EXPECT_EQ(why({.contiguous_only = true}, ForwardLayouts{.v = {.row_gap = 1}}),
            "it needs contiguous tensors, and V is not");
  EXPECT_EQ(why({.stride_alignment_bytes = 16}, ForwardLayouts{.k = {.row_gap = 1}}),
            "it needs strides that are multiples of 16 bytes, and K has one of 18");
  EXPECT_EQ(why({.pointer_alignment_bytes = 4}, ForwardLayouts{.o = {.base_offset = 1}}),
            "it needs tensors aligned to 4 bytes, and O begins 2 bytes off");
  EXPECT_EQ(why({.stride_alignment_bytes = 16}, ForwardLayouts{.k = {.row_gap = 8}}), "fits");
}

TEST(LayoutNeeds, StridesOfASingleIndexAreJudgedOnlyForAKernelThatLooksAtThem) {
  const Problem problem{.query_len = 1, .key_len = 1, .head_dim = 4};
  LayoutNeeds needs{.contiguous_only = true, .stride_alignment_bytes = 16};
  EXPECT_FALSE(why_layouts_do_not_fit(needs, problem, ForwardLayouts{.q = {.row_gap = 1}}));
  needs = {.stride_alignment_bytes = 16, .aligns_lone_strides = true};
  EXPECT_FALSE(why_layouts_do_not_fit(needs, problem, {}));
  const Layouts lone = ForwardLayouts{.k = {.lone_stride = 1}};
  EXPECT_EQ(why_layouts_do_not_fit(needs, problem, lone).value_or("fits"),
            "it needs strides that are multiples of 16 bytes, and K has one of 4");
  EXPECT_EQ(fitted(needs, problem, lone)[forward::k].lone_stride, 4);
}

TEST(LayoutNeeds, ATableOfTheOtherFormIsRefusedAndNotFittedSoThatItCounts) {
  const Problem problem{.batch = 2, .key_len = 33};
  Layouts dense, csr;
  dense.paging = paging_from_string("paged16/infinity");
  csr.paging = paging_from_string("paged16/csr/infinity");
  const LayoutNeeds dense_alone{.tables = TableForm::dense, .pages = Pages::also};
  const LayoutNeeds csr_alone{.tables = TableForm::csr, .pages = Pages::also};
  EXPECT_EQ(why_layouts_do_not_fit(dense_alone, problem, csr).value_or("fits"),
            "it takes page tables in the dense form alone");
  EXPECT_EQ(why_layouts_do_not_fit(csr_alone, problem, dense).value_or("fits"),
            "it takes page tables in the csr form alone");
  EXPECT_FALSE(why_layouts_do_not_fit(dense_alone, problem, dense));
  EXPECT_FALSE(why_layouts_do_not_fit(csr_alone, problem, csr));
  EXPECT_EQ(to_string(fitted(dense_alone, problem, csr).paging), "paged16/csr/infinity");
  for (const Layouts& layouts : {dense, csr}) {
    EXPECT_FALSE(why_layouts_do_not_fit({.pages = Pages::also}, problem, layouts));
  }
}

TEST(LayoutNeeds, TensorsThatArePackedAreJudgedAsTheyLieInMemory) {
  // Two entries become one batch, whose stride is then that of a single index.
  const Problem problem{.batch = 2, .query_len = 4, .key_len = 4, .head_dim = 4, .length_seed = 9};
  const LayoutNeeds needs{.stride_alignment_bytes = 16, .aligns_lone_strides = true};
  EXPECT_TRUE(why_layouts_do_not_fit(needs, problem, ForwardLayouts{.v = {.lone_stride = 1}}));
}

}  // namespace
}  // namespace attest
