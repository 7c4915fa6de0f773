#include "plugin/arguments.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include "core/attention/problem_field_test.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/combine.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/select.hpp"

namespace attest {
namespace {

bool is_same(const AttestProblem& a, const AttestProblem& b) {
  return std::memcmp(&a, &b, sizeof a) == 0;
}

TEST(PluginProblem, EveryFieldOfAProblemReachesTheKernel) {
  for (const ProblemField& field : problem_fields()) {
    if (field.name == "operation") continue;  // the kernel named it
    // Formats and shapes of tensors say it.
    if (field.name.ends_with("_code") || field.name.ends_with("_scales")) continue;
    if (field.name == "scale_format") continue;
    if (field.name == "bias") continue;  // its strides, too
    EXPECT_FALSE(
        is_same(to_c(problem_having(field), nullptr), to_c(problem_with_other(field), nullptr)))
        << field.name;
  }
}

TEST(PluginProblem, FieldsStandWhereTheHeaderSays) {
  int here = 0;
  const AttestProblem p =
      to_c(problem_from_string("b3 h6/2 q9 k7 d16 window_bottom_right bf16 left4 right2 dv32 "
                               "scale0.5 softcap30 lengths7 padding9"),
           &here);
  EXPECT_EQ(p.size, sizeof p);
  EXPECT_TRUE(attest_is(p.element_type, ATTEST_BFLOAT, 16));
  EXPECT_EQ(p.mask, ATTEST_WINDOW_BOTTOM_RIGHT);
  EXPECT_EQ(p.scale, 0.5F);
  EXPECT_EQ(p.batch, 3);
  EXPECT_EQ(p.query_heads, 6);
  EXPECT_EQ(p.kv_heads, 2);
  EXPECT_EQ(p.query_len, 9);
  EXPECT_EQ(p.key_len, 7);
  EXPECT_EQ(p.head_dim, 16);
  EXPECT_EQ(p.value_dim, 32);
  EXPECT_EQ(p.window_left, 4);
  EXPECT_EQ(p.window_right, 2);
  EXPECT_EQ(p.softcap, 30.0F);
  EXPECT_EQ(p.has_lengths, 1U);
  EXPECT_EQ(p.has_padding, 1U);
  EXPECT_EQ(p.user_data, &here);
}

TEST(PluginProblem, WithoutAValueDimTheHeadDimIsTold) {
  EXPECT_EQ(to_c(Problem{.head_dim = 24}, nullptr).value_dim, 24);
}

TEST(PluginFormat, EveryFormatHasTheNumbersOfDlpack) {
  EXPECT_TRUE(attest_is(to_c(ElementType::fp32), 2, 32));
  EXPECT_TRUE(attest_is(to_c(ElementType::fp16), 2, 16));
  EXPECT_TRUE(attest_is(to_c(ElementType::bf16), 4, 16));
  for (const ElementType type : all_element_types()) {
    EXPECT_EQ(to_c(type).bits, 8 * format_of(type).size_bytes);
    EXPECT_EQ(element_type_of(to_c(type)), type);
  }
  EXPECT_FALSE(element_type_of(AttestFormat ATTEST_TF32));
  EXPECT_FALSE(element_type_of({ATTEST_FLOAT, 32, 4}));
}

}  // namespace

namespace {

Arguments arguments_of(const Problem& problem) {
  Arguments arguments;
  arguments.problem = problem;
  return arguments;
}

/// A run with these tensors; nothing else is set.
AttestRun run_with(const PluginTensors& tensors) {
  AttestRun run{};
  run.tensors = tensors.data();
  run.tensor_count = tensors.size();
  return run;
}

std::vector<std::string> names_in(const PluginTensors& tensors) {
  std::vector<std::string> names;
  for (const AttestTensor* tensor : std::span(tensors.data(), tensors.size())) {
    names.emplace_back(tensor->name);
  }
  return names;
}

TEST(PluginTensors, AKernelGetsTheTensorsOfItsOperation) {
  using Names = std::vector<std::string>;
  EXPECT_EQ(names_in(PluginTensors(arguments_of({}))), (Names{"q", "k", "v", "o", "lse"}));
  EXPECT_EQ(names_in(PluginTensors(arguments_of({.operation = &combine_operation}))),
            (Names{"partial_o", "partial_lse", "o", "lse"}));
  const Names of_gradients{"q", "k", "v", "o", "lse", "do", "dq", "dk", "dv"};
  EXPECT_EQ(names_in(PluginTensors(arguments_of({.operation = &backward_operation}))),
            of_gradients);
  const Names with_dlse{"q", "k", "v", "o", "lse", "do", "dlse", "dq", "dk", "dv"};
  EXPECT_EQ(names_in(PluginTensors(arguments_of(
                {.operation = &backward_operation, .lse_gradient = LseGradient::given}))),
            with_dlse);
  const Names with_sinks{"q", "k", "v", "o", "lse", "do", "sinks", "dq", "dk", "dv", "dsinks"};
  EXPECT_EQ(names_in(PluginTensors(
                arguments_of({.operation = &backward_operation, .sinks = Sinks::given}))),
            with_sinks);
  const Names with_bias{"q", "k", "v", "o", "lse", "do", "bias", "dq", "dk", "dv", "dbias"};
  EXPECT_EQ(
      names_in(PluginTensors(arguments_of({.operation = &backward_operation, .bias = Bias::full}))),
      with_bias);
}

TEST(PluginTensors, AChoiceOfNoKeyHasNoListsButTheirCounts) {
  using Names = std::vector<std::string>;
  Arguments a = arguments_of(
      {.operation = &select_operation, .batch = 2, .query_len = 3, .key_len = 5, .top_k = 4});
  EXPECT_EQ(names_in(PluginTensors(a)), (Names{"q", "k", "weights", "keys", "counts", "scores"}));
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  EXPECT_TRUE(std::ranges::equal(attest_tensor(&run, "keys")->shape,
                                 std::vector<std::int64_t>{2, 1, 3, 4}));
  EXPECT_TRUE(attest_is(attest_tensor(&run, "keys")->format, ATTEST_INT, 32));
  a.problem.top_k = 0;
  EXPECT_EQ(names_in(PluginTensors(a)), (Names{"q", "k", "weights", "counts"}));
}

TEST(PluginTensors, ATensorIsFoundByItsNameAndSaysWhatItIs) {
  std::vector<float> memory(1);
  Arguments a = arguments_of({.batch = 2,
                              .query_heads = 4,
                              .kv_heads = 2,
                              .query_len = 3,
                              .key_len = 5,
                              .head_dim = 8,
                              .value_dim = 16,
                              .element_type = ElementType::fp16});
  a[forward::v] = {memory.data(), {.batch = 1000, .head = 100, .row = 20}};
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  const AttestTensor* v = attest_tensor(&run, "v");
  ASSERT_NE(v, nullptr);
  EXPECT_EQ(v->size, sizeof *v);
  EXPECT_EQ(v->data, memory.data());
  EXPECT_EQ(v->role, ATTEST_INPUT);
  EXPECT_TRUE(attest_is(v->format, ATTEST_FLOAT, 16));
  EXPECT_TRUE(std::ranges::equal(v->shape, std::vector<std::int64_t>{2, 2, 5, 16}));
  EXPECT_TRUE(std::ranges::equal(v->strides, std::vector<std::int64_t>{1000, 100, 20, 1}));
  EXPECT_EQ(v->storage, ATTEST_STRIDED);
  EXPECT_EQ(attest_offset(v, 1, 1, 2), 1140);
  EXPECT_EQ(attest_tensor(&run, "lse")->role, ATTEST_OUTPUT);
  EXPECT_TRUE(attest_is(attest_tensor(&run, "lse")->format, ATTEST_FLOAT, 32));
  EXPECT_EQ(attest_tensor(&run, "lse")->data, nullptr) << "of a kernel that does not give it";
  EXPECT_EQ(attest_tensor(&run, "key_mask"), nullptr);
  EXPECT_EQ(attest_tensor(&run, "qq"), nullptr);
}

TEST(PluginTensors, LengthsPackTheRowsAndPaddingBringsAMask) {
  Arguments a =
      arguments_of({.batch = 3, .query_len = 9, .key_len = 7, .length_seed = 5, .padding_seed = 8});
  const std::vector<std::int32_t> queries = query_starts(a.problem), keys = key_starts(a.problem);
  const std::vector<std::uint8_t> mask(21);
  a.query_starts = queries.data();
  a.key_starts = keys.data();
  a.key_mask = mask.data();
  a[forward::k].strides = {.batch = 7, .head = 1000, .row = 10};
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  const AttestTensor *q = attest_tensor(&run, "q"), *k = attest_tensor(&run, "k");
  EXPECT_EQ(k->storage, ATTEST_PACKED);
  EXPECT_EQ(q->starts, queries.data());
  EXPECT_EQ(k->starts, keys.data());
  EXPECT_TRUE(std::ranges::equal(k->shape, std::vector<std::int64_t>{1, 1, keys.back(), 64}));
  EXPECT_EQ(attest_offset(k, 2, 1, 3), 1000 + 10 * (keys[2] + 3));
  const AttestTensor* starts = attest_tensor(&run, "key_starts");
  ASSERT_NE(starts, nullptr);
  EXPECT_EQ(starts->data, keys.data());
  EXPECT_EQ(starts->role, ATTEST_INDEX);
  EXPECT_TRUE(attest_is(starts->format, ATTEST_INT, 32));
  EXPECT_TRUE(std::ranges::equal(starts->shape, std::vector<std::int64_t>{1, 1, 4, 1}));
  EXPECT_EQ(attest_tensor(&run, "query_starts")->data, queries.data());
  const AttestTensor* key_mask = attest_tensor(&run, "key_mask");
  ASSERT_NE(key_mask, nullptr);
  EXPECT_EQ(key_mask->data, mask.data());
  EXPECT_TRUE(attest_is(key_mask->format, ATTEST_UINT, 8));
  EXPECT_EQ(attest_offset(key_mask, 2, 0, 1), 15);
}

TEST(PluginTensors, ASharedBiasHasStridesOfZero) {
  Arguments a = arguments_of(
      {.batch = 3, .query_heads = 2, .query_len = 4, .key_len = 5, .bias = Bias::heads});
  a[forward::bias].strides = {.batch = 40, .head = 20, .row = 5};
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  const AttestTensor* bias = attest_tensor(&run, "bias");
  ASSERT_NE(bias, nullptr);
  EXPECT_TRUE(std::ranges::equal(bias->shape, std::vector<std::int64_t>{3, 2, 4, 5}));
  EXPECT_TRUE(std::ranges::equal(bias->strides, std::vector<std::int64_t>{0, 20, 5, 1}));
  EXPECT_EQ(attest_tensor(&run, "sinks"), nullptr);
}

TEST(PluginTensors, AGateAndAResidualAreTensorsLikeOWithStridesOfTheirOwn) {
  Arguments a = arguments_of({.batch = 3,
                              .query_heads = 2,
                              .query_len = 4,
                              .value_dim = 5,
                              .element_type = ElementType::bf16,
                              .length_seed = 5,
                              .gate = OutputGate::given});
  const std::vector<std::int32_t> queries = query_starts(a.problem);
  a.query_starts = queries.data();
  a[forward::gate].strides = {.batch = 1000, .head = 5, .row = 10};
  a[forward::o].strides = {.batch = 1000, .head = 100, .row = 7};
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  const AttestTensor *gate = attest_tensor(&run, "gate"), *o = attest_tensor(&run, "o");
  ASSERT_NE(gate, nullptr);
  EXPECT_EQ(gate->role, ATTEST_INPUT);
  EXPECT_TRUE(std::ranges::equal(gate->shape, o->shape));
  EXPECT_TRUE(attest_is(gate->format, ATTEST_BFLOAT, 16));
  EXPECT_EQ(gate->storage, ATTEST_PACKED);
  EXPECT_EQ(attest_offset(gate, 2, 1, 3), 5 + 10 * (queries[2] + 3));
  EXPECT_EQ(attest_offset(o, 2, 1, 3), 100 + 7 * (queries[2] + 3));
  EXPECT_EQ(attest_tensor(&run, "residual"), nullptr);
  a.problem.gate = OutputGate::none;
  a.problem.residual = Residual::given;
  const PluginTensors others(a);
  const AttestRun other_run = run_with(others);
  EXPECT_EQ(attest_tensor(&other_run, "gate"), nullptr);
  EXPECT_NE(attest_tensor(&other_run, "residual"), nullptr);
}

TEST(PluginTensors, ListsComeWithTheirCounts) {
  Arguments a = arguments_of(
      {.batch = 3, .query_len = 9, .key_len = 20, .list_seed = 5, .list_rows = 4, .list_keys = 8});
  const std::vector<std::int32_t> items(18), counts(9);
  a.key_lists = {
      .rows = 4, .keys = 8, .lists = 3, .room = 2, .items = items.data(), .counts = counts.data()};
  const PluginTensors tensors(a);
  const AttestRun run = run_with(tensors);
  const AttestTensor *of = attest_tensor(&run, "list_items"),
                     *sizes = attest_tensor(&run, "list_counts");
  ASSERT_NE(of, nullptr);
  EXPECT_EQ(of->data, items.data());
  EXPECT_TRUE(std::ranges::equal(of->shape, std::vector<std::int64_t>{3, 1, 3, 2}));
  EXPECT_EQ(attest_offset(of, 2, 0, 1), 14);
  EXPECT_EQ(sizes->data, counts.data());
  EXPECT_TRUE(std::ranges::equal(sizes->shape, std::vector<std::int64_t>{3, 1, 3, 1}));
}

}  // namespace

}  // namespace attest
