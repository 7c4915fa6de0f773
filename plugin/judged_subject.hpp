#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "plugin/loader.hpp"
#include "plugin/task.hpp"

namespace attest {

/// A file that somebody handed in, what it is asked, and how it is called.
struct JudgedSubject {
  /// FILE.py:NAME, or FILE.py for the format's usual name; FILE.so:KERNEL, or FILE.so of one
  /// kernel.
  std::string place;
  std::string format;  ///< one of judged_formats(); empty: numpy or, of FILE.so, plugin
  Task task;
};

/// Conventions of this world's contests for calling what is handed in: `numpy`, `kernelbench`,
/// `gpumode`, `flashinfer`; and `plugin`, by include/attest/plugin.h.
[[nodiscard]] const std::vector<std::string_view>& judged_formats();

/// `FILE:NAME@FORMAT@TASK`, the absolute path of the file in it: what a worker loads and a
/// counterexample names. Throws InvalidInput for a file that is not there, an unknown format and
/// a task that is none.
[[nodiscard]] std::string judged_text(const JudgedSubject& subject);
/// True for a text with the name of a format where judged_text() puts it.
[[nodiscard]] bool is_judged_subject(std::string_view text);
/// True if a place is FILE.so or FILE.so:KERNEL.
[[nodiscard]] bool is_shared_object(std::string_view place);

/// The name under which all are registered.
inline constexpr const char* judged_kernel_name = "solution";

/// Registers what such a text names as a kernel. It runs in a process of its own, in a box, and
/// claims what the task asks. Throws KernelError with one line for what the file does when it is
/// loaded, InvalidInput and MachineError.
const LoadedPlugin& load_judged_subject(const std::string& text,
                                        std::chrono::milliseconds limit = std::chrono::seconds(60));
/// Remarks on the loaded file, what a reader of it would look at twice
/// (python/attest_kernels/tripwires.py).
[[nodiscard]] const std::vector<std::string>& flags_of_judged_subject();

}  // namespace attest
