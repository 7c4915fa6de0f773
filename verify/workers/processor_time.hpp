#pragma once

#include <sys/types.h>

#include <chrono>

namespace attest {

/// What the main thread of a process has had of the processors since it began [Linux, sched-stats].
struct ProcessorTime {
  std::chrono::duration<double> ran{}, queued{};
  bool is_ready = false;  ///< runs, or waits for a processor
  bool is_known = false;  ///< false: the kernel does not tell, or there is no such process
};
[[nodiscard]] ProcessorTime processor_time(pid_t process);

/// How much of `passed`, the time between the two, the thread ran or slept, and did not wait for a
/// processor. At least; all of it where nothing is known.
[[nodiscard]] std::chrono::duration<double> used(const ProcessorTime& before,
                                                 const ProcessorTime& now,
                                                 std::chrono::duration<double> passed);

}  // namespace attest
