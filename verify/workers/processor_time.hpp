#pragma once

#include <sys/types.h>

#include <chrono>
#include <vector>

namespace attest {

/// Processes that its main thread started and that are there: a kernel may run in one.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);

/// Time that the main threads of a process and of its children have had of the processors since
/// they began [Linux, sched-stats]. One of them works while the others wait for it.
struct ProcessorTime {
  std::chrono::duration<double> ran{}, queued{};
  bool is_ready = false;  ///< runs, or waits for a processor
  bool is_known = false;  ///< false: the kernel does not tell, or there is no such process
};
/// Sum over the process and its children as they are now; those that are gone are left out.
[[nodiscard]] ProcessorTime processor_time(pid_t process);

/// Part of `passed`, the time between the two, in which the thread ran or slept, and did not wait
/// for a processor. At least; all of it where nothing is known.
[[nodiscard]] std::chrono::duration<double> used(const ProcessorTime& before,
                                                 const ProcessorTime& now,
                                                 std::chrono::duration<double> passed);

}  // namespace attest
