#include "plugin/python_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <random>
#include <system_error>
#include <utility>

#include "core/base/box.hpp"
#include "core/base/error.hpp"

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

/// A tensor of a launch: where it lies here, and in the shared memory.
struct Place {
  const char* name;
  std::byte* here;
  std::vector<std::int64_t> shape;
  std::size_t bytes;
  bool is_output;
  std::size_t at = 0;
};

std::array<Place, 5> places_of(const ForwardArguments& a) {
  const Problem& p = a.problem;
  const std::size_t size = format_of(p.element_type).size_bytes;
  const auto place = [](const char* name, const void* first, const Shape& shape,
                        std::size_t element, bool is_output) {
    std::size_t bytes = element;
    for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
    return Place{name,
                 static_cast<std::byte*>(const_cast<void*>(first)),
                 {shape.begin(), shape.end()},
                 bytes,
                 is_output};
  };
  std::array<Place, 5> places{
      place("q", a.q, query_shape(p), size, false), place("k", a.k, key_shape(p), size, false),
      place("v", a.v, value_shape(p), size, false), place("o", a.o, output_shape(p), size, true),
      place("lse", a.lse, {p.batch, p.query_heads, p.query_len, 1}, sizeof(float), true)};
  places[4].shape.pop_back();
  return places;
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

void PythonProcess::launch(const ForwardArguments& a) {
  const std::scoped_lock lock(mutex_);
  if (!worker_->is_alive()) start();
  require_no_late_work();
  std::array<Place, 5> places = places_of(a);
  std::size_t end = 0;
  for (Place& place : places) {
    place.at = end;
    end = (end + place.bytes + tensor_alignment) / tensor_alignment * tensor_alignment;
  }
  memory_.make_room(end);
  const std::uint64_t number = drawn_number();
  Json request{{"bytes", memory_.size()},
               {"number", number},
               {"type", format_of(a.problem.element_type).name},
               {"mask", name_of(a.problem.mask)},
               {"scale", a.problem.scale}};
  for (const Place& place : places) {
    if (place.here == nullptr) {
      std::memset(memory_.at(place.at), 0, place.bytes);
    } else {
      std::memcpy(memory_.at(place.at), place.here, place.bytes);
    }
    request[place.name] = {{"at", place.at}, {"shape", place.shape}};
  }
  taken_.clear();
  const auto asked = std::chrono::steady_clock::now();
  const Json answer = worker_->ask(request);
  answer_time = std::chrono::steady_clock::now() - asked;
  if (answer.value("number", Json()) != number) {
    throw KernelError("it answered before it was asked, or something else");
  }
  for (const Place& place : places) {
    if (place.here == nullptr) continue;
    const std::byte* const there = memory_.at(place.at);
    if (place.is_output) {
      std::memcpy(place.here, there, place.bytes);
      taken_.push_back({place.name, place.at, {place.here, place.here + place.bytes}});
    } else if (std::memcmp(place.here, there, place.bytes) != 0) {
      throw KernelError(fmt::format("it wrote to {}, which is an input", place.name));
    }
  }
}

std::chrono::duration<double> last_answer_time() {
  return answer_time;
}

}  // namespace attest
