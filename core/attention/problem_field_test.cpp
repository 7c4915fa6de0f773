#include "core/attention/problem_field.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "core/attention/problem_field_test.hpp"

namespace attest {
namespace {

std::string quoted(std::string_view name) {
  return '\'' + std::string(name) + '\'';
}

TEST(ProblemFields, AreTheMembersOfProblemOfItsWindowAndOfItsCodes) {
  const Problem problem;
  // A new member does not compile here: it wants a row of problem_fields() and a name in this list.
  [[maybe_unused]] const auto& [operation, batch, query_heads, kv_heads, query_len, key_len,
                                head_dim, value_dim, values, mask, window, element_type, scale,
                                softcap, length_seed, padding_seed, shared_keys, parts,
                                partial_type, top_k, lse_gradient, codes, sinks, slopes, bias,
                                prefix_seed, document_seed, list_seed, list_rows, list_keys,
                                dropout, dropout_seed, dropout_offset, gate, residual] = problem;
  [[maybe_unused]] const auto& [left, right] = window;
  [[maybe_unused]] const auto& [q, k, v, q_scales, k_scales, v_scales, scale_format] = codes;
  constexpr std::size_t members = 35, sides = 2, of_codes = 7;
  EXPECT_EQ(problem_fields().size(), members - 2 + sides + of_codes);
  for (const ProblemField& field : problem_fields()) {
    EXPECT_NE(problem_with_other(field), problem_having(field)) << field.name;
    for (const ProblemField& other : problem_fields()) {
      const bool is_same = &field == &other;
      EXPECT_EQ(field.member == other.member, is_same) << field.name << ", " << other.name;
      EXPECT_EQ(field.name == other.name, is_same) << field.name;
      EXPECT_EQ(field.axis_name() == other.axis_name(), is_same) << field.name;
    }
  }
}

TEST(ProblemFields, EachReadsBackFromTextAsItWas) {
  for (const ProblemField& field : problem_fields()) {
    const Problem problem = problem_with_other(field);
    EXPECT_EQ(problem_from_string(to_string(problem)), problem) << to_string(problem);
    EXPECT_EQ(value_from(field, text_of(field, problem)), value_of(field, problem)) << field.name;
    EXPECT_FALSE(value_from(field, text_of(field, problem) + "x")) << field.name;
    EXPECT_FALSE(value_from(field, "")) << field.name;
  }
}

TEST(ProblemFields, ADefaultIsLeftOutOfTextUnlessItIsAlwaysWritten) {
  for (const ProblemField& field : problem_fields()) {
    Problem problem = problem_with_other(field);
    const std::string part = std::string(field.prefix) + text_of(field, problem);
    EXPECT_NE(to_string(problem).find(part), std::string::npos) << to_string(problem);
    set_default(field, problem);
    EXPECT_TRUE(has_default(field, problem)) << field.name;
    const std::string prefix = ' ' + std::string(field.prefix);
    if (field.is_always_written || field.kind() == FieldKind::choice) continue;
    EXPECT_EQ(to_string(problem).find(prefix), std::string::npos) << to_string(problem);
    EXPECT_EQ(problem_from_string(to_string(problem)), problem) << to_string(problem);
  }
}

TEST(ProblemFields, AValueOutOfRangeIsRefusedByOneLineThatNamesTheField) {
  for (const ProblemField& field : problem_fields()) {
    for (const Problem& problem : problems_out_of_range(field)) {
      const std::string complaint = complaint_of([&] { validate(problem); });
      EXPECT_NE(complaint.find(quoted(field.name)), std::string::npos) << complaint;
      EXPECT_NE(complaint.find("allowed: "), std::string::npos) << complaint;
      EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
    }
    if (field.kind() != FieldKind::choice) continue;
    Problem problem;
    const std::string complaint = complaint_of([&] { set_value(field, problem, "no such"); });
    for (const std::string_view choice : field.choices) {
      EXPECT_NE(complaint.find(choice), std::string::npos) << complaint;
    }
  }
}

TEST(ProblemFields, OneThatAProblemHasNotMustHaveItsDefault) {
  for (const ProblemField& field : problem_fields()) {
    if (field.belongs_to == nullptr) continue;
    Problem problem = problem_lacking(field);
    set_value(field, problem, value_of(field, problem_with_other(field)));
    EXPECT_FALSE(is_valid(problem)) << field.name;
  }
}

TEST(ProblemFields, AnUnknownPartOfATextIsAnsweredWithAPartForEach) {
  const std::string complaint = complaint_of([] { (void)problem_from_string("x8"); });
  for (const ProblemField& field : problem_fields()) {
    if (field.prefix.empty()) {  // words, all of them
      for (const std::string_view choice : field.choices) {
        EXPECT_NE(complaint.find(fmt::format(" {}", choice)), std::string::npos) << complaint;
      }
      continue;
    }
    EXPECT_NE(complaint.find(' ' + std::string(field.example)), std::string::npos) << complaint;
    const std::size_t value = field.example.rfind(field.prefix) + field.prefix.size();
    EXPECT_TRUE(value_from(field, field.example.substr(value))) << field.example;
  }
}

TEST(ProblemFields, WithoutItsFeatureAProblemDoesNotNeedIt) {
  const Problem plain = usual_problem();
  for (const ProblemField& field : problem_fields()) {
    EXPECT_FALSE(uses_feature(field, plain)) << field.name;
    Problem problem = plain;
    take_feature_away(field, problem);
    EXPECT_EQ(problem, plain) << field.name;
    if (!field.feature) continue;
    problem = problem_using(field);
    take_feature_away(field, problem);
    EXPECT_FALSE(uses_feature(field, problem)) << field.name;
    EXPECT_TRUE(is_valid(problem)) << field.name;
  }
}

// Plugins that are built already know these names.
TEST(ProblemFields, KernelsAreToldOfEachByANameThatNeverChanges) {
  std::map<std::string_view, std::variant<std::int64_t, double>> told;
  const Problem problem = problem_from_string(
      "b2 h6/3 q9 k7 d16 fp16 window_top_left left4 scale0.5 softcap30 padding9");
  for (const ProblemField& field : problem_fields()) {
    const FieldForKernels value = for_kernels(field, problem);
    EXPECT_TRUE(told.emplace(value.name, value.value).second) << value.name;
  }
  using Sizes = std::map<std::string_view, std::int64_t>;
  for (const auto& [name, size] : Sizes{{"batch", 2},
                                        {"query_heads", 6},
                                        {"kv_heads", 3},
                                        {"query_len", 9},
                                        {"key_len", 7},
                                        {"head_dim", 16},
                                        {"value_dim", 16},
                                        {"mask", 3},
                                        {"window_left", 4},
                                        {"window_right", -1},
                                        {"element_type", 1},
                                        {"lengths", 0},
                                        {"padding", 1}}) {
    EXPECT_EQ(std::get<std::int64_t>(told.at(name)), size) << name;
  }
  EXPECT_EQ(std::get<double>(told.at("scale")), problem.scale);
  EXPECT_EQ(std::get<double>(told.at("softcap")), problem.softcap);
}

}  // namespace
}  // namespace attest
