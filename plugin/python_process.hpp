#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/json.hpp"
#include "core/base/python_worker.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/run/arguments.hpp"

namespace attest {

/// Memory that a function's process sees too, and cannot cut short.
class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { unmap(); }

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::byte* at(std::size_t byte) { return memory_ + byte; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void make_room(std::size_t bytes);

 private:
  void unmap();

  OwnedFd file_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// What is asked of a function that nobody trusts.
struct Judgeable {
  std::string file;   ///< what it may read of the user's
  std::string asked;  ///< JSON for python/attest_kernels/judged.py
  bool starts_processes = false;
  std::chrono::milliseconds limit{60'000};  ///< to start, and for an answer
};

/// A function of Python in a process of its own (python/attest_kernels/worker.py), which is started
/// again where it died. One that is judged runs in a box, which holds nothing but the memory of
/// its tensors; every request has a number that only its answer knows, and whatever changes
/// outputs after an answer is found at the next request.
class PythonProcess {
 public:
  /// `text`: FILE.py:FUNCTION or MODULE:FUNCTION. Throws MachineError; WorkerFault for what the
  /// function's file does.
  explicit PythonProcess(std::string text, std::optional<Judgeable> judged = std::nullopt);

  [[nodiscard]] const Json& description() const { return worker_->greeting(); }
  /// One at a time: the function has one process. Throws KernelError and what PythonWorker does.
  void launch(const Arguments& arguments);

 private:
  void start();
  /// Throws KernelError if outputs that were taken have changed since.
  void require_no_late_work();

  std::string text_;
  std::optional<Judgeable> judged_;
  std::optional<TemporaryFolder> scratch_;
  std::shared_ptr<const Box> box_;
  SharedMemory memory_;
  std::optional<PythonWorker> worker_;
  std::mutex mutex_;
  /// Outputs as they were when they were taken, and where.
  struct Taken {
    std::string name;
    std::size_t at;
    std::vector<std::byte> bytes;
  };
  std::vector<Taken> taken_;
};

/// From the last request of this thread to its answer, by this process's clock.
[[nodiscard]] std::chrono::duration<double> last_answer_time();

}  // namespace attest
