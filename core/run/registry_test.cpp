#include "core/run/registry.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/attention/problem_field_test.hpp"

namespace attest {
namespace {

TEST(Registry, AKernelRefusesTheFeaturesThatItDoesNotOfferByNameAndSentence) {
  KernelInfo kernel;
  kernel.name = "some";
  kernel.element_types = {ElementType::fp32};
  kernel.masks = {Mask::none};
  EXPECT_EQ(why_unsupported(kernel, usual_problem(), {}), std::nullopt);
  for (const ProblemField& field : problem_fields()) {
    if (!field.feature) continue;
    const Problem problem = problem_using(field);
    kernel.operation = problem.operation;
    const Codes& codes = problem.codes;
    kernel.codes = {.q = {codes.q},
                    .k = {codes.k},
                    .v = {codes.v},
                    .q_scales = {codes.q_scales},
                    .k_scales = {codes.k_scales},
                    .v_scales = {codes.v_scales}};
    kernel.features = {};
    EXPECT_EQ(why_unsupported(kernel, problem, {}), "some " + std::string(field.feature->refusal));
    kernel.features.*field.feature->flag = true;
    EXPECT_EQ(why_unsupported(kernel, problem, {}), std::nullopt) << field.name;
  }
}

}  // namespace
}  // namespace attest
