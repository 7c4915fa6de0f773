#include "experiments/explain/rank_scaling.hpp"

#include <gtest/gtest.h>

#include <algorithm>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/operations/gradient.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/rank_group.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

constexpr RankRates any_rates{.flops_per_s = 1e12, .link_bytes_per_s = 1e9};

/// Bytes that the virtual ranks of a kernel send to others.
std::vector<double> sent_by(const char* name, const Problem& problem, const Plan& plan) {
  Case c{.kernel = name, .problem = problem, .plan = plan};
  c.layouts = ForwardLayouts{};
  HostMemoryDevice device;
  const Inputs inputs = make_inputs(problem, {});
  Session session(*find_kernel(name, Executor::cpu), c, inputs, device);
  const CountedMessages messages;
  session.launch();
  return {messages.sent_bytes().begin(), messages.sent_bytes().end()};
}

RankScaling scaling_of(const char* problem, const char* plan, const RankQuestion& question = {}) {
  return rank_scaling(problem_from_string(problem), plan_from_string(plan),
                      gpu_model_from_name("h200"), question);
}

TEST(RankScaling, BytesOfTheModelAreThoseThatVirtualRanksSend) {
  for (const char* text : {"b2 h4/2 n48 d8 bf16", "b1 h6/3 q7 k31 d16 causal_bottom_right fp32",
                           "b3 h2/1 q1 k5 d8 dv24 fp16", "b1 h8/8 n0 d8 fp16"}) {
    const Problem problem = problem_from_string(text);
    for (const std::int64_t ranks : {1, 2, 3, 8}) {
      for (const std::int64_t distribution : all_distributions) {
        const Plan plan{.key_tile = 16,
                        .normalise = Normalise::at_the_end,
                        .ranks = ranks,
                        .distribution = distribution};
        EXPECT_EQ(ring_times(problem, ranks, distribution, any_rates).sent_bytes,
                  sent_by("n3_ring", problem, plan))
            << text << ' ' << to_string(plan);
        const Plan by_heads{.key_tile = 16, .ranks = ranks, .distribution = distribution};
        EXPECT_EQ(ulysses_times(problem, ranks, distribution, any_rates).sent_bytes,
                  sent_by("n3_ulysses", problem, by_heads))
            << text << ' ' << to_string(by_heads);
      }
    }
  }
}

TEST(RankScaling, TextAndJsonTellTheSameNumbers) {
  const RankScaling s =
      scaling_of("b1 h32/8 n131072 d128 causal_top_left bf16", "r8,distribution=zigzag");
  const RankTimes& ring = s.asked.ring(Distribution::zigzag);
  const Json json = rank_scaling_json(s);
  EXPECT_EQ(json["rows"].size(), 10U);
  EXPECT_EQ(json["asked"]["ring"]["zigzag"]["efficiency"], ring.efficiency());
  EXPECT_EQ(json["asked"]["ring"]["zigzag"], json["rows"][2]["ring"]["zigzag"]);
  const std::string text = rank_scaling_text(s);
  for (const char* part : {"within 5 % of two H200s", "374 of 450 GB/s",
                           "8 ranks, zigzag, 16384 queries", "hides behind the computing",
                           "of more ranks than 8 kv heads some have no work", "  1024 "}) {
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in\n" << text;
  }
}

TEST(RankScaling, ALinkAndARateThatAreGivenAreTaken) {
  const RankScaling s = scaling_of("n65536 d128 bf16", "r16,distribution=contiguous",
                                   {.link = &link_model_from_name("pcie4"), .flops_per_s = 5e14});
  EXPECT_EQ(s.flops_per_s, 5e14);
  EXPECT_EQ(s.asked.link->name, "pcie4");
  EXPECT_EQ(s.asked.break_even[0],
            break_even_queries(s.problem, Distribution::contiguous,
                               {.flops_per_s = 5e14, .link_bytes_per_s = 25e9}));
  EXPECT_NE(rank_scaling_text(s).find("the computing hides behind the exchange, and waits"),
            std::string::npos);
}

TEST(RankScaling, SaysWhyItIsNotKnownAndRefusesTooManyRanks) {
  const RankScaling padded = scaling_of("n64 d64 padding3", "r2,distribution=zigzag");
  EXPECT_NE(rank_scaling_text(padded).find("not known: the model of ranks is about"),
            std::string::npos);
  EXPECT_TRUE(rank_scaling_json(padded).contains("not_known"));
  const RankScaling decode = scaling_of("b2 h8 q1 k4096 d128 bf16", "r2,distribution=zigzag");
  EXPECT_NE(rank_scaling_text(decode).find("not known: memory limits"), std::string::npos);
  const RankScaling window =
      scaling_of("n8192 d64 window_top_left left2048 right0 bf16", "r2,distribution=zigzag");
  EXPECT_NE(rank_scaling_text(window).find("break-even    not known: steps see"),
            std::string::npos);
  Problem other = problem_from_string("n8192 d128 bf16");
  other.operation = &gradient_operation;
  const RankScaling both = rank_scaling(other, plan_from_string("r2,distribution=zigzag"),
                                        gpu_model_from_name("h200"), {});
  EXPECT_NE(rank_scaling_text(both).find("not known: the model of ranks is about forward"),
            std::string::npos);
  EXPECT_THROW((void)scaling_of("n64 d64", "r4097,distribution=zigzag"), InvalidInput);
}

}  // namespace
}  // namespace attest
