#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/subprocess.hpp"
#include "verify/judge/phase.hpp"
#include "verify/workers/worker_protocol.hpp"

namespace attest {

/// Limits of a worker's time and memory while it answers.
struct WorkerLimits {
  double seconds = 60;             ///< in which it had a core, or waited for something else
  std::uint64_t memory_bytes = 0;  ///< resident; 0: no limit
};

/// Outcome of a question to a worker.
struct WorkerReply {
  enum class Kind {
    answered,
    died,        ///< by a signal, by exit, or stopped for its memory
    timed_out,   ///< stopped
    interrupted  ///< stopped because the campaign ends
  } kind = Kind::answered;
  /// The answer; otherwise one line about what happened, with the worker's last words.
  std::string text;
  /// Answered: the last lines that the worker printed meanwhile, as a clause; empty: none.
  std::string last_words{};
};

/// One worker: this executable again, in a process of its own, in a process group of its own. It
/// dies with the thread that made it.
class WorkerProcess {
 public:
  /// Starts the process and waits until it has loaded `setup`. Throws MachineError if it cannot be
  /// started, what the worker threw if it cannot load.
  explicit WorkerProcess(const WorkerSetup& setup);
  /// Starts one before anybody knows what it will load, which waits for load(); meanwhile it makes
  /// ready what its main program can. Throws MachineError.
  [[nodiscard]] static std::unique_ptr<WorkerProcess> ahead();
  /// Loads `setup` in a process that ahead() started, once, and waits until it has. Throws as the
  /// constructor does.
  void load(const WorkerSetup& setup);
  WorkerProcess(const WorkerProcess&) = delete;
  WorkerProcess& operator=(const WorkerProcess&) = delete;
  /// Kills it and whatever it started.
  ~WorkerProcess();

  /// Sends a question, one line, and waits for its answer. Anything else that arrives, an answer to
  /// another question or of another process among it, is no answer: the worker died. After anything
  /// but an answer the process is gone.
  [[nodiscard]] WorkerReply ask(std::string_view question, const WorkerLimits& limits,
                                const std::function<bool()>& is_interrupted);
  /// Phase that the worker was last seen in, also after its death.
  [[nodiscard]] Phase phase() const;
  /// Question that its kernel was asked last.
  [[nodiscard]] Question question() const;
  /// Name of the law that it was checking; empty: none.
  [[nodiscard]] std::string law() const;
  /// Description of the access that killed it (ActivityNote::fault); empty: not known.
  [[nodiscard]] std::string fault() const;

 private:
  WorkerProcess() = default;
  void spawn(bool is_ahead);
  void clean_up();
  [[nodiscard]] WorkerReply wait_for_answer(const WorkerLimits& limits,
                                            const std::function<bool()>& is_interrupted);
  /// The reply that a line which arrived makes.
  [[nodiscard]] WorkerReply reply_of(std::string_view line);
  /// Reads what is there; false at the end of the stream.
  [[nodiscard]] bool read_errors();
  void read_all_errors();
  /// Ends the process and says how it ended.
  WorkerReply bury(WorkerReply::Kind kind, std::string why);
  [[nodiscard]] std::string last_words() const;
  [[nodiscard]] std::uint64_t resident_bytes() const;

  Subprocess process_;
  OwnedFd errors_;
  ActivityNote* note_ = nullptr;
  std::uint64_t question_ = 0;  ///< number of the last one
  std::string words_;           ///< the end of what it printed since
  std::chrono::steady_clock::time_point memory_checked_{};
};

}  // namespace attest
