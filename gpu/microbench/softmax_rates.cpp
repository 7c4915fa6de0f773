#include <fmt/format.h>

#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/kernels.hpp"
#include "gpu/runtime/device_buffer.hpp"

namespace attest::microbench {

std::vector<Reading> softmax_rates() {
  const int blocks = sm_count(), steps = 1024;
  const DeviceBuffer<float> sink(static_cast<std::size_t>(blocks) * 384);
  std::vector<Reading> readings;
  for (const int emulated : {0, 1, 2, 3, 4, 8}) {
    for (const int groups : {1, 2, 3}) {
      const int threads = groups * 128;
      read_into(readings, fmt::format("{:.1f} % emulated, {} WG", emulated * 12.5, groups),
                {blocks, 5},
                [&](SmSpan* spans) {
                  launch_softmaxes(emulated, blocks, threads, steps, sink.data(), spans);
                },
                {{"scores/clk/SM",
                  [&](const LaunchTime& time) { return 64.0 * steps * threads / time.clk; }}});
    }
  }
  return readings;
}

}  // namespace attest::microbench
