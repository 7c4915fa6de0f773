#include <gtest/gtest.h>

#include <algorithm>

#include "core/attention/distribution.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/records/case.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

Outputs outputs_of(const char* name, const Problem& problem, const Plan& plan,
                   const Inputs& inputs) {
  HostMemoryDevice device;
  Case c;
  c.problem = problem;
  c.plan = plan;
  c.layouts = ForwardLayouts{};
  Session session(*find_kernel(name, Executor::cpu), c, inputs, device);
  session.launch();
  return session.read_outputs();
}

/// Row n of the result is row order[n].
Tensor<float> reordered(const Tensor<float>& from, const std::vector<std::int64_t>& order) {
  Tensor<float> to(from.shape());
  for (std::int64_t h = 0; h < from.shape()[1]; ++h) {
    for (std::size_t n = 0; n < order.size(); ++n) {
      std::ranges::copy(from.row(0, h, order[n]),
                        to.row(0, h, static_cast<std::int64_t>(n)).begin());
    }
  }
  return to;
}

// Which keys a row has met at a step is a matter of ranks alone.
TEST(Ring, ZigzagAndStripeHaveTheBitsOfContiguousPartsInTheirOrder) {
  const Problem problem{.query_heads = 2, .query_len = 24, .key_len = 24, .head_dim = 8};
  const Inputs inputs = make_inputs(problem, {});
  for (const std::int64_t distribution : {Distribution::zigzag, Distribution::stripe}) {
    for (const std::int64_t normalise : {Normalise::at_the_end, Normalise::every_step}) {
      Plan plan{.key_tile = 3, .normalise = normalise, .ranks = 3, .distribution = distribution};
      std::vector<std::int64_t> order;
      for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
        const auto tokens = tokens_of_rank(distribution, problem.query_len, plan.ranks, rank);
        order.insert(order.end(), tokens.begin(), tokens.end());
      }
      const Outputs outputs = outputs_of("n3_ring", problem, plan, inputs);
      Inputs moved = inputs;
      for (const InputIndex index : {forward::q, forward::k, forward::v}) {
        moved[index] = reordered(inputs[index], order);
      }
      plan.distribution = Distribution::contiguous;
      const Outputs of_moved = outputs_of("n3_ring", problem, plan, moved);
      for (const OutputIndex index : {forward::o, forward::lse}) {
        EXPECT_TRUE(std::ranges::equal(of_moved[index].values(),
                                       reordered(outputs[index], order).values()));
      }
    }
  }
}

// No sum is cut by the exchange of heads.
TEST(Ulysses, HasTheSameBitsHoweverManyRanksThereAre) {
  const Problem problem{.batch = 2,
                        .query_heads = 6,
                        .kv_heads = 3,
                        .query_len = 9,
                        .key_len = 17,
                        .head_dim = 8,
                        .mask = Mask::causal_bottom_right};
  const Inputs inputs = make_inputs(problem, {});
  const Outputs one =
      outputs_of("n3_ulysses", problem, {.key_tile = 4, .ranks = 1, .distribution = 1}, inputs);
  for (const std::int64_t distribution :
       {Distribution::contiguous, Distribution::zigzag, Distribution::stripe}) {
    for (const std::int64_t ranks : {2, 4, 7}) {
      const Outputs many =
          outputs_of("n3_ulysses", problem,
                     {.key_tile = 4, .ranks = ranks, .distribution = distribution}, inputs);
      for (const OutputIndex index : {forward::o, forward::lse}) {
        EXPECT_TRUE(std::ranges::equal(many[index].values(), one[index].values()));
      }
    }
  }
}

}  // namespace
}  // namespace attest
