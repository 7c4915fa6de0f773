#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/base/box.hpp"
#include "core/base/json.hpp"
#include "core/base/json_worker.hpp"
#include "core/base/temporary_folder.hpp"

namespace attest {

/// Memory that a subject's process sees too, and cannot cut short.
class SharedMemory {
 public:
  SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { unmap(); }

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::byte* at(std::size_t byte) { return memory_ + byte; }
  [[nodiscard]] std::size_t size() const { return size_; }
  /// Makes it at least so long; what at() gave before is void then. Throws MachineError.
  void make_room(std::size_t bytes);

 private:
  void unmap();

  OwnedFd file_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

/// Bytes of a call: those here, and where the subject has its own.
struct SharedBytes {
  std::string name;           ///< in complaints
  std::byte* here = nullptr;  ///< null: zeros there, and nobody reads them afterwards
  std::size_t at = 0;         ///< in the shared memory
  std::size_t bytes = 0;
  bool is_output = false;  ///< copied back; what is none may not change
};

/// Solution that somebody handed in, whom nobody trusts: its file, and how it is called.
struct Judgeable {
  std::string file;
  std::string name;  ///< of what is called there; empty: the only one
  Json asked;        ///< of a function of Python: for python/attest_kernels/judged.py
  bool starts_processes = false;
  std::chrono::milliseconds limit{60'000};  ///< to start, and for an answer
};

/// Process of what is judged: it answers requests (JsonWorker), and is started again where it died.
/// It holds nothing but the memory of a call's buffers, which are copied there and back: an answer
/// says that it is done, and what that is worth is decided here. Every request has a number that
/// only its answer knows, and whatever changes outputs after an answer is found at the next call.
class SubjectProcess {
 public:
  /// The program's last argument will be the path there of the shared memory, which is its
  /// descriptor 3. `rules`: a box, whose scratch folder is made here; nothing: as this process.
  /// Throws as JsonWorker does.
  SubjectProcess(JsonWorker::Start start, std::optional<BoxRules> rules);

  /// Says what it is about to a process that was started before anybody knew, now and whenever it
  /// is started again. Throws as ask() does.
  void introduce(std::function<Json()> introduction, const JsonWorker::Limits& limits);
  /// The folder of its box.
  [[nodiscard]] const std::filesystem::path& scratch() const { return scratch_->path(); }

  /// Description that it gave of itself.
  [[nodiscard]] const Json& description() const { return description_; }
  /// A question without memory. Throws KernelError, and what JsonWorker::ask does.
  [[nodiscard]] Json ask(Json request);
  /// Hands over bytes, asks, and takes outputs back; `bytes` in the request is the memory's size,
  /// at least `size`. One at a time. Throws as ask() does; KernelError for inputs that changed.
  Json call(Json request, const std::vector<SharedBytes>& shared, std::size_t size);

 private:
  void start();
  [[nodiscard]] Json numbered(Json request);
  /// Throws KernelError if outputs that were taken have changed since.
  void require_no_late_work();

  JsonWorker::Start start_;
  std::optional<TemporaryFolder> scratch_;
  SharedMemory memory_;
  std::optional<JsonWorker> worker_;
  std::function<Json()> introduction_;  ///< empty: its arguments say all
  Json description_;
  std::mutex mutex_;
  /// Outputs as they were when they were taken, and where.
  struct Taken {
    std::string name;
    std::size_t at;
    std::vector<std::byte> bytes;
  };
  std::vector<Taken> taken_;
};

/// The box of what is judged, but for what its program has to read besides its file.
[[nodiscard]] BoxRules box_of(const Judgeable& judged);

/// From the last request of this thread to its answer, by this process's clock.
[[nodiscard]] std::chrono::duration<double> last_answer_time();

}  // namespace attest
