#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/run/registry.hpp"
#include "cpu_reference/device_reference.hpp"
#include "cpu_reference/reference.hpp"
#include "cpu_reference/rounding/relative_error.hpp"

namespace attest {

inline void expect_same_output(const OutputAnswer& got, const OutputAnswer& want,
                               const std::string& what) {
  ASSERT_EQ(got.value.shape(), want.value.shape()) << what;
  for (std::size_t i = 0; i < want.value.values().size(); ++i) {
    const double x = got.value.values()[i], y = want.value.values()[i];
    const double bound = got.bound.values()[i], other = want.bound.values()[i];
    const double error = got.own_error.values()[i], of_other = want.own_error.values()[i];
    if (std::isnan(y)) {
      ASSERT_TRUE(std::isnan(x) && std::isnan(bound)) << what << ' ' << i;
      continue;
    }
    ASSERT_TRUE(x == y || std::abs(x - y) <= error + of_other)
        << what << ' ' << i << ": " << x << " and " << y << ", own errors " << error << " and "
        << of_other;
    ASSERT_TRUE(bound == other ||
                (bound <= other * evaluation_slack && other <= bound * evaluation_slack))
        << what << ' ' << i << ": bounds " << bound << " and " << other;
  }
}

/// Both are within their own error of the truth, so they are within the sum of each other. Bound
/// quantities differ by the order of sums, which evaluation_slack allows for.
inline void expect_same_answer(const Operation& operation, const Answer& got, const Answer& want,
                               const std::string& what) {
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    const OutputIndex output{i};
    expect_same_output(got[output], want[output],
                       what + ' ' + std::string(operation[output].label));
  }
}

/// The reference of one operation on one executor.
class OnExecutor {
 public:
  OnExecutor(const Operation& operation, Executor executor) : operation_(operation) {
    reason_ = why_unavailable(executor);
    reference_ = find_device_reference(operation, executor);
    if (reference_ == nullptr && reason_.empty()) reason_ = "built without it";
    if (reason_.empty()) device_ = make_device(executor);
  }
  /// Why it is missing; empty: it is not.
  [[nodiscard]] const std::string& reason() const { return reason_; }
  [[nodiscard]] const DeviceReference& reference() const { return *reference_; }
  [[nodiscard]] Device& device() { return *device_; }

  /// Answer of the device, which must find nothing to complain of.
  Answer answer(const Problem& problem, const Inputs& inputs, const Roundings& roundings,
                const std::string& what) {
    Answer got = reference_->answer(*device_, problem, inputs, roundings);
    for (const Finding& finding : device_->take_findings()) {
      ADD_FAILURE() << what << ' ' << finding.kind << ": " << finding.message;
    }
    return got;
  }

  void expect_agreement(const Problem& problem, const Inputs& inputs, const Roundings& roundings,
                        const std::string& what) {
    const std::string where = what + ' ' + to_string(problem);
    const Answer got = answer(problem, inputs, roundings, where);
    const Reference& on_cpu = reference_of(operation_);
    expect_same_answer(operation_, got, on_cpu.exact(problem, inputs, roundings), where);
    const Certificate certificate = on_cpu.certify(problem, inputs, got, 5, 3);
    EXPECT_TRUE(certificate.holds()) << where << ": " << certificate.worst_ratio;
  }

