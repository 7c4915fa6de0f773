#pragma once

#include <chrono>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/python_place.hpp"
#include "core/base/subprocess.hpp"

namespace attest {

/// Fault of a worker's script, not of the machine: it died, did not answer in time, or said
/// something else than an answer.
class WorkerFault : public MachineError {
 public:
  using MachineError::MachineError;
};

/// A Python script in a process of its own that answers JSON with JSON, a line each. Its stderr is
/// kept for the last words of one that dies. It ends when its stdin does, which is at the latest
/// when this process ends.
class PythonWorker {
 public:
  struct Limits {
    std::chrono::milliseconds start{180'000};  ///< PyTorch is large
    std::chrono::milliseconds answer{120'000};
  };
  /// Starts scripts[0] with this process's id and the paths of the other scripts as arguments, and
  /// waits for its first line, which has no `error` if all is well; lines {"doing": words} before
  /// it say what it is at, for the words about one that dies. The scripts are texts, handed over in
  /// memory. Throws MachineError; WorkerFault for what the script does, an `error` among it.
  PythonWorker(std::string name, std::span<const std::string_view> scripts, Limits limits);
  /// Starts a script that is a file, otherwise as above: its arguments are this process's id,
  /// `arguments`, and the path there of `file`, a descriptor of this process. `box`: confines it;
  /// null: it runs unconfined.
  PythonWorker(std::string name, const std::string& script,
               const std::vector<std::string>& arguments, int file, Limits limits,
               std::shared_ptr<const Box> box = nullptr);

  /// Sends a request and returns its answer. Throws KernelError for an answer with `error`;
  /// MachineError where it says `machine`; WorkerFault where it says `fatal`, is no JSON, where
  /// none comes in time, where something was said before it was asked for, and where the process
  /// died, with the signal or exit code that it died by: then the worker is gone.
  Json ask(const Json& request);
  [[nodiscard]] bool is_alive() const { return process_.is_started(); }
  /// First line of the script: what it said when it was ready.
  [[nodiscard]] const Json& greeting() const { return greeting_; }

 private:
  PythonWorker(std::string name, Limits limits);
  /// `arguments` behind the program's name; `files` are the child's descriptors from 3 on.
  void start(const std::vector<std::string>& arguments, const std::vector<int>& files,
             std::shared_ptr<const Box> box = nullptr);
  [[nodiscard]] Json receive(std::chrono::milliseconds limit);
  [[nodiscard]] std::string line_before(std::chrono::steady_clock::time_point deadline,
                                        std::chrono::milliseconds limit);
  [[nodiscard]] Json parsed(const std::string& line);
  [[nodiscard]] Json checked(const Json& answer);
  [[nodiscard]] std::string how_it_died();
  /// True if the script has said something since its last answer.
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
