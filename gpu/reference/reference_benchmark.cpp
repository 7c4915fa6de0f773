#include <benchmark/benchmark.h>

#include <cmath>

#include "core/attention/backward_roundings.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/device_reference.hpp"

namespace attest {
namespace {

/// A cheap stand-in for random_normal: uniform values of variance 1.
void fill(Tensor<float>& tensor, std::uint64_t stream) {
  std::uint64_t state = stream * 0x9e3779b97f4a7c15ULL + 1;
  for (float& x : tensor.values()) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    x = (static_cast<float>(state >> 40) * 0x1p-24F - 0.5F) * 3.4641016F;
  }
}

/// Every element of a kernel's outputs against its bound: the time from host inputs and host
/// outputs to the worst elements. Arguments: length, heads, head_dim, causal.
void check_outputs(benchmark::State& state, const Operation& operation,
                   const Roundings& roundings) {
  if (const std::string reason = why_unavailable(Executor::gpu); !reason.empty()) {
    state.SkipWithError(reason.c_str());
    return;
  }
  const DeviceReference* const reference = find_device_reference(operation, Executor::gpu);
  if (reference == nullptr) {
    state.SkipWithError("built without nvcc");
    return;
  }
  const std::int64_t length = state.range(0), heads = state.range(1), dim = state.range(2);
  const Problem problem{.operation = &operation,
                        .query_heads = heads,
                        .kv_heads = heads,
                        .query_len = length,
                        .key_len = length,
                        .head_dim = dim,
                        .mask = state.range(3) != 0 ? Mask::causal_top_left : Mask::none,
                        .scale = default_scale(dim)};
  Inputs inputs;
  for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
    inputs[{i}] = Tensor<float>(operation[InputIndex{i}].shape(problem));
    fill(inputs[{i}], i + 1);
  }
  if (&operation == &backward_operation) {
    // About that of the scores: weights that add up to 1.
    for (float& lse : inputs[backward::lse].values()) {
      lse = std::log(static_cast<float>(length)) + 0.5F;
    }
  }
  Outputs outputs;
  std::int64_t elements = 0;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    outputs[{i}] = Tensor<float>(operation[OutputIndex{i}].shape(problem));
    elements += outputs[{i}].size();
  }
  const auto device = make_device(Executor::gpu);
  for (auto _ : state) {
    benchmark::DoNotOptimize(reference->check(*device, problem, inputs, roundings, outputs));
  }
  state.counters["elements"] = static_cast<double>(elements);
  state.counters["flop/s"] =
      benchmark::Counter(operation.flops(problem) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}

/// O and LSE.
void check_every_element(benchmark::State& state) {
  PrecisionPlan plan;
  plan.blocks = (state.range(0) + 63) / 64;
  plan.normaliser_chain = state.range(0);
  check_outputs(state, forward_operation, plan);
}
BENCHMARK(check_every_element)
    ->ArgNames({"N", "H", "D", "causal"})
    ->Args({16384, 32, 128, 0})
    ->Args({16384, 32, 128, 1})
    ->Args({4096, 32, 128, 0})
    ->Args({131072, 1, 64, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

/// dQ, dK and dV.
void check_every_gradient(benchmark::State& state) {
  check_outputs(state, backward_operation,
                BackwardRoundings{.dq_chain = state.range(0), .kv_chain = state.range(0)});
}
BENCHMARK(check_every_gradient)
    ->ArgNames({"N", "H", "D", "causal"})
    ->Args({16384, 32, 128, 0})
    ->Args({16384, 32, 128, 1})
    ->Args({4096, 32, 128, 0})
    ->Args({131072, 1, 64, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest
