// Problems of backward_operation that give a gradient with respect to LSE (Problem::lse_gradient).
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

const std::string sizes = "backward b3 h4/2 q5 k6 d8";

Problem problem_with(const std::string& rest) {
  return problem_from_string(sizes + ' ' + rest);
}

Inputs inputs_of(const Problem& problem, const std::string& family = "normal",
                 double magnitude = 1) {
  return make_inputs(problem, {.family = family, .seed = 5, .magnitude = magnitude});
}

TEST(LseGradient, OnlyAProblemOfGradientsHasOne) {
  const Problem given = problem_with("dlse_given");
  EXPECT_EQ(given.lse_gradient, LseGradient::given);
  EXPECT_EQ(problem_from_string(to_string(given)), given);
  EXPECT_EQ(problem_with("").lse_gradient, LseGradient::zero);
  EXPECT_EQ(to_string(problem_with("")).find("dlse"), std::string::npos) << "a default is left out";
  EXPECT_THROW((void)problem_from_string("h4/2 n5 d8 dlse_given"), InvalidInput);
}

TEST(LseGradient, IsATensorLikeLseWhereItIsGivenAndElseNone) {
  const Problem given = problem_with("dlse_given"), zero = problem_with("");
  EXPECT_TRUE(has_tensor(given, backward::d_lse));
  EXPECT_EQ(inputs_of(given)[backward::d_lse].shape(), lse_shape(given));
  EXPECT_FALSE(has_tensor(zero, backward::d_lse));
  EXPECT_EQ(inputs_of(zero)[backward::d_lse].size(), 0);
  EXPECT_EQ(tensor_bytes(given) - tensor_bytes(zero), 3 * 4 * 5 * sizeof(float));
}

TEST(LseGradient, ChangesNoOtherInput) {
  for (const InputFamily* family : families_of(backward_operation)) {
    if (!family->head_dims.empty()) continue;
    const Inputs with = inputs_of(problem_with("dlse_given"), family->name);
    const Inputs without = inputs_of(problem_with(""), family->name);
    for (std::size_t i = 0; i < backward::d_lse.number; ++i) {
      EXPECT_TRUE(std::ranges::equal(with[InputIndex{i}].values(), without[InputIndex{i}].values()))
          << family->name << ' ' << i;
    }
  }
}

float largest(const Tensor<float>& tensor) {
  float size = 0;
  for (const float x : tensor.values()) size = std::max(size, std::abs(x));
  return size;
}

TEST(LseGradient, IsAsLargeAsDOInTheFamiliesOfDO) {
  const Problem given = problem_with("dlse_given");
  EXPECT_EQ(largest(inputs_of(given, "gradient_zero")[backward::d_lse]), 0);
  const Inputs one_hot = inputs_of(given, "gradient_one_hot", 16);
  EXPECT_EQ(largest(one_hot[backward::d_lse]), 16);
  EXPECT_EQ(std::ranges::count(one_hot[backward::d_lse].values(), 16.0F), 3 * 4) << "one a head";
  for (const double magnitude : {0x1p-12, 0x1p16}) {
    const Inputs scaled = inputs_of(given, "gradient_scaled", magnitude);
    EXPECT_LT(largest(scaled[backward::d_lse]), 8 * largest(scaled[backward::d_o]));
    EXPECT_GT(8 * largest(scaled[backward::d_lse]), largest(scaled[backward::d_o]));
  }
}

/// Calls look with what a launch of the problem is given.
void look_at_launch(const Problem& problem, const Inputs& inputs,
                    const std::function<void(const BackwardArguments&)>& look) {
  KernelInfo kernel;
  kernel.operation = &backward_operation;
  kernel.launch = [&](const Arguments& a, Device& /*device*/) { look(a); };
  HostMemoryDevice device;
  Session session(kernel, {.problem = problem}, inputs, device);
  session.launch();
}

TEST(LseGradient, AKernelGetsANullPointerWhereThereIsNone) {
  const Problem zero = problem_with("");
  look_at_launch(zero, inputs_of(zero), [](const BackwardArguments& a) {
    EXPECT_EQ(a.d_lse, nullptr);
    EXPECT_NE(a.lse, nullptr);
  });
}

TEST(LseGradient, LiesPackedAsLseDoes) {
  for (const char* const lengths : {"", "lengths4"}) {
    const Problem p = problem_with(std::string("dlse_given ") + lengths);
    Inputs inputs = inputs_of(p);
    for (std::size_t i = 0; i < inputs[backward::lse].values().size(); ++i) {
      inputs[backward::lse].values()[i] = inputs[backward::d_lse].values()[i] =
          static_cast<float>(i);
    }
    look_at_launch(p, inputs, [&](const BackwardArguments& a) {
      const std::int64_t rows =
          a.query_starts == nullptr ? p.batch * p.query_len : std::int64_t{a.query_starts[p.batch]};
      for (std::int64_t i = 0; i < p.query_heads * rows; ++i) EXPECT_EQ(a.d_lse[i], a.lse[i]) << i;
    });
  }
}

}  // namespace
}  // namespace attest
