#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/base/json.hpp"
#include "core/run/device.hpp"

namespace attest {

/// Subcommand of the program that is a plugin's process. Hidden from the help.
inline constexpr std::string_view plugin_subject_argument = "plugin-subject";

/// Loads the plugin at `path` and answers who started this process (JsonWorker) on stdin, where
/// what the plugin writes to stdin, stdout and stderr does not come. First a line {"plugin":
/// declaration_json()}; then every request is
///
///   {"number": n, "ask": function, "kernel": i, "plan": j, "problem": bytes of an AttestProblem}
///
/// where the function is one of AttestKernel's: `unsupported`, `scratch_bytes`, `first_row`,
/// `refine_precision` ("precision": bytes) or `run`, which has "tensors" [{"struct", "name",
/// "data": [buffer, byte], "starts", "room": bytes of an output that is not asked for}],
/// "scratch", "scratch_bytes" and "buffers" (buffer_json()), pages of descriptor 3. Answers are
/// {"number": n, "text"}, {"value"}, {"precision"}, of `run` {"text", "control": words in which it
/// left the floating-point mode}, or {"error": sentence}. Ends when stdin does.
[[noreturn]] void run_plugin_subject(const std::string& path);

/// Description of a buffer for such a process, whose pages lie from byte `at` on in the shared
/// memory.
[[nodiscard]] Json buffer_json(const BufferPlace& place, std::size_t at);

}  // namespace attest
