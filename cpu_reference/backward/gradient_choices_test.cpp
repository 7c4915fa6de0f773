// What each rounding of a backward pass reaches, and that all of them are what their bounds say.
#include "cpu_reference/backward/gradient_choices.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "core/attention/backward_roundings.hpp"
#include "core/inputs/input_family.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "cpu_reference/backward/gradient_test.hpp"
#include "cpu_reference/reference.hpp"
#include "cpu_reference/same_bits.hpp"

namespace attest {
namespace {

/// Keys past two tiles of 64 by a prime, a group of two heads.
const Problem& grouped() {
  static const Problem problem = backward_problem("b1 h2/1 q37 k137 d16 causal_bottom_right bf16");
  return problem;
}

const KernelInfo& choice(const std::string& name) {
  static const std::vector<KernelInfo> choices = gradient_choices();
  const auto found = std::ranges::find(choices, "choice/bwd_" + name, &KernelInfo::name);
  if (found == choices.end()) throw std::logic_error("no choice " + name);
  return *found;
}

Outputs outputs_of(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                   const Inputs& inputs) {
  const auto device = make_device(Executor::cpu);
  const Case c{.kernel = kernel.name, .problem = problem, .plan = plan};
  Session session(kernel, c, inputs, *device);
  session.launch();
  return session.read_outputs();
}

Outputs outputs_of(const std::string& name, const Problem& problem, const Inputs& inputs) {
  return outputs_of(choice(name), problem, {.query_tile = 64, .key_tile = 64}, inputs);
}

bool same(const Outputs& a, const Outputs& b, OutputIndex output) {
  return same_bits(a[output].values(), b[output].values());
}

TEST(GradientChoices, FlashHasTheBitsOfTheTiledKernel) {
  for (const char* text : {"b2 h2/2 q37 k137 d16 causal_bottom_right bf16",
                           "b1 h2/2 q19 k70 d8 window_top_left left9 right4 fp16 softcap2",
                           "b2 h2/2 q9 k11 d8 none bf16 lengths5 dlse_given"}) {
    const Problem problem = backward_problem(text);
    const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 3});
    const KernelInfo& tiled = *find_kernel("backward_tiled", Executor::cpu);
    for (const Plan& plan : tiled.plans(problem)) {
      const Outputs flash = outputs_of(choice("flash"), problem, plan, inputs);
      const Outputs want = outputs_of(tiled, problem, plan, inputs);
      for (std::size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(same(flash, want, OutputIndex{i})) << text << ' ' << to_string(plan) << i;
      }
    }
  }
}

TEST(GradientChoices, ARoundingChangesWhatItEntersAndNothingElse) {
  struct Reach {
    std::string name;
    bool dq, dk, dv;
  };
  const std::vector<Reach> reaches{{"p_rounded", false, false, true},
                                   {"ds_rounded", true, true, false},
                                   {"flash", true, true, true},
                                   {"lse_rounded", true, true, true},
                                   {"delta_rounded", true, true, false},
                                   {"dq_sums_rounded", true, false, false},
                                   {"dq_parts_rounded", true, false, false},
                                   {"kv_parts_rounded", false, true, true}};
  const Inputs inputs = make_inputs(grouped(), {.family = "normal", .seed = 5});
  const Outputs nothing = outputs_of("nothing_rounded", grouped(), inputs);
  for (const Reach& reach : reaches) {
    const Outputs rounded = outputs_of(reach.name, grouped(), inputs);
    EXPECT_NE(same(rounded, nothing, backward::dq), reach.dq) << reach.name;
    EXPECT_NE(same(rounded, nothing, backward::dk), reach.dk) << reach.name;
    EXPECT_NE(same(rounded, nothing, backward::dv), reach.dv) << reach.name;
  }
  const Outputs flash = outputs_of("flash", grouped(), inputs);
  const Outputs from_rounded = outputs_of("ds_of_rounded_p", grouped(), inputs);
  EXPECT_FALSE(same(from_rounded, flash, backward::dq));
  EXPECT_TRUE(same(from_rounded, flash, backward::dv));
}

/// The largest error of each output, over its bound.
std::vector<double> ratios(const Answer& answer, const Outputs& got) {
  std::vector<double> worst(3, 0);
  for (std::size_t i = 0; i < 3; ++i) {
    const OutputIndex output{i};
    for (std::int64_t e = 0; e < answer[output].value.size(); ++e) {
      const auto at = static_cast<std::size_t>(e);
      const double error = std::abs(got[output].values()[at] - answer[output].value.values()[at]);
      const double ratio = error == 0 ? 0 : error / answer[output].bound.values()[at];
      if (!(ratio <= worst[i])) worst[i] = ratio;
    }
  }
  return worst;
}

TEST(GradientChoices, EachIsWithinItsBoundAndWhatRoundsMoreIsAllowedMore) {
  for (const ElementType type : {ElementType::fp16, ElementType::bf16}) {
    Problem problem = grouped();
    problem.element_type = type;
    const Plan plan{.query_tile = 64, .key_tile = 64};
    for (const char* family : {"normal", "gradient_mean_kv", "gradient_along_o", "outliers"}) {
      const Inputs inputs = make_inputs(problem, {.family = family, .seed = 11});
      const auto answer_for = [&](const KernelInfo& kernel) {
        return reference_of(backward_operation)
            .exact(problem, inputs, kernel.precision(problem, plan));
      };
      const Answer most = answer_for(choice("all_rounded"));
      const Answer least = answer_for(choice("nothing_rounded"));
      for (const KernelInfo& kernel : gradient_choices()) {
        const Answer answer = answer_for(kernel);
        for (const double ratio : ratios(answer, outputs_of(kernel, problem, plan, inputs)))
          EXPECT_LE(ratio, 1) << kernel.name << ' ' << family;
        // Integers are added exactly, and what is lost before does not grow with the sum.
        if (kernel.name == "choice/bwd_dq_sums_in_units") continue;
        for (std::size_t i = 0; i < 3; ++i) {
          const auto& bound = answer[OutputIndex{i}].bound.values();
          for (std::size_t e = 0; e < bound.size(); ++e) {
            ASSERT_LE(least[OutputIndex{i}].bound.values()[e], bound[e]) << kernel.name;
            ASSERT_LE(bound[e], most[OutputIndex{i}].bound.values()[e]) << kernel.name;
          }
        }
      }
    }
  }
}

TEST(GradientChoices, OnAKeyOfWhichNoRowSeesAnythingAllAre0) {
  const Problem problem = backward_problem("b1 h2/1 q5 k70 d8 causal_top_left bf16");
  const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 2});
  for (const KernelInfo& kernel : gradient_choices()) {
    const Outputs got = outputs_of(kernel, problem, {.query_tile = 64, .key_tile = 64}, inputs);
    for (const OutputIndex output : {backward::dk, backward::dv}) {
      for (std::int64_t key = 5; key < 70; ++key) {
        for (const float x : got[output].row(0, 0, key)) EXPECT_EQ(x, 0) << kernel.name;
      }
    }
  }
}

}  // namespace
}  // namespace attest