  /// Expects that the CPU's answer, rounded to fp32 and nothing else, is within its bounds, and
  /// that of elements that are not, the worst is found, and no other.
  void expect_worst_found(const Problem& problem, const Inputs& inputs,
                          const Roundings& roundings) {
    const Answer answer = reference_of(operation_).exact(problem, inputs, roundings);
    Outputs outputs;
    for (std::size_t i = 0; i < answer.size(); ++i) {
      const Tensor<double>& exact = answer[{i}].value;
      outputs[{i}] = Tensor<float>(exact.shape());
      for (std::size_t e = 0; e < exact.values().size(); ++e) {
        outputs[{i}].values()[e] = static_cast<float>(exact.values()[e]);
      }
    }
    const auto check = [&] {
      WorstOutputs worst = reference_->check(*device_, problem, inputs, roundings, outputs);
      expect_same_worst(check_resident(problem, inputs, roundings, outputs), worst);
      return worst;
    };
    const WorstOutputs right = check();
    for (std::size_t i = 0; i < answer.size(); ++i) {
      const OutputIndex output{i};
      EXPECT_EQ(right[output].elements, outputs[output].size());
      if (!has_tensor(problem, output)) continue;
      EXPECT_LE(right[output].ratio, 1);
      const Tensor<float> before = outputs[output];
      const Shape at = last_of(before.shape()), first{};
      outputs[output].at(at[0], at[1], at[2], at[3]) += 1;
      WorstOutputs wrong = check();
      EXPECT_GT(wrong[output].ratio, 1);
      EXPECT_EQ(wrong[output].index, at);
      outputs[output].at(0, 0, 0, 0) = std::numeric_limits<float>::quiet_NaN();
      wrong = check();
      EXPECT_EQ(wrong[output].ratio, std::numeric_limits<double>::infinity());
      EXPECT_EQ(wrong[output].index, first);
      outputs[output] = before;
    }
  }

 private:
  /// The tensors on the device, their rows from the last to the first.
  template <typename Index>
  IndexedList<DeviceTensor, Index> with_rows_reversed(
      const IndexedList<Tensor<float>, Index>& tensors) {
    IndexedList<DeviceTensor, Index> there;
    for (std::size_t i = 0; i < tensors.size(); ++i) {
      const Tensor<float>& tensor = tensors[Index{i}];
      const Shape& shape = tensor.shape();
      const std::int64_t rows = shape[0] * shape[1] * shape[2], columns = shape[3];
      DeviceTensor& one = there[Index{i}];
      one.shape = shape;
      if (tensor.size() == 0) continue;
      std::vector<float> reversed(tensor.values().size());
      for (std::int64_t row = 0; row < rows; ++row) {
        one.rows.push_back((rows - 1 - row) * columns);
        std::copy_n(tensor.values().begin() + row * columns, columns,
                    reversed.begin() + one.rows.back());
      }
      one.data = device_->upload_values(std::as_bytes(std::span(reversed)));
    }
    return there;
  }
  WorstOutputs check_resident(const Problem& problem, const Inputs& inputs,
                              const Roundings& roundings, const Outputs& outputs) {
    const DeviceInputs read = with_rows_reversed(inputs);
    const DeviceOutputs given = with_rows_reversed(outputs);
    WorstOutputs worst = reference_->check_resident(*device_, problem, read, roundings, given);
    const auto release = [&](const DeviceTensor& one) {
      if (one.data != nullptr) device_->release(const_cast<std::byte*>(one.data));
    };
    std::ranges::for_each(read, release);
    std::ranges::for_each(given, release);
    return worst;
  }
  static void expect_same_worst(const WorstOutputs& got, const WorstOutputs& want) {
    ASSERT_EQ(got.size(), want.size());
    for (std::size_t i = 0; i < want.size(); ++i) {
      const WorstOutput &x = got[{i}], &y = want[{i}];
      EXPECT_EQ(x.index, y.index);
      EXPECT_EQ(x.ratio, y.ratio);
      EXPECT_EQ(x.elements, y.elements);
      EXPECT_EQ(x.want, y.want);
      EXPECT_EQ(x.bound, y.bound);
    }
  }
  static Shape last_of(const Shape& shape) {
    return {shape[0] - 1, shape[1] - 1, shape[2] - 1, shape[3] - 1};
  }

  const Operation& operation_;
  std::string reason_;
  const DeviceReference* reference_ = nullptr;
  std::unique_ptr<Device> device_;
};

/// Tests of one executor: skipped with the reason where it is missing.
template <const Operation& operation, Executor executor>
class DeviceReferenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!on_.reason().empty()) GTEST_SKIP() << on_.reason();
  }
  OnExecutor on_{operation, executor};
};

/// A test of the fixtures Simt##name and Gpu##name.
#define ATTEST_ON_BOTH(name, title, body) \
  TEST_F(Simt##name, title) {             \
    body(on_);                            \
  }                                       \
  TEST_F(Gpu##name, title) {              \
    body(on_);                            \
  }

}  // namespace attest
