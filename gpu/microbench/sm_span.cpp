#include "gpu/microbench/sm_span.hpp"

#include <algorithm>
#include <vector>

#include "core/base/error.hpp"
#include "gpu/runtime/cuda_error.hpp"
#include "gpu/runtime/device_buffer.hpp"

namespace attest::microbench {
namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int sm_count() {
  int count = 0;
  ATTEST_CUDA_CHECK(cudaDeviceGetAttribute(&count, cudaDevAttrMultiProcessorCount, 0));
  return count;
}

LaunchTime time_launch(int blocks, const Launch& launch) {
  const DeviceBuffer<SmSpan> device(static_cast<std::size_t>(blocks));
  launch(device.data());
  ATTEST_CUDA_CHECK(cudaGetLastError());
  ATTEST_CUDA_CHECK(cudaDeviceSynchronize());
  std::vector<SmSpan> spans(device.size());
  device.copy_to(spans);
  LaunchTime time;
  std::vector<std::int64_t> sms;
  std::int64_t first = spans[0].begin_ns, last = spans[0].end_ns;
  for (const SmSpan& span : spans) {
    const auto clk = static_cast<double>(span.end_clk - span.begin_clk);
    time.clk += clk / blocks;
    time.clock_mhz += 1e3 * clk / static_cast<double>(span.end_ns - span.begin_ns) / blocks;
    time.work += static_cast<double>(span.work);
    first = std::min(first, span.begin_ns);
    last = std::max(last, span.end_ns);
    sms.push_back(span.sm);
  }
  time.work /= blocks;
  time.seconds = 1e-9 * static_cast<double>(last - first);
  std::sort(sms.begin(), sms.end());
  if (std::adjacent_find(sms.begin(), sms.end()) != sms.end()) {
    throw MachineError("two blocks of a microbenchmark ran on one SM");
  }
  return time;
}

void read_into(std::vector<Reading>& readings, const std::string& name, const Repeats& repeats,
               const Launch& launch, const std::vector<Quantity>& quantities) {
  time_launch(repeats.blocks, launch);
  std::vector<LaunchTime> times;
  std::vector<double> clocks;
  for (int i = 0; i < repeats.launches; ++i) {
    times.push_back(time_launch(repeats.blocks, launch));
    clocks.push_back(times.back().clock_mhz);
  }
  for (const Quantity& quantity : quantities) {
    std::vector<double> values;
    for (const LaunchTime& time : times) values.push_back(quantity.of(time));
    const auto [lowest, highest] = std::minmax_element(values.begin(), values.end());
    readings.push_back(
        {name, median(values), quantity.unit, *lowest, *highest, repeats.launches, median(clocks)});
  }
}

}  // namespace attest::microbench
