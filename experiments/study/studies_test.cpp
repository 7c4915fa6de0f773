// The studies that are shipped, and the files that are made from the table of keys.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "core/base/glob.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/shipped_studies.hpp"

namespace attest {
namespace {

std::string text_of(const std::string& path) {
  std::ifstream file(std::filesystem::path(ATTEST_SOURCE_DIR) / path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

StudySpec spec_of(const ShippedStudy& study) {
  const ParsedStudy parsed = parse_study(study.text, study.name);
  for (const StudyError& error : parsed.errors) ADD_FAILURE() << to_string(error, study.name);
  return parsed.spec.value_or(StudySpec{});
}

ExpansionContext without_gpu() {
  ExpansionContext context{.gpu = &gpu_model_from_name("h200")};
  context.launches_of = [](const KernelInfo&, const Problem&, const Plan&, const LaunchSetting&) {
    return std::vector<LaunchConfiguration>{{.kernel = "k", .grid = {}, .block = {.x = 128}}};
  };
  return context;
}

TEST(ShippedStudies, Ask_a_question_whose_answer_can_be_checked_within_their_budgets) {
  double budget_s = 0;
  for (const ShippedStudy& study : shipped_studies()) {
    const StudySpec spec = spec_of(study);
    EXPECT_EQ(spec.name, study.name);
    EXPECT_FALSE(spec.claims.empty()) << study.name;
    EXPECT_FALSE(spec.expect.empty()) << study.name;
    EXPECT_FALSE(spec.plots.empty()) << study.name;
    EXPECT_TRUE(study.text.starts_with("# yaml-language-server: $schema=study.schema.json\n"))
        << study.name;
    ASSERT_TRUE(spec.time_budget_s.has_value()) << study.name;
    budget_s += *spec.time_budget_s;
  }
  EXPECT_GE(shipped_studies().size(), 12U);
  // Limits, about twice what the studies take there: one that ends for its budget says nothing.
  EXPECT_LE(budget_s, 3600) << "what the machine with the GPU is asked for in all";
}

TEST(ShippedStudies, Have_points_of_each_of_their_kernels_without_a_gpu) {
  for (const ShippedStudy& study : shipped_studies()) {
    const StudySpec spec = spec_of(study);
    const Expansion expansion = expand(spec, without_gpu());
    for (const std::string& glob : spec.kernels) {
      const bool has_points = std::ranges::any_of(expansion.points, [&](const Point& point) {
        return matches_glob(point.kernel->name, glob);
      });
      EXPECT_TRUE(has_points) << study.name << ": " << glob;
    }
  }
}

TEST(ShippedStudies, The_example_of_the_reference_is_right) {
  const std::string readme = text_of("experiments/study/README.md");
  const std::size_t begin = readme.find("```yaml\n") + 8;
  const std::string example = readme.substr(begin, readme.find("```\n", begin) - begin);
  EXPECT_LE(std::ranges::count(example, '\n'), 13) << "short enough for a newcomer";
  const StudySpec spec = spec_of({"example", example});
  EXPECT_GE(expand(spec, without_gpu()).points.size(), 10U);
}

TEST(ShippedStudies, The_json_schema_is_that_of_the_table_of_keys) {
  EXPECT_EQ(text_of("experiments/studies/study.schema.json"), study_json_schema())
      << "attest study schema > experiments/studies/study.schema.json";
}

TEST(ShippedStudies, The_reference_is_that_of_the_table_of_keys) {
  EXPECT_NE(text_of("experiments/study/README.md").find(study_key_table()), std::string::npos)
      << "the table in experiments/study/README.md is the output of attest study keys";
}

}  // namespace
}  // namespace attest
