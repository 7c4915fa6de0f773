#include "experiments/errors/error_axes.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/inputs/captured_inputs.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

const KernelInfo& cpu_kernel(const char* name) {
  return *find_kernel(name, Executor::cpu);
}

std::vector<ErrorsRow> rows(const ErrorsAxes& axes, std::vector<const KernelInfo*> kernels) {
  Devices devices;
  return rows_of(axes, kernels, devices);
}

std::string complaint(const ErrorsAxes& axes) {
  try {
    (void)rows(axes, {&cpu_kernel("o5_deferred")});
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(ErrorAxes, EveryCombinationOfWhatIsVariedIsARow) {
  const ErrorsAxes axes{.problems = {"h2 n{16,32} d{8,16}"},
                        .families = {"normal:{1,8}", "zero_q"},
                        .plans = {"kt{8,16}"},
                        .key_orders = {"drawn", "reversed"}};
  const KernelInfo& kernel = cpu_kernel("o5_deferred");
  const std::vector<ErrorsRow> found = rows(axes, {&kernel});
  EXPECT_EQ(found.size(), 4 * 3 * 2 * 2 * kernel.element_types.size());
  for (const ErrorsRow& row : found) {
    EXPECT_EQ(row.left_out, "");
    EXPECT_TRUE(row.the_case.plan.key_tile == 8 || row.the_case.plan.key_tile == 16);
  }
}

TEST(ErrorAxes, EveryKernelHasRowsWhereNothingIsNamed) {
  add_real_inputs();
  std::size_t asked = 0;
  for (const KernelInfo& kernel : all_kernels()) {
    const auto measures = [&](const ErrorsDefaults& one) {
      return one.operation == kernel.operation;
    };
    const bool is_judged =
        kernel.role == KernelRole::kernel || kernel.role == KernelRole::negative_control;
    if (!is_judged || !std::ranges::any_of(all_errors_defaults(), measures)) continue;
    ++asked;
    std::vector<ErrorsRow> found;
    ASSERT_NO_THROW(found = rows({.operation = kernel.operation}, {&kernel})) << kernel.name;
    for (const ErrorsRow& row : found) EXPECT_EQ(row.left_out, "") << kernel.name;
  }
  EXPECT_GE(asked, 35U);
}

TEST(ErrorAxes, KernelsThatTakeTheUsualProblemAreAskedAboutItBesideOneThatDoesNot) {
  const KernelInfo& mla = *find_kernel("mla_wgmma", Executor::simt);
  const std::vector<ErrorsRow> found =
      rows({.families = {"normal"}}, {&cpu_kernel("o5_deferred"), &mla});
  for (const ErrorsRow& row : found) {
    EXPECT_EQ(row.the_case.problem.head_dim, row.kernel == &mla ? 576 : 64);
  }
  EXPECT_EQ(found.size(),
            mla.element_types.size() + cpu_kernel("o5_deferred").element_types.size());
}

TEST(ErrorAxes, EveryLayoutThatIsNamedIsARowWithThePagesInItsRecord) {
  const ErrorsAxes axes{.problems = {"n16 d8 fp32"},
                        .families = {"normal"},
                        .layouts = {"contiguous", "paged4/csr/shuffled1,paged8/csr/shuffled1"},
                        .sets = 1};
  std::vector<ErrorsRow> found = rows(axes, {&cpu_kernel("o5_deferred")});
  ASSERT_EQ(found.size(), 3U);
  Devices devices;
  std::vector<std::string> layouts;
  for (ErrorsRow& row : found) {
    EXPECT_EQ(row.left_out, "");
    measure(row, devices.of(*row.kernel), 0, {});
    const Record record = records_of(row, "").at(0);
    layouts.push_back(record.labels.contains("layouts") ? record.labels.at("layouts") : "");
  }
  EXPECT_EQ(layouts,
            (std::vector<std::string>{"", "paged4/csr/shuffled1", "paged8/csr/shuffled1"}));
  EXPECT_NE(errors_table(found).find("none paged8/csr/shuffled1, inputs"), std::string::npos);
}

TEST(ErrorAxes, AKernelThatTakesPagesAloneGetsThemWhereNothingIsNamed) {
  KernelInfo paged = cpu_kernel("o5_deferred");
  paged.layout_needs.pages = Pages::always;
  paged.layout_needs.tables = TableForm::csr;
  paged.layout_needs.page_sizes = {32, 64};
  ErrorsAxes axes{.problems = {"n16 d8 fp32"}, .families = {"normal"}};
  const std::vector<ErrorsRow> found = rows(axes, {&paged});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].left_out, "");
  EXPECT_EQ(to_string(found[0].the_case.layouts.paging), "paged32/csr");
  axes.layouts = {"contiguous"};
  EXPECT_THROW((void)rows(axes, {&paged}), InvalidInput);
}

