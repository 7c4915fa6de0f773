#include "verify/workers/processor_time.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <fstream>
#include <string>

namespace attest {

namespace {

ProcessorTime time_of_one(pid_t process) {
  ProcessorTime time;
  // The state first: a wait that begins after it is short.
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  std::getline(file, text);
  const std::size_t after_name = text.rfind(')');
  time.is_ready = after_name != std::string::npos && text.substr(after_name + 1, 2) == " R";
  std::ifstream times(fmt::format("/proc/{}/schedstat", process));
  std::int64_t ran_ns = 0, queued_ns = 0;
  times >> ran_ns >> queued_ns;
  time.is_known = !times.fail();
  time.ran = std::chrono::nanoseconds(ran_ns);
  time.queued = std::chrono::nanoseconds(queued_ns);
  return time;
}

}  // namespace

std::vector<pid_t> children_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  std::vector<pid_t> children;
  for (pid_t child = 0; file >> child;) children.push_back(child);
  return children;
}

ProcessorTime processor_time(pid_t process) {
  ProcessorTime sum = time_of_one(process);
  for (const pid_t child : children_of(process)) {
    const ProcessorTime one = time_of_one(child);
    if (!one.is_known) continue;  // it is gone
    sum.ran += one.ran;
    sum.queued += one.queued;
    sum.is_ready = sum.is_ready || one.is_ready;
  }
  return sum;
}

std::chrono::duration<double> used(const ProcessorTime& before, const ProcessorTime& now,
                                   std::chrono::duration<double> passed) {
  if (!before.is_known || !now.is_known) return passed;
  // A wait is not in `queued` before it ends.
  if (now.is_ready) return now.ran - before.ran;
  return passed - (now.queued - before.queued);
}

}  // namespace attest
