#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/subprocess.hpp"

namespace attest {

/// Subcommand of a process that is one rank of a group, and its descriptor of the channel to the
/// process that started it (rank_processes.hpp).
inline constexpr std::string_view rank_process_argument = "rank-process";
inline constexpr int rank_channel_fd = 3;

/// A rank's end of the channel. Lines go to the process that started all ranks, which hands on what
/// is for others. Whoever uses it ends with that process: reading throws ChannelClosed.
class RankChannel {
 public:
  struct ChannelClosed {};

  RankChannel(OwnedFd socket, std::int64_t rank) : socket_(std::move(socket)), rank_(rank) {}

  [[nodiscard]] std::int64_t rank() const { return rank_; }
  /// Ranks of the task that was received last: this one is below it.
  [[nodiscard]] std::int64_t ranks() const { return ranks_; }

  /// Waits for the next task of the group.
  [[nodiscard]] std::string next_task();
  /// Says what the rank does from now on, in words that follow `while`, for the error of one that
  /// hangs or dies.
  void at(std::string_view step) { send("step", step); }
  /// Sends a line to all other ranks of the group.
  void tell(std::string_view text) { send("tell", text); }
  /// Waits for the next line of that rank.
  [[nodiscard]] std::string hear(std::int64_t rank);
  /// Waits until all ranks of the group have come here.
  void meet();

  /// Answers the task that was received last.
  void answer(std::string_view text);
  /// The answer of a rank that has none: what went wrong, a sentence of the kernel's or the
  /// machine's.
  void fail_as_kernel(std::string_view words) { send("kernel_error", words); }
  void fail_as_machine(std::string_view words) { send("machine_error", words); }

 private:
  void send(std::string_view kind, std::string_view text);
  /// The next line that arrives: its first word, and the rest.
  [[nodiscard]] std::pair<std::string, std::string> receive();

  OwnedFd socket_;
  std::int64_t rank_ = 0, task_ = 0, ranks_ = 0;
  std::string unread_;
  std::map<std::int64_t, std::deque<std::string>> heard_;  ///< and not yet asked for
};

/// Work that a rank's process does for a task: returns its answer. Throws KernelError or
/// MachineError, after which the process ends.
using RankWork = std::function<std::string(const std::string& task, RankChannel& channel)>;

/// Adds a work under a name, which a task begins with.
struct RankWorkRegistration {
  RankWorkRegistration(const std::string& name, RankWork work);
};

/// Ends this process as soon as the other end of the socket is closed, whatever it is waiting for.
void end_with_other_end_of(int socket);

/// Life of a rank's process: tasks, until the channel closes. Throws MachineError where nobody is
/// at its other end.
[[noreturn]] void run_rank_process(std::int64_t rank);

}  // namespace attest
