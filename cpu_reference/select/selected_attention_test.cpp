// What an indexer chooses is what attention takes as its lists of keys.
#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/operations/select_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

Strides contiguous(const Shape& shape) {
  return {shape[1] * shape[2] * shape[3], shape[2] * shape[3], shape[3]};
}

/// The lists that an indexer of the problem gives, in memory as a launch leaves them.
struct Lists {
  std::vector<std::int32_t> keys, counts;
  std::vector<float> scores;
};

Lists chosen(const Problem& problem) {
  const Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 3, .magnitude = 1});
  const auto rows = static_cast<std::size_t>(problem.batch * problem.query_len);
  const auto items = rows * static_cast<std::size_t>(problem.top_k);
  Lists lists{std::vector<std::int32_t>(items), std::vector<std::int32_t>(rows),
              std::vector<float>(items)};
  Arguments a;
  a.problem = problem;
  for (const InputIndex input : {selecting::q, selecting::k, selecting::weights}) {
    a[input] = {inputs[input].values().data(), contiguous(inputs[input].shape())};
  }
  a[selecting::keys].data = lists.keys.data();
  a[selecting::counts].data = lists.counts.data();
  a[selecting::scores].data = lists.scores.data();
  HostMemoryDevice device;
  find_kernel("select_rows", Executor::cpu)->launch(a, device);
  return lists;
}

/// O of attention to the keys of the lists, or to those that a bias leaves.
Tensor<float> attention(const Problem& problem, const KeyLists& lists, const Tensor<float>* bias) {
  Inputs inputs = make_inputs(problem, {.family = "normal", .seed = 5, .magnitude = 1});
  Tensor<float> o(output_shape(problem)), lse(lse_shape(problem));
  ForwardArguments a;
  a.problem = problem;
  a.plan = {.query_tile = 4, .key_tile = 8, .key_splits = 1, .pack_gqa = PackGqa::no};
  a.q = inputs[forward::q].values().data();
  a.k = inputs[forward::k].values().data();
  a.v = inputs[forward::v].values().data();
  a.o = o.values().data();
  a.lse = lse.values().data();
  a.q_strides = contiguous(query_shape(problem));
  a.k_strides = contiguous(key_shape(problem));
  a.v_strides = contiguous(value_shape(problem));
  a.o_strides = contiguous(output_shape(problem));
  a.key_lists = lists;
  if (bias != nullptr) {
    a.bias = bias->values().data();
    a.bias_strides = contiguous(bias->shape());
  }
  HostMemoryDevice device;
  const KernelInfo& kernel = *find_kernel("m6_every_shape", Executor::cpu);
  // By number a launch tells from the problem what it has.
  Problem told = problem;
  if (bias != nullptr) told.bias = Bias::full;
  a.problem = told;
  kernel.launch(a, device);
  return o;
}

TEST(SelectedKeys, AreTheListsOfAttention) {
  const Problem indexer =
      problem_from_string("select b2 h3/1 q5 k40 d16 fp32 causal_bottom_right top6");
  const Problem dense = problem_from_string("b2 h4/2 q5 k40 d16 fp32 causal_bottom_right");
  const Lists lists = chosen(indexer);
  const Tensor<float> sparse = attention(dense,
                                         {.rows = 1,
                                          .keys = 1,
                                          .lists = indexer.query_len,
                                          .room = indexer.top_k,
                                          .items = lists.keys.data(),
                                          .counts = lists.counts.data()},
                                         nullptr);
  constexpr float hidden = -std::numeric_limits<float>::infinity();
  Tensor<float> bias(Shape{2, 4, 5, 40}, hidden);
  for (std::int64_t b = 0; b < 2; ++b) {
    for (std::int64_t n = 0; n < 5; ++n) {
      const auto list = static_cast<std::size_t>(b * 5 + n);
      for (std::size_t i = 0; i < static_cast<std::size_t>(lists.counts[list]); ++i) {
        for (std::int64_t h = 0; h < 4; ++h) bias.at(b, h, n, lists.keys[list * 6 + i]) = 0;
      }
    }
  }
  const Tensor<float> masked = attention(dense, {}, &bias);
  for (std::size_t i = 0; i < sparse.values().size(); ++i) {
    EXPECT_EQ(sparse.values()[i], masked.values()[i]) << i;
    EXPECT_NE(sparse.values()[i], 0.0F);
  }
}

}  // namespace
}  // namespace attest
