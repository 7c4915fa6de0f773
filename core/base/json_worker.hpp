#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/subprocess.hpp"

namespace attest {

/// Fault of a worker's program, and not of the machine: it died, did not answer in time, or said
/// something else than an answer.
class WorkerFault : public MachineError {
 public:
  using MachineError::MachineError;
};

/// A file in memory; fails, with MachineError, only where there is no memory.
[[nodiscard]] OwnedFd memory_file(std::string_view content);

/// A program in a process of its own that answers JSON with JSON, a line each. Its stderr is kept
/// for the last words of one that dies. It ends when its stdin does, which is at the latest when
/// this process ends.
class JsonWorker {
 public:
  struct Limits {
    std::chrono::milliseconds start{180'000};  ///< PyTorch is large
    std::chrono::milliseconds answer{120'000};
  };
  struct Start {
    std::string name;                        ///< of the worker, in errors
    std::string program;                     ///< a path, or a name to be found on PATH
    std::vector<std::string> arguments{};    ///< from argv[0] on
    std::vector<int> files{};                ///< the child's descriptors from 3 on
    std::vector<std::string> environment{};  ///< `NAME=VALUE`, where this process has no NAME
    Limits limits{};
    std::shared_ptr<const Box> box{};  ///< where it runs; null: anywhere
    std::string advice{};              ///< `; set ...`, where it cannot be started
  };
  /// Starts it and waits for its first line, which has no `error` if all is well; lines {"doing":
  /// words} before it say what it is at, for the words about one that dies. Throws MachineError;
  /// WorkerFault for what the program does, an `error` among it.
  explicit JsonWorker(Start start);
  /// Path at which the child finds the file with this number in `files`.
  [[nodiscard]] static std::string path_there(std::size_t number);

  /// Throws KernelError for an answer with `error`; MachineError where it says `machine`;
  /// WorkerFault where it says `fatal`, is no JSON, where none comes in time, where something was
  /// said before it was asked for, and where the process died, with the signal or exit code that it
  /// died by: then the worker is gone.
  Json ask(const Json& request);
  void set_limits(const Limits& limits) { limits_ = limits; }
  [[nodiscard]] bool is_alive() const { return process_.is_started(); }
  /// The answer that the program gave when it was ready.
  [[nodiscard]] const Json& greeting() const { return greeting_; }

 private:
  [[nodiscard]] Json receive(std::chrono::milliseconds limit);
  [[nodiscard]] std::string line_before(std::chrono::steady_clock::time_point deadline,
                                        std::chrono::milliseconds limit);
  [[nodiscard]] Json parsed(const std::string& line);
  [[nodiscard]] Json checked(const Json& answer);
  [[nodiscard]] std::string how_it_died();
  /// True if the program said something since its last answer.
  [[nodiscard]] bool has_more();
  /// Ends the process; one line about how, for an error.
  [[nodiscard]] std::string bury(const std::string& why);

  std::string name_;
  Limits limits_;
  std::string doing_;       ///< empty: it did not say
  bool is_trusted_ = true;  ///< in a box nobody knows what the machine does
  Json greeting_;
  Subprocess process_;
  OwnedFd errors_;  ///< a file in memory
};

}  // namespace attest
