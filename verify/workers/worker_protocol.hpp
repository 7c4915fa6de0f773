#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {
/// Setup of a worker, loaded before its first case: what its parent has loaded.
struct WorkerSetup {
  std::vector<std::string> plugins{};  ///< shared objects that register kernels
  std::string inputs_file{};           ///< the user's activations; empty: none
};

/// Messages between the campaign and its workers, one JSON object a line. NaN and infinities
/// travel as strings. Readers throw std::runtime_error for anything else: a kernel may have written
/// into the channel.
[[nodiscard]] std::string encode(const WorkerSetup& setup);
[[nodiscard]] std::string encode(const CaseTask& task);
[[nodiscard]] std::string encode(const CaseAnswer& answer);
[[nodiscard]] WorkerSetup setup_from_line(std::string_view line);
[[nodiscard]] CaseTask task_from_line(std::string_view line);
[[nodiscard]] CaseAnswer answer_from_line(std::string_view line);

/// Why a worker could not judge: not the kernel's doing, or `kernel`, its doing while it was
/// loaded.
struct WorkerError {
  enum class Kind { machine, input, internal, kernel } kind = Kind::internal;
  std::string text;
};
[[nodiscard]] std::string encode(const WorkerError& error);
/// Nothing if the line is another message. Throws like the other readers.
[[nodiscard]] std::optional<WorkerError> error_from_line(std::string_view line);
/// Throws what the worker caught: MachineError, InvalidInput, KernelError or std::logic_error.
void rethrow(const WorkerError& error);

/// A failure as it stands in messages and in the state of a campaign.
[[nodiscard]] Json failure_json(const Failure& failure);
[[nodiscard]] Failure failure_from_json(const Json& json);
/// By name of the output.
[[nodiscard]] Json worst_json(const WorstOverBound& worst);
[[nodiscard]] WorstOverBound worst_from_json(const Json& json);

/// File descriptors of a worker when it starts: a socket to its parent, and a page of memory that
/// both see (ActivityNote).
inline constexpr int worker_channel_fd = 0;
inline constexpr int worker_note_fd = 3;

/// A line on the channel: which question it is or answers, counted from 1, and which process wrote
/// it. A kernel may write to the channel, or fork a child that does.
struct Letter {
  std::uint64_t question = 0;
  pid_t process = 0;
  std::string text;
};
/// Without a newline.
[[nodiscard]] std::string sealed(const Letter& letter);
/// Nothing for a line that `sealed` did not write.
[[nodiscard]] std::optional<Letter> opened(std::string_view line);

/// A worker's end of the channel: questions and answers, a line each, over a socket.
class LineChannel {
 public:
  explicit LineChannel(int fd);
  /// The next question; nothing when the parent hung up, or sent something else.
  [[nodiscard]] std::optional<std::string> receive();
  /// The answer to the question received last. A parent that is gone does not matter any more. A
  /// child that a kernel forked ends here: it was asked nothing.
  void send(std::string text);

 private:
  int fd_;
  pid_t process_;
  std::uint64_t question_ = 0;
  std::string unread_;
};

}  // namespace attest
