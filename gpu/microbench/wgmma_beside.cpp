#include <fmt/format.h>

#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/bf16_values.hpp"
#include "gpu/microbench/kernels.hpp"

namespace attest::microbench {
namespace {

/// Warpgroups of a block.
struct Groups {
  int tensor, others;
};

}  // namespace

std::vector<Reading> wgmma_beside() {
  const int blocks = sm_count();
  const DeviceBuffer<float> sink(static_cast<std::size_t>(blocks) * 512);
  std::vector<Reading> readings;
  for (const Beside& work : works_beside()) {
    const auto values =
        bf16_values(static_cast<std::size_t>(2 * 64 + 2 * work.n) * 128, Values::zero);
    const bool is_usual_product = work.n == 128 && !work.a_in_registers;
    for (const Groups& groups :
         {Groups{0, 1}, {0, 2}, {0, 3}, {1, 1}, {1, 2}, {1, 3}, {2, 1}, {2, 2}}) {
      const auto [tensor, others] = groups;
      if (tensor == 0 && !is_usual_product) continue;      // alone, the product does not matter
      if (work.n == 256 && tensor + others > 3) continue;  // too few registers
      const int steps = tensor > 0 ? 400'000 / work.n / tensor : 1000;
      const double flops = 2.0 * 64 * work.n * 128 * tensor * steps;
      std::vector<Quantity> quantities{
          {work.unit, [](const LaunchTime& time) { return time.work / time.clk; }}};
      if (tensor > 0) {
        quantities.push_back(
            {"FLOP/clk/SM", [=](const LaunchTime& time) { return flops / time.clk; }});
      }
      const std::string where = groups.tensor == 0
                                    ? "alone"
                                    : fmt::format("beside {} WG of {} m64n{}k16", tensor,
                                                  work.a_in_registers ? "RS" : "SS", work.n);
      read_into(
          readings, fmt::format("{}, {} WG {}", work.name, others, where), {blocks, 2},
          [&](SmSpan* spans) {
            work.launch(blocks, groups.tensor, groups.others, steps, values.data(), sink.data(),
                        spans);
          },
          quantities);
    }
  }
  return readings;
}

}  // namespace attest::microbench
