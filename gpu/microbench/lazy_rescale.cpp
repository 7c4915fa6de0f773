#include <fmt/format.h>

#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/kernels.hpp"
#include "gpu/runtime/device_buffer.hpp"

namespace attest::microbench {

std::vector<Reading> lazy_rescale() {
  struct Form {
    const char* name;
    Rescale rescale;
    float slack;
  };
  const int blocks = sm_count(), steps = 1024;
  const DeviceBuffer<float> sink(static_cast<std::size_t>(blocks) * 256);
  std::vector<Reading> readings;
  for (const int groups : {1, 2}) {
    for (const Form& form :
         {Form{"never", Rescale::never, 0}, Form{"asked, not needed", Rescale::on_demand, 1e30F},
          Form{"asked, needed", Rescale::on_demand, 0}, Form{"always", Rescale::always, 0}}) {
      read_into(readings, fmt::format("{}, {} WG", form.name, groups), {blocks, 5},
                [&](SmSpan* spans) {
                  launch_rescales(form.rescale, blocks, groups * 128, steps, form.slack,
                                  sink.data(), spans);
                },
                {{"clk/tile", [&](const LaunchTime& time) { return time.clk / steps; }}});
    }
  }
  return readings;
}

}  // namespace attest::microbench
