#include <benchmark/benchmark.h>

#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/forward/reference_f64.hpp"

namespace attest {
namespace {

struct Sample {
  Problem problem;
  Inputs inputs;
  PrecisionPlan plan;
};

Sample normal_sample(std::int64_t length, std::int64_t head_dim) {
  Sample sample;
  Problem& problem = sample.problem;
  problem = {.query_len = length,
             .key_len = length,
             .head_dim = head_dim,
             .scale = default_scale(head_dim)};
  sample.inputs = {Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                   Tensor<float>(key_shape(problem))};
  std::uint64_t stream = 0;
  for (auto* tensor :
       {&sample.inputs[forward::q], &sample.inputs[forward::k], &sample.inputs[forward::v]}) {
    std::uint64_t index = 0;
    for (float& x : tensor->values()) x = static_cast<float>(random_normal(1, stream, index++));
    ++stream;
  }
  sample.plan.blocks = (length + 63) / 64;
  sample.plan.normaliser_chain = length;
  return sample;
}

/// O, LSE, both bounds and own errors on one core; flop/s counts 4 N N D.
void exact_answer_of(benchmark::State& state) {
  const Sample sample = normal_sample(state.range(0), state.range(1));
  for (auto _ : state)
    benchmark::DoNotOptimize(exact_answer(sample.problem, sample.inputs, sample.plan));
  state.counters["flop/s"] =
      benchmark::Counter(forward_flops(sample.problem) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(exact_answer_of)
    ->ArgNames({"N", "D"})
    ->ArgsProduct({{512, 2048}, {64, 128}})
    ->ArgsProduct({{16, 100}, {32, 64}})
    ->Unit(benchmark::kMillisecond);

/// One row by the 113-bit oracle.
void certify_one_row(benchmark::State& state) {
  const Sample sample = normal_sample(state.range(0), state.range(1));
  const Answer answer = exact_answer(sample.problem, sample.inputs, sample.plan);
  std::uint64_t seed = 0;
  for (auto _ : state) {
    benchmark::DoNotOptimize(certify_rows(sample.problem, sample.inputs, answer, seed++, 1));
  }
}
BENCHMARK(certify_one_row)
    ->ArgNames({"N", "D"})
    ->Args({100, 64})
    ->Args({2048, 64})
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest
