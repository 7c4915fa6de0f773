// Errors of gradients: laws between the figures of rows that differ in one thing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "core/base/error.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/backward/gradient_choices.hpp"
#include "experiments/errors/error_axes.hpp"

namespace attest {
namespace {

const std::vector<KernelInfo>& choices() {
  static const std::vector<KernelInfo> all = gradient_choices();
  return all;
}

const KernelInfo& choice(const std::string& name) {
  return *std::ranges::find(choices(), "choice/bwd_" + name, &KernelInfo::name);
}

const KernelInfo& tiled() {
  return *find_kernel("backward_tiled", Executor::cpu);
}

ErrorsAxes axes_of(const std::string& problem, const std::string& family) {
  return {.operation = &backward_operation, .problems = {problem}, .families = {family}, .sets = 2};
}

/// One row, measured.
ErrorsRow measured(const KernelInfo& kernel, const ErrorsAxes& axes,
                   const ErrorDetail& detail = {}) {
  Devices devices;
  std::vector<ErrorsRow> rows = rows_of(axes, {&kernel}, devices);
  if (rows.size() != 1) throw std::logic_error("not one row");
  measure(rows[0], devices.of(kernel), 0, detail);
  return rows[0];
}

double value(const ErrorsRow& row, std::size_t output, std::string_view name) {
  return row.outputs.at(output).errors.value(name);
}

std::string complaint_about(const ErrorsAxes& axes) {
  try {
    Devices devices;
    (void)rows_of(axes, {&tiled()}, devices);
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "";
}

/// Logarithm of a ratio to base 2, to the nearest whole number.
long binades(double ratio) {
  return std::lround(std::log2(ratio));
}

TEST(GradientErrors, InBf16AreAsMuchLargerThanInFp16AsTheirUnitsAndFp32HasTheLeast) {
  const auto of = [](const std::string& type) {
    return measured(tiled(), axes_of("h2 n67 d16 " + type, "normal"));
  };
  const ErrorsRow fp32 = of("fp32"), fp16 = of("fp16"), bf16 = of("bf16");
  const double units =
      format_of(ElementType::bf16).unit_roundoff / format_of(ElementType::fp16).unit_roundoff;
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(binades(value(bf16, i, "rmse") / value(fp16, i, "rmse")), binades(units)) << i;
    EXPECT_LT(value(fp32, i, "rmse"), value(fp16, i, "rmse")) << i;
    EXPECT_GE(value(bf16, i, "rmse"), value(bf16, i, "rounded_rmse")) << i;
  }
}

TEST(GradientErrors, OfAZeroGradientAreZero) {
  for (const KernelInfo& kernel : choices()) {
    const ErrorsRow row = measured(kernel, axes_of("h2/1 n67 d16 bf16", "gradient_zero"));
    for (std::size_t i = 0; i < 3; ++i) {
      EXPECT_EQ(value(row, i, "max_abs_error"), 0) << kernel.name << i;
      EXPECT_EQ(value(row, i, "ulp_0"), 1) << kernel.name << i;
    }
  }
}

TEST(GradientErrors, OneRoundingCostsNoMoreThanAllOfThemAndNoLessThanNone) {
  for (const char* family : {"normal", "gradient_mean_kv:3"}) {
    const auto rmse = [&](const KernelInfo& kernel) {
      const ErrorsRow row = measured(kernel, axes_of("h2/1 n137 d16 bf16", family));
      return std::vector<double>{value(row, 0, "rmse"), value(row, 1, "rmse"),
                                 value(row, 2, "rmse")};
    };
    const auto none = rmse(choice("nothing_rounded")), all = rmse(choice("all_rounded"));
    for (const KernelInfo& kernel : choices()) {
      const auto one = rmse(kernel);
      for (std::size_t i = 0; i < 3; ++i) {
        // Integers round instead of fp32, not besides.
        if (kernel.name != "choice/bwd_dq_sums_in_units") {
          EXPECT_LE(none[i], one[i]) << kernel.name << ' ' << family << i;
        }
        EXPECT_LE(one[i], all[i]) << kernel.name << ' ' << family << i;
      }
    }
  }
}

TEST(GradientErrors, AgainstTheGradientARoundedOCountsInDQAndDKAndNotInDV) {
  ErrorsAxes axes = axes_of("h2 n67 d16 bf16", "gradient_mean_kv:3");
  const ErrorsRow given = measured(choice("nothing_rounded"), axes);
  axes.truth = Truth::exact_saved;
  const ErrorsRow exact = measured(choice("nothing_rounded"), axes);
  axes.truth = Truth::unrounded;
  const ErrorsRow unrounded = measured(choice("nothing_rounded"), axes);
  EXPECT_LT(value(given, 0, "rmse"), value(exact, 0, "rmse"));
  EXPECT_LT(value(given, 1, "rmse"), value(exact, 1, "rmse"));
  EXPECT_EQ(value(given, 2, "rmse"), value(exact, 2, "rmse"));
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_LT(value(exact, i, "rmse"), value(unrounded, i, "rmse")) << i;
    EXPECT_TRUE(given.outputs[i].errors.has("error_over_bound_max"));
    EXPECT_FALSE(exact.outputs[i].errors.has("error_over_bound_max"));
  }
  EXPECT_NE(errors_table({exact}).find("inputs gradient_mean_kv_exact_saved:3"), std::string::npos);
}

TEST(GradientErrors, OfAReversedOrderOfKeysAreThoseOfTheSameGradients) {
  for (const Truth truth : {Truth::given, Truth::exact_saved, Truth::unrounded}) {
    ErrorsAxes axes = axes_of("h2 n67 d16 bf16", "normal");
    axes.truth = truth;
    const ErrorsRow drawn = measured(choice("flash"), axes);
    axes.key_orders = {"reversed"};
    const ErrorsRow reversed = measured(choice("flash"), axes);
    for (std::size_t i = 0; i < 3; ++i) {
      const double ratio = value(reversed, i, "relative_l2") / value(drawn, i, "relative_l2");
      EXPECT_EQ(binades(ratio), 0) << i;
    }
  }
}

TEST(GradientErrors, EveryOutputHasARecordAndAMap) {
  const ErrorsRow row =
      measured(tiled(), axes_of("h2 n16 d8 bf16", "normal"), {.axes = {}, .map = true});
  const std::vector<Record> records = records_of(row, "");
  for (const char* tensor : {"dQ", "dK", "dV"}) {
    for (const char* kind : {"errors", "error_map"}) {
      EXPECT_EQ(std::ranges::count_if(records,
                                      [&](const Record& record) {
                                        return record.kind == kind &&
                                               record.labels.at("tensor") == tensor;
                                      }),
                1)
          << tensor << kind;
    }
  }
}

TEST(GradientErrors, ALayerIsMeasuredWithAsManyGradientsAsSets) {
  ErrorsAxes axes = axes_of("n16 d8 bf16", "normal");
  axes.fixed_families = {"normal"};  // stands for a captured layer
  Devices devices;
  EXPECT_EQ(rows_of(axes, {&tiled()}, devices).at(0).sets, axes.sets);
}

TEST(GradientErrors, WhatCannotBeMeasuredIsRefusedInOneLine) {
  ErrorsAxes axes = axes_of("n16 d8", "normal");
  axes.truth = Truth::unrounded;
  axes.key_orders = {"rising"};
  EXPECT_NE(complaint_about(axes).find("a row a key; allowed: drawn, reversed"), std::string::npos);
  EXPECT_NE(complaint_about(axes_of("n16 d8", "partial_normal")).find("fills inputs of combine"),
            std::string::npos);
  ErrorsAxes forward = axes_of("n16 d8 backward", "normal");
  forward.operation = &forward_operation;
  EXPECT_NE(complaint_about(forward).find("asks for backward; allowed: forward"),
            std::string::npos);
  forward = axes_of("n16 d8", "normal");
  forward.operation = &forward_operation;
  forward.truth = Truth::exact_saved;
  EXPECT_NE(complaint_about(forward).find("no input of forward"), std::string::npos);
  EXPECT_THROW((void)errors_defaults(combine_operation), InvalidInput);
  EXPECT_EQ(&operation_of({"n16 d8 backward"}), &backward_operation);
  EXPECT_THROW((void)operation_of({"n16 d8 backward", "n16 d8"}), InvalidInput);
}

}  // namespace
}  // namespace attest
