#include "plugin/subject_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <random>
#include <utility>

#include "core/base/error.hpp"

namespace attest {
namespace {

constexpr std::uint64_t most_memory = std::uint64_t{16} << 30;

thread_local std::chrono::duration<double> answer_time{};

[[noreturn]] void no_shared_memory(const char* call) {
  throw MachineError(
      fmt::format("no memory to share with another process: {}: {}", call, strerror(errno)));
}

/// Nobody guesses it, and doubles hold it.
std::uint64_t drawn_number() {
  std::random_device entropy;
  return (std::uint64_t{entropy()} << 32U | entropy()) >> 11U;
}

}  // namespace

SharedMemory::SharedMemory() : file_(memfd_create("attest", MFD_CLOEXEC | MFD_ALLOW_SEALING)) {
  if (file_.get() < 0) no_shared_memory("memfd_create");
  // Who reads past the end of a file that was cut short is killed.
  if (fcntl(file_.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) no_shared_memory("fcntl");
}

void SharedMemory::make_room(std::size_t bytes) {
  if (bytes <= size_) return;
  unmap();
  const off_t now = lseek(file_.get(), 0, SEEK_END);  // the other process may have made it longer
  bytes = std::max(bytes, static_cast<std::size_t>(std::max<off_t>(now, 0)));
  if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) no_shared_memory("ftruncate");
  void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
  if (memory == MAP_FAILED) no_shared_memory("mmap");
  memory_ = static_cast<std::byte*>(memory);
  size_ = bytes;
}

void SharedMemory::unmap() {
  if (memory_ != nullptr) munmap(memory_, size_);
  memory_ = nullptr;
  size_ = 0;
}

SubjectProcess::SubjectProcess(JsonWorker::Start start, std::optional<BoxRules> rules)
    : start_(std::move(start)) {
  if (rules) {
    scratch_.emplace();
    rules->scratch = std::filesystem::canonical(scratch_->path()).string();
    start_.box = std::make_shared<const Box>(std::move(*rules));
  }
  start_.files = {memory_.file()};
  start_.arguments.push_back(JsonWorker::path_there(0));
  this->start();
}

void SubjectProcess::start() {
  taken_.clear();
  worker_.reset();
  worker_.emplace(start_);
  description_ = introduction_ ? numbered(introduction_()) : worker_->greeting();
}

void SubjectProcess::introduce(std::function<Json()> introduction,
                               const JsonWorker::Limits& limits) {
  introduction_ = std::move(introduction);
  start_.limits = limits;
  worker_->set_limits(limits);
  description_ = numbered(introduction_());
}

void SubjectProcess::require_no_late_work() {
  for (const Taken& one : taken_) {
    if (std::memcmp(memory_.at(one.at), one.bytes.data(), one.bytes.size()) != 0) {
      taken_.clear();
      throw KernelError(fmt::format("it wrote to {} after it had answered", one.name));
    }
  }
}

Json SubjectProcess::numbered(Json request) {
  const std::uint64_t number = drawn_number();
  request["number"] = number;
  Json answer = worker_->ask(request);
  if (answer.value("number", Json()) != number) {
    throw KernelError("it answered before it was asked, or something else");
  }
  return answer;
}

Json SubjectProcess::ask(Json request) {
  const std::scoped_lock lock(mutex_);
  if (!worker_->is_alive()) start();
  return numbered(std::move(request));
}

Json SubjectProcess::call(Json request, const std::vector<SharedBytes>& shared, std::size_t size) {
  const std::scoped_lock lock(mutex_);
  if (!worker_->is_alive()) start();
  require_no_late_work();
  memory_.make_room(size);
  for (const SharedBytes& one : shared) {
    if (one.here == nullptr) {
      std::memset(memory_.at(one.at), 0, one.bytes);
    } else {
      std::memcpy(memory_.at(one.at), one.here, one.bytes);
    }
  }
  request["bytes"] = memory_.size();
  taken_.clear();
  const auto asked = std::chrono::steady_clock::now();
  Json answer = numbered(std::move(request));
  answer_time = std::chrono::steady_clock::now() - asked;
  for (const SharedBytes& one : shared) {
    if (one.here == nullptr) continue;
    const std::byte* const there = memory_.at(one.at);
    if (one.is_output) {
      // Taken once: who writes to it now would change one copy and not the other.
      std::memcpy(one.here, there, one.bytes);
      taken_.push_back({one.name, one.at, {one.here, one.here + one.bytes}});
    } else if (std::memcmp(one.here, there, one.bytes) != 0) {
      throw KernelError(fmt::format("it wrote to {}, which is an input", one.name));
    }
  }
  return answer;
}

BoxRules box_of(const Judgeable& judged) {
  return {.starts_processes = judged.starts_processes, .memory_bytes = most_memory};
}

std::chrono::duration<double> last_answer_time() {
  return answer_time;
}

}  // namespace attest
