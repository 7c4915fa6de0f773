#include <benchmark/benchmark.h>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/forward/device_reference.hpp"

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

/// Every element of O and LSE of a kernel's outputs against its bound: the time from host inputs
/// and host outputs to the worst elements. ForwardArguments: length, heads, head_dim, causal.
void check_every_element(benchmark::State& state) {
  if (const std::string reason = why_unavailable(Executor::gpu); !reason.empty()) {
    state.SkipWithError(reason.c_str());
    return;
  }
  const DeviceReference* const reference = find_device_reference(Executor::gpu);
  if (reference == nullptr) {
    state.SkipWithError("built without nvcc");
    return;
  }
  const std::int64_t length = state.range(0), heads = state.range(1), dim = state.range(2);
  const Problem problem{.query_heads = heads,
                        .kv_heads = heads,
                        .query_len = length,
                        .key_len = length,
                        .head_dim = dim,
                        .mask = state.range(3) != 0 ? Mask::causal_top_left : Mask::none,
                        .scale = default_scale(dim)};
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(key_shape(problem)),
                Tensor<float>(key_shape(problem))};
  fill(inputs[forward::q], 1);
  fill(inputs[forward::k], 2);
  fill(inputs[forward::v], 3);
  const Outputs outputs{Tensor<float>(query_shape(problem)),
                        Tensor<float>(Shape{1, heads, length, 1})};
  PrecisionPlan plan;
  plan.blocks = (length + 63) / 64;
  plan.normaliser_chain = length;
  const auto device = make_device(Executor::gpu);
  OutputCheck check;
  for (auto _ : state) check = reference->check(*device, problem, inputs, plan, outputs);
  state.counters["elements"] = static_cast<double>(check.o.elements + check.lse.elements);
  state.counters["flop/s"] =
      benchmark::Counter(forward_flops(problem) * static_cast<double>(state.iterations()),
                         benchmark::Counter::kIsRate);
}
BENCHMARK(check_every_element)
    ->ArgNames({"N", "H", "D", "causal"})
    ->Args({16384, 32, 128, 0})
    ->Args({16384, 32, 128, 1})
    ->Args({4096, 32, 128, 0})
    ->Args({131072, 1, 64, 0})
    ->UseRealTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace attest
