#include "plugin/python_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/base/box.hpp"
#include "core/base/error.hpp"
#include "plugin/python_tensors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t tensor_alignment = 256;
constexpr std::uint64_t most_memory = std::uint64_t{16} << 30;
/// Besides its answer it may compile, and import what is large. Who judges it has limits of his
/// own.
constexpr PythonWorker::Limits patient{.start = std::chrono::minutes(10),
                                       .answer = std::chrono::minutes(10)};

thread_local std::chrono::duration<double> answer_time{};

/// python/attest_kernels/worker.py: beside the program in a wheel, else in the source tree.
fs::path worker_script() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path in_wheel = program.parent_path().parent_path() / "worker.py";
  if (fs::exists(in_wheel, error)) return in_wheel;
  return ATTEST_SOURCE_DIR "/python/attest_kernels/worker.py";
}

[[noreturn]] void no_shared_memory(const char* call) {
  throw MachineError(
      fmt::format("no memory to share with a Python process: {}: {}", call, strerror(errno)));
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

PythonProcess::PythonProcess(std::string text, std::optional<Judgeable> judged)
    : text_(std::move(text)), judged_(std::move(judged)) {
  if (judged_) {
    if (!python_place().has_numpy) {
      throw MachineError(fmt::format("{} has no NumPy; ATTEST_PYTHON names a Python that has it",
                                     python_place().program));
    }
    scratch_.emplace();
    BoxRules rules{.readable = python_place().folders,
                   .scratch = fs::canonical(scratch_->path()).string(),
                   .starts_processes = judged_->starts_processes,
                   .memory_bytes = most_memory};
    rules.readable.push_back(judged_->file);
    rules.readable.push_back(worker_script().parent_path().parent_path().string());
    box_ = std::make_shared<const Box>(std::move(rules));
  }
  start();
}

void PythonProcess::start() {
  std::vector<std::string> arguments{text_};
  PythonWorker::Limits limits = patient;
  if (judged_) {
    arguments.push_back(judged_->asked);
    limits = {.start = judged_->limit, .answer = judged_->limit};
  }
  taken_.clear();
  worker_.reset();
  // Where the file of who is judged lies on this machine teaches nobody anything.
  worker_.emplace(judged_ ? "solution" : text_, worker_script().string(), arguments, memory_.file(),
                  limits, box_);
}

void PythonProcess::require_no_late_work() {
  for (const Taken& one : taken_) {
    if (std::memcmp(memory_.at(one.at), one.bytes.data(), one.bytes.size()) != 0) {
      taken_.clear();
      throw KernelError(fmt::format("it wrote to {} after it had answered", one.name));
    }
  }
}

void PythonProcess::launch(const Arguments& a) {
  const std::scoped_lock lock(mutex_);
  if (!worker_->is_alive()) start();
  require_no_late_work();
  std::vector<PythonTensor> tensors = python_tensors(a);
  std::size_t end = 0;
  for (PythonTensor& tensor : tensors) {
    tensor.at = end;
    end = (end + tensor.bytes + tensor_alignment) / tensor_alignment * tensor_alignment;
  }
  memory_.make_room(end);
  Json described = Json::object();
  for (const PythonTensor& tensor : tensors) {
    if (tensor.here == nullptr) {
      std::memset(memory_.at(tensor.at), 0, tensor.bytes);
    } else {
      std::memcpy(memory_.at(tensor.at), tensor.here, tensor.bytes);
    }
    described[tensor.name] = {
        {"type", format_of(tensor.type).name}, {"at", tensor.at}, {"shape", tensor.shape}};
  }
  const std::uint64_t number = drawn_number();
  const Json request{{"bytes", memory_.size()},         {"number", number},
                     {"mask", name_of(a.problem.mask)}, {"scale", a.problem.scale},
                     {"tensors", std::move(described)}, {"indices", python_indices(a)}};
  taken_.clear();
  const auto asked = std::chrono::steady_clock::now();
  const Json answer = worker_->ask(request);
  answer_time = std::chrono::steady_clock::now() - asked;
  if (answer.value("number", Json()) != number) {
    throw KernelError("it answered before it was asked, or something else");
  }
  for (const PythonTensor& tensor : tensors) {
    if (tensor.here == nullptr) continue;
    const std::byte* const there = memory_.at(tensor.at);
    if (tensor.is_output) {
      std::memcpy(tensor.here, there, tensor.bytes);
      taken_.push_back({tensor.name, tensor.at, {tensor.here, tensor.here + tensor.bytes}});
    } else if (std::memcmp(tensor.here, there, tensor.bytes) != 0) {
      throw KernelError(fmt::format("it wrote to {}, which is an input", tensor.name));
    }
  }
}

std::chrono::duration<double> last_answer_time() {
  return answer_time;
}

}  // namespace attest
