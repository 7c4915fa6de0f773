#include "experiments/tuning/suites.hpp"

#include <fmt/format.h>

#include <array>
#include <initializer_list>
#include <string>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

/// 16,384 tokens and 2,048 columns of all heads, whatever the length [FA3, section 4.1].
std::vector<Problem> fa3_grid(ElementType type, std::initializer_list<std::int64_t> lengths,
                              std::int64_t group = 1) {
  std::vector<Problem> problems;
  for (const std::int64_t head_dim : {64, 128, 256}) {
    for (const Mask mask : {Mask::none, Mask::causal_bottom_right}) {
      for (const std::int64_t length : lengths) {
        const std::int64_t heads = 2048 / head_dim;
        problems.push_back({.batch = 16384 / length,
                            .query_heads = heads,
                            .kv_heads = heads / group,
                            .query_len = length,
                            .key_len = length,
                            .head_dim = head_dim,
                            .mask = mask,
                            .element_type = type,
                            .scale = default_scale(head_dim)});
      }
    }
  }
  return problems;
}

std::vector<Problem> from_texts(std::initializer_list<std::string_view> texts) {
  std::vector<Problem> problems;
  for (const std::string_view text : texts) problems.push_back(problem_from_string(text));
  return problems;
}

std::vector<Problem> fa3() {
  return fa3_grid(ElementType::bf16, {512, 1024, 2048, 4096, 8192, 16384});
}

std::vector<Problem> fa3_fp16() {
  return fa3_grid(ElementType::fp16, {1024, 4096, 16384});
}

std::vector<Problem> ladder() {
  std::vector<Problem> problems;
  for (const std::string_view mask : {"none", "causal_top_left"}) {
    for (const int length : {512, 1024, 4096}) {
      problems.push_back(problem_from_string(fmt::format("b8 h12 n{} d64 {} fp32", length, mask)));
    }
  }
  return problems;
}

std::vector<Problem> grouped() {
  return fa3_grid(ElementType::bf16, {4096}, 8);
}

/// The drawn lengths of experiments/grid_shapes.py.
std::vector<Problem> lengths() {
  std::vector<Problem> problems = fa3_grid(ElementType::bf16, {4096});
  for (Problem& problem : problems) {
    problem.batch = 16;
    problem.length_seed = 1;
  }
  return problems;
}

std::vector<Problem> serving() {
  return from_texts({"b4 h32/4 q512 k8192 d128 causal_bottom_right bf16",
                     "b8 h32/4 q1 k8192 d128 causal_bottom_right bf16",
                     "b8 h32/32 q1 k8192 d128 causal_bottom_right bf16"});
}

/// One query a sequence: short and long, few sequences and many, query heads that share a kv head
/// and that do not.
std::vector<Problem> decode() {
  std::vector<Problem> problems;
  for (const std::string_view text :
       {"b1 h32/8 q1 k1024", "b1 h32/8 q1 k4096", "b1 h32/8 q1 k8192", "b1 h32/8 q1 k16384",
        "b1 h32/8 q1 k65536", "b1 h32/8 q1 k131072", "b16 h32/8 q1 k4096", "b64 h32/8 q1 k4096",
        "b128 h64/8 q1 k8192", "b16 h32/32 q1 k4096", "b64 h32/8 q1 k1024", "b256 h32/8 q1 k512",
        "b64 h16/1 q1 k8192"}) {
    problems.push_back(problem_from_string(fmt::format("{} d128 none bf16", text)));
  }
  return problems;
}

std::vector<Problem> features() {
  return from_texts({"b4 h16 n4096 d128 window_bottom_right bf16 left1023 right0",
                     "b4 h16 n4096 d128 causal_bottom_right bf16 softcap50",
                     "b4 h16 n4096 d128 none bf16 padding1",
                     "b4 h16 n4096 d192 causal_bottom_right bf16 dv128"});
}

/// Small enough for every executor.
std::vector<Problem> quick() {
  std::vector<Problem> problems;
  for (const std::string_view type : {"fp32", "fp16", "bf16"}) {
    for (const std::string_view mask : {"none", "causal_bottom_right"}) {
      problems.push_back(problem_from_string(fmt::format("b1 h2 n256 d64 {} {}", mask, type)));
    }
  }
  return problems;
}

constexpr std::array<Suite, 9> suites{{
    {"fa3", "the 36 problems of the FA3 paper's figures, bf16", fa3},
    {"fa3_fp16", "the same in fp16, at three lengths", fa3_fp16},
    {"grouped", "the same at one length, eight query heads a KV head", grouped},
    {"lengths", "the same, entries with lengths of their own", lengths},
    {"serving", "few queries or one, many keys", serving},
    {"decode", "one query a sequence, 512 to 131,072 keys", decode},
    {"features", "window, softcap, padding, a value_dim of its own", features},
    {"ladder", "fp32, 8 x 12 heads, head_dim 64", ladder},
    {"quick", "one small problem of each element type, full and causal", quick},
}};

}  // namespace

std::span<const Suite> all_suites() {
  return suites;
}

std::vector<Problem> problems_of_suite(std::string_view name) {
  std::string names;
  for (const Suite& suite : suites) {
    if (suite.name == name) return suite.problems();
    names += fmt::format("{}{}", names.empty() ? "" : ", ", suite.name);
  }
  throw InvalidInput(fmt::format("--suite '{}' is unknown; allowed: {}", printable(name), names));
}

}  // namespace attest
