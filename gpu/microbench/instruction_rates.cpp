#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/kernels.hpp"
#include "gpu/runtime/device_buffer.hpp"

namespace attest::microbench {

std::vector<Reading> instruction_rates() {
  const int blocks = sm_count(), iterations = 512;
  const DeviceBuffer<std::uint32_t> sink(static_cast<std::size_t>(blocks) * chain_threads);
  const double lanes = 1.0 * iterations * chains * chain_unroll * chain_threads;
  std::vector<Reading> readings;
  for (const Instruction& instruction : instructions()) {
    read_into(readings, instruction.name, {blocks, 5},
              [&](SmSpan* spans) { instruction.launch(blocks, iterations, sink.data(), spans); },
              {{"lanes/clk/SM", [&](const LaunchTime& time) { return lanes / time.clk; }}});
  }
  return readings;
}

}  // namespace attest::microbench
