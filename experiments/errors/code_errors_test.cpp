// Errors of attention of codes against what the codes were made of: laws between the figures of
// rows that differ in one thing.
#include <gtest/gtest.h>

#include <string>

#include "core/base/error.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"
#include "experiments/errors/error_axes.hpp"

namespace attest {
namespace {

constexpr std::size_t of_o = 0, of_lse = 1;

ErrorsAxes code_axes(const std::string& problem, const std::string& family) {
  return {.operation = &quantised_operation,
          .problems = {problem},
          .families = {family},
          .truth = Truth::unrounded,
          .sets = 2};
}

/// One row of quantised_rows, which forms products in fp32.
ErrorsRow code_row(const ErrorsAxes& axes) {
  Devices devices;
  const KernelInfo& kernel = *find_kernel("quantised_rows", Executor::cpu);
  std::vector<ErrorsRow> rows = rows_of(axes, {&kernel}, devices);
  if (rows.size() != 1) throw std::logic_error("not one row");
  measure(rows[0], devices.of(kernel), 0, {});
  return rows[0];
}

double code_rmse(const ErrorsRow& row, std::size_t output) {
  return row.outputs.at(output).errors.value("rmse");
}

std::string code_complaint(const ErrorsAxes& axes) {
  try {
    (void)code_row(axes);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

TEST(CodeErrors, OfWhatCodesStandForAreSmallerThanOfWhatTheyWereMadeOf) {
  ErrorsAxes axes = code_axes("h2 q33 k129 d16 fp32", "normal");
  const ErrorsRow unrounded = code_row(axes);
  axes.truth = Truth::given;
  const ErrorsRow given = code_row(axes);
  EXPECT_TRUE(given.outputs[of_o].errors.has("error_over_bound_max"));
  EXPECT_FALSE(unrounded.outputs[of_o].errors.has("error_over_bound_max"));
  for (const std::size_t output : {of_o, of_lse}) {
    EXPECT_LT(code_rmse(given, output), code_rmse(unrounded, output)) << output;
  }
}

TEST(CodeErrors, AFinerGroupOfScalesOfInt8HasSmallerOnesOnOutliers) {
  double before = 1e30;
  for (const char* scales : {"head", "block", "row"}) {
    const std::string problem = std::string("h2 q33 k513 d64 fp32 kcode_int8 vcode_int8 kscales_") +
                                scales + " vscales_" + scales;
    const double now = code_rmse(code_row(code_axes(problem, "outliers")), of_o);
    EXPECT_LT(now, before) << scales;
    before = now;
  }
}

/// Codes of K less its mean have finer steps, and what the mean adds to LSE comes back.
TEST(CodeErrors, SmoothedKeysWithAMeanOfTheirColumnHaveSmallerOnesInBothOutputs) {
  ErrorsAxes axes = code_axes("b2 h4/2 q33 k129 d16 fp32 kcode_int8", "channel_means_k:10");
  const ErrorsRow plain = code_row(axes);
  axes.smooths_keys = true;
  const ErrorsRow smoothed = code_row(axes);
  EXPECT_LT(code_rmse(smoothed, of_o), code_rmse(plain, of_o));
  EXPECT_LT(code_rmse(smoothed, of_lse), code_rmse(plain, of_lse));
  EXPECT_NE(errors_table({smoothed}).find("channel_means_k_unrounded_smoothed:10"),
            std::string::npos);
}

TEST(CodeErrors, OfKeysThatAreNoCodesSmoothingIsFreeButForARounding) {
  ErrorsAxes axes =
      code_axes("h2 q33 k129 d16 fp32 kcode_none kscales_none vcode_none vscales_none", "normal");
  axes.smooths_keys = true;
  const ErrorsRow smoothed = code_row(axes);
  axes = code_axes("h2 q33 k129 d16 fp32", "normal");
  const ErrorsRow codes = code_row(axes);
  // Of fp32 and of e4m3: 24 digits and 4.
  EXPECT_LT(code_rmse(smoothed, of_o) * 0x1p10, code_rmse(codes, of_o));
  EXPECT_LT(code_rmse(smoothed, of_lse) * 0x1p10, code_rmse(codes, of_lse));
}

TEST(CodeErrors, WhatHasNoAnswerIsRefusedWithASentence) {
  EXPECT_NE(code_complaint(code_axes("n16 d8 fp32", "all_codes")).find("families of numbers"),
            std::string::npos);
  ErrorsAxes axes = code_axes("n16 d8 fp32", "normal");
  axes.smooths_keys = true;
  axes.truth = Truth::given;
  EXPECT_NE(code_complaint(axes).find("unrounded inputs"), std::string::npos);
  axes = code_axes("n16 d8 fp32 softcap30", "normal");
  axes.smooths_keys = true;
  EXPECT_NE(code_complaint(axes).find("softcap is 30"), std::string::npos);
  axes = code_axes("n16 d8 fp32", "normal");
  axes.key_orders = {"reversed"};
  EXPECT_NE(code_complaint(axes).find("keep their places"), std::string::npos);
  axes = code_axes("n16 d8 fp32", "normal");
  axes.truth = Truth::exact_saved;
  EXPECT_NE(code_complaint(axes).find("--exact-saved"), std::string::npos);
}

}  // namespace
}  // namespace attest
