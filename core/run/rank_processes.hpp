#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/subprocess.hpp"

namespace attest {

/// Processes that are the ranks of a group, one each, started by this one and kept from task to
/// task. What a rank tells the others comes through here. They end with this object, at the latest
/// with the process.
class RankProcesses {
 public:
  struct Start {
    std::string program;                 ///< a path, or a name to be found on PATH
    std::vector<std::string> arguments;  ///< from argv[0] on; the number of the rank follows them
  };
  /// `seconds`: of a task, starting the processes included.
  RankProcesses(Start start, double seconds) : start_(std::move(start)), seconds_(seconds) {}

  /// Answers of ranks 0 to `ranks` - 1 to a task; starts those that there are not yet. Throws
  /// KernelError that names the rank where one fails, dies, says what is none of its words, or does
  /// not answer in time; MachineError for what a rank says of the machine, and where none can be
  /// started. Then all are ended, and the next task starts new ones.
  [[nodiscard]] std::vector<std::string> ask(std::int64_t ranks, std::string_view task);

 private:
  struct Rank {
    Subprocess process;
    std::string step;  ///< what it is at; empty: it did not say
    bool has_answered = false;
    std::string answer{};
  };
  void start(std::int64_t ranks);
  [[nodiscard]] std::vector<std::string> ask_started(std::int64_t ranks, std::string_view task);
  void take_lines(std::size_t rank, std::size_t ranks);
  void take_line(const std::string& line, std::size_t rank, std::size_t ranks);
  [[noreturn]] void fail_ended(std::size_t rank, std::size_t ranks);
  [[nodiscard]] std::string while_at(std::size_t rank) const;

  Start start_;
  double seconds_;
  std::int64_t task_ = 0;  ///< number of the last one: answers to one before it are none
  std::vector<Rank> ranks_;
};

}  // namespace attest
