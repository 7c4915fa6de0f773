#include "experiments/tuning/device_bench.hpp"

#include <algorithm>
#include <cmath>

namespace attest {

std::optional<std::string> DeviceBench::why_wrong(const Plan& plan) {
  if (auto reason = small_cases_.why_wrong(kernel_, resident_.problem(), plan)) return reason;
  return resident_.sample(kernel_, plan).why_wrong();
}

double DeviceBench::time_ms(const Plan& plan) {
  constexpr double shortest_timing_ms = 2;  // far above the clock's half microsecond
  const auto timed = [&](int launches) { return resident_.time_ms(kernel_, plan, launches); };
  const auto [launches, is_first] = launches_.try_emplace(to_string(plan), 1);
  if (is_first) {
    (void)timed(1);  // the first launch loads its machine code
    const double once = std::max(timed(1), 1e-3);
    launches->second = static_cast<int>(std::max(1.0, std::ceil(shortest_timing_ms / once)));
  }
  return timed(launches->second);
}

}  // namespace attest
