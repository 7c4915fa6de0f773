#include "core/records/case.hpp"

#include <gtest/gtest.h>

#include <string>

#include "core/attention/problem_field_test.hpp"
#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"

namespace attest {
namespace {

Case a_case() {
  return {.kernel = "k3",
          .problem = {.batch = 2,
                      .query_heads = 6,
                      .kv_heads = 2,
                      .query_len = 33,
                      .key_len = 0,
                      .head_dim = 59,
                      .mask = Mask::causal_bottom_right,
                      .element_type = ElementType::bf16,
                      .scale = 0.1F},
          .plan = {.query_tile = 16, .key_tile = 8},
          .layouts = ForwardLayouts{.q = {DimOrder::bnhd, 3, 1},
                                    .k = {.order = DimOrder::nhbd,
                                          .plane_gap = 5,
                                          .lone_stride = std::int64_t{1} << 33},
                                    .v = {.outer_gap = std::int64_t{1} << 31},
                                    .o = {DimOrder::bhnd, 0, 7}},
          .inputs = {.family = "huge_logits",
                     .seed = ~0ULL,
                     .magnitude = 1e10,
                     .round_to_integers = true},
          .schedule_seed = 0x8000000000000001ULL};
}

std::string message_of(std::string text) {
  try {
    (void)case_from_json(text, "file.json");
  } catch (const InvalidInput& error) {
    return error.what();
  }
  return "accepted";
}

/// The JSON of a_case() with one piece of text exchanged.
std::string with(const std::string& from, const std::string& to) {
  std::string text = to_json(a_case());
  const std::size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Case, ExtrasOfTheProblemSurviveJson) {
  Case c = a_case();
  c.problem.mask = Mask::window_top_left;
  c.problem.window = {.left = 0, .right = 9};
  c.problem.value_dim = 24;
  c.problem.softcap = 30;
  c.problem.length_seed = ~0ULL;
  c.problem.padding_seed = 1;
  EXPECT_EQ(case_from_json(to_json(c), "file.json"), c);
}

TEST(Case, EachFieldOfTheProblemSurvivesJsonAndIsCheckedInIt) {
  Case c = a_case();
  for (const ProblemField& field : problem_fields()) {
    const std::string key = '"' + std::string(field.name) + '"';
    c.problem = problem_with_other(field);
    c.layouts = {};  // those of another operation's tensors are no part of the case
    EXPECT_NE(to_json(c).find(key), std::string::npos) << to_json(c);
    EXPECT_EQ(case_from_json(to_json(c), "test"), c) << field.name;
    set_default(field, c.problem);
    EXPECT_EQ(to_json(c).find(key) != std::string::npos, field.is_required()) << to_json(c);
    if (is_valid(c.problem)) {
      EXPECT_EQ(case_from_json(to_json(c), "test"), c) << field.name;
    }
    for (const Problem& problem : problems_out_of_range(field)) {
      c.problem = problem;
      const std::string complaint = message_of(to_json(c));
      EXPECT_TRUE(complaint.starts_with("file.json: ")) << complaint;
      EXPECT_NE(complaint.find('\'' + std::string(field.name) + '\''), std::string::npos)
          << complaint;
      EXPECT_EQ(complaint.find('\n'), std::string::npos) << complaint;
    }
  }
}

TEST(Case, JsonReadsBackAsTheSameCase) {
  EXPECT_EQ(case_from_json(to_json(a_case()), "test"), a_case());
}

TEST(Case, AFaultyFileGetsOneLineThatNamesFileKeyValueAndWhatIsAllowed) {
  EXPECT_EQ(message_of("{"), "file.json: not JSON at byte 2; a case written by attest is expected");
  EXPECT_EQ(message_of(with("\"batch\": 2", "\"batch\": \"two\"")),
            "file.json: problem: 'batch' is \"two\"; allowed: an integer from 0 to 1099511627776");
  // Converted unseen it becomes -1, which is allowed: an open side of a window.
  EXPECT_EQ(message_of(with("\"mask\"", "\"window_left\": 18446744073709551615, \"mask\"")),
            "file.json: problem: 'window_left' is 18446744073709551615; allowed: an integer from "
            "-1 to 1099511627776");
  EXPECT_EQ(message_of(with("\"batch\": 2", "\"batch\": 0")),
            "file.json: problem field 'batch' is 0; allowed: 1 to 1048576");
  EXPECT_EQ(message_of(with("\"kv_heads\": 2", "\"kv_heads\": 4")),
            "file.json: problem field 'kv_heads' is 4; it must divide query_heads, 6");
  EXPECT_EQ(
      message_of(with("causal_bottom_right", "causal")),
      "file.json: mask 'causal' is unknown; allowed: none, causal_top_left, causal_bottom_right, "
      "window_top_left, window_bottom_right");
  EXPECT_EQ(
      message_of(with("\"head_dim\"", "\"headdim\"")),
      "file.json: problem: key 'head_dim' is missing; keys that are there: batch, query_heads, "
      "kv_heads, query_len, key_len, headdim, mask, element_type, scale");
  EXPECT_EQ(
      message_of(with("\"head_dim\"", "\"headdim\": 8, \"head_dim\"")),
      "file.json: problem: key 'headdim' is unknown; allowed: operation, batch, "
      "query_heads, kv_heads, query_len, key_len, head_dim, value_dim, values, mask, window_left, "
      "window_right, element_type, scale, softcap, length_seed, padding_seed, shared_keys, parts, "
      "partial_type, top_k, dlse, q_code, k_code, v_code, q_scales, k_scales, v_scales, "
      "scale_format, "
      "sinks, slopes, bias, prefix_seed, document_seed, list_seed, list_rows, list_keys, dropout, "
      "dropout_seed, dropout_offset, gate, residual");
  EXPECT_EQ(
      message_of(with("\"nhbd\"", "\"dhnb\"")),
      "file.json: layouts.k: order 'dhnb' is unknown; allowed: bhnd, bnhd, hbnd, hnbd, nbhd, nhbd");
  EXPECT_EQ(message_of(with("\"outer_gap\": 2147483648", "\"outer_gap\": -1")),
            "file.json: layouts.v: 'outer_gap' is -1; allowed: an integer from 0 to 17179869184");
  EXPECT_EQ(message_of(with("\"order\"", "\"batch_gap\": 1, \"order\"")),
            "file.json: layouts.q: key 'batch_gap' is unknown; allowed: order, row_gap, "
            "base_offset, plane_gap, outer_gap, lone_stride");
  EXPECT_EQ(
      message_of(with("\"kernel\": \"k3\",", "")),
      "file.json: key 'kernel' is missing; keys that are there: problem, plan, layouts, inputs, "
      "schedule_seed");
  EXPECT_EQ(message_of(with("\"seed\": 18446744073709551615", "\"seed\": -1")),
            "file.json: inputs: 'seed' is -1; allowed: an integer from 0 to 2^64 - 1");
}

TEST(Case, TheFileKeyIsSafeInAnyFileSystem) {
  for (const char letter : file_key(a_case())) {
    EXPECT_TRUE(std::isalnum(static_cast<unsigned char>(letter)) || letter == '_' || letter == '.');
  }
}

}  // namespace
}  // namespace attest
