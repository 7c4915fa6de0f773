#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace attest {

/// Runs `work` in a child process, so that whatever it does to the process stays there. Returns
/// what `work` returned, or a sentence that starts with a verb when the child crashed, ended or was
/// killed because it took longer than `limit`: "crashes with signal 11 (Segmentation fault)". The
/// child's output goes nowhere. To be called before this process has started threads or CUDA.
/// Throws MachineError when no process can be made.
struct ProbeResult {
  bool finished = false;
  std::string text;  ///< finished: of `work`; otherwise the sentence
};
[[nodiscard]] ProbeResult run_in_child(const std::function<std::string()>& work,
                                       std::chrono::milliseconds limit);

}  // namespace attest
