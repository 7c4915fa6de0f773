#include <fmt/format.h>

#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/bf16_values.hpp"
#include "gpu/microbench/kernels.hpp"

namespace attest::microbench {
namespace {

const char* name_of(OperandA a) {
  return a == OperandA::shared ? "SS" : a == OperandA::registers ? "RS" : "RS, B transposed";
}

struct Product {
  int n;
  OperandA a;
  int groups;
};

constexpr double tensor_flop_per_clk = 4096;  // of an SM, 16-bit factors

double flops_of(const Product& p) {
  return 2.0 * 64 * p.n * 128 * p.groups;
}

std::size_t values_of(const Product& p) {
  return static_cast<std::size_t>(p.groups * 64 + 2 * p.n) * 128;
}

/// FLOP per clk over 2,048 steps, about a millisecond: the clock does not matter.
void read_rate(std::vector<Reading>& readings, const Product& p, const DeviceBuffer<float>& sink) {
  const int blocks = sm_count(), steps = 2048;
  const auto values = bf16_values(values_of(p), Values::zero);
  read_into(
      readings, fmt::format("{} m64n{}k16, {} WG", name_of(p.a), p.n, p.groups), {blocks, 3},
      [&](SmSpan* spans) {
        launch_products(p.n, p.a, blocks, p.groups, steps, values.data(), sink.data(), spans);
      },
      {{"FLOP/clk/SM", [&](const LaunchTime& time) { return flops_of(p) * steps / time.clk; }}});
}

/// TFLOP/s once the power limit rules: launches of 60 ms, the first five not counted.
void read_sustained(std::vector<Reading>& readings, const Product& p, Values values,
                    const DeviceBuffer<float>& sink) {
  const int blocks = sm_count();
  const auto numbers = bf16_values(values_of(p), values);
  const int steps = static_cast<int>(0.06 * 1.7e9 / (flops_of(p) / tensor_flop_per_clk));
  const Launch launch = [&](SmSpan* spans) {
    launch_products(p.n, p.a, blocks, p.groups, steps, numbers.data(), sink.data(), spans);
  };
  for (int i = 0; i < 4; ++i) time_launch(blocks, launch);
  read_into(
      readings,
      fmt::format("{} m64n{}k16, {} WG, {}, 0.5 s", name_of(p.a), p.n, p.groups, name_of(values)),
      {blocks, 4}, launch, {{"TFLOP/s", [&](const LaunchTime& time) {
                               return 1e-12 * flops_of(p) * steps * blocks / time.seconds;
                             }}});
}

}  // namespace

std::vector<Reading> wgmma_peak() {
  const DeviceBuffer<float> sink(static_cast<std::size_t>(sm_count()) * 384);
  std::vector<Reading> readings;
  for (const OperandA a :
       {OperandA::shared, OperandA::registers, OperandA::registers_b_transposed}) {
    for (const int n : {64, 128, 176, 192, 256}) {
      if (a == OperandA::registers_b_transposed && n == 176)
        continue;  // whole panels of 64 columns only
      for (const int groups : {1, 2, 3}) {
        if (a != OperandA::shared && n == 256 && groups == 3) continue;  // too few registers
        read_rate(readings, {n, a, groups}, sink);
      }
    }
  }
  for (const Values values : {Values::normal, Values::zero}) {
    for (const Product& p : {Product{64, OperandA::shared, 3},
                             {128, OperandA::shared, 1},
                             {128, OperandA::shared, 2},
                             {128, OperandA::shared, 3},
                             {176, OperandA::shared, 2},
                             {256, OperandA::shared, 2},
                             {128, OperandA::registers_b_transposed, 2},
                             {256, OperandA::registers_b_transposed, 2}}) {
      read_sustained(readings, p, values, sink);
    }
  }
  return readings;
}

}  // namespace attest::microbench