TEST(ErrorAxes, AnElementTypeInTheProblemLeavesOutTheOthers) {
  const ErrorsAxes axes{.problems = {"n16 d8 bf16"}, .families = {"normal"}};
  const std::vector<ErrorsRow> found = rows(axes, {&cpu_kernel("o5_deferred")});
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].the_case.problem.element_type, ElementType::bf16);
}

TEST(ErrorAxes, AFamilyThatNoSeedChangesIsMeasuredOnce) {
  const ErrorsAxes axes{.problems = {"n16 d8 fp32"},
                        .families = {"normal", "zero_q"},
                        .sets = 3,
                        .fixed_families = {"zero_q"}};
  const std::vector<ErrorsRow> found = rows(axes, {&cpu_kernel("o5_deferred")});
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].sets, 3);
  EXPECT_EQ(found[1].sets, 1);
}

TEST(ErrorAxes, WhatCannotBeMeasuredIsRefusedInOneLine) {
  EXPECT_NE(complaint({.problems = {"n{16 d8"}}).find("a brace without its partner"),
            std::string::npos);
  EXPECT_NE(complaint({.families = {"normal:-1"}}).find("allowed: a number above 0"),
            std::string::npos);
  EXPECT_NE(
      complaint({.families = {"normal"}, .layouts = {"page16"}})
          .find("--layouts: paging 'page16': part 'page16' is unknown; allowed: paged16, csr"),
      std::string::npos);
  EXPECT_NE(complaint({.families = {"nothing*"}}).find("matches no family"), std::string::npos);
  EXPECT_NE(complaint({.problems = {"q0 k8 d8"}}).find("has no rows"), std::string::npos);
  EXPECT_NE(complaint({.families = {"normal"}, .key_orders = {"sideways"}}).find("sideways"),
            std::string::npos);
  EXPECT_NE(
      complaint({.problems = {"n16 d8 fp32"}, .families = {"normal"}, .truth = Truth::unrounded})
          .find("no selected kernel takes its element type"),
      std::string::npos);
}

TEST(ErrorRows, AMeasuredRowHasRecordsOfItsOutputsAndPartsAndALineInTheTable) {
  ErrorsRow row = rows({.problems = {"h2 n16 d8 fp32"}, .families = {"normal"}, .sets = 2},
                       {&cpu_kernel("o5_deferred")})
                      .at(0);
  Devices devices;
  measure(row, devices.of(*row.kernel), 0, {.axes = {ErrorAxis::head}, .map = true});
  ASSERT_EQ(row.outputs.size(), 2U);
  EXPECT_GT(row.certified_rows, 0);
  for (const auto& [name, errors] : row.outputs) {
    EXPECT_TRUE(within(1.0, errors.value("error_over_bound_max"))) << name;
    EXPECT_GT(errors.value("rmse"), 0) << name;
  }
  const std::vector<Record> records = records_of(row, "");
  const auto count = [&](auto is) { return std::ranges::count_if(records, is); };
  // O and LSE as wholes, each of two heads, and one map of O.
  EXPECT_EQ(records.size(), 2U + 2 * 2 + 1);
  EXPECT_EQ(count([](const Record& r) { return r.kind == "error_map"; }), 1);
  EXPECT_EQ(count([](const Record& r) { return r.labels.contains("by"); }), 4);
  const std::string table = errors_table({row});
  EXPECT_NE(table.find("inputs normal, 2 data sets"), std::string::npos) << table;
  EXPECT_NE(table.find("o5_deferred"), std::string::npos) << table;
}

TEST(ErrorRows, OneThatWasLeftOutSaysWhy) {
  ErrorsRow row{.name = "somebody", .executor = "cpu"};
  row.left_out = "no plan for this problem";
  EXPECT_NE(errors_table({row}).find("left out: no plan for this problem"), std::string::npos);
}

}  // namespace
}  // namespace attest
