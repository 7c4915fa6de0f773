#include "plugin/python_subject.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/attention/fused_roundings.hpp"
#include "core/base/error.hpp"
#include "core/base/python_worker.hpp"
#include "core/base/text.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/gradient.hpp"
#include "core/run/registry.hpp"
#include "plugin/python_limits.hpp"
#include "plugin/python_tensors.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr char of_operation = '@';
constexpr std::size_t alignment = 256;
/// Besides its answer it may compile, and import what is large. Who judges it has limits of his
/// own.
constexpr PythonWorker::Limits limits{.start = std::chrono::minutes(10),
                                      .answer = std::chrono::minutes(10)};

[[noreturn]] void reject(const std::string& text, const std::string& what) {
  throw InvalidInput(
      fmt::format("--python '{}': {}", printable(text, 4096), printable(what, 4096)));
}

/// python/attest_kernels/worker.py: beside the program in a wheel, else in the source tree.
std::string worker_script() {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path in_wheel = program.parent_path().parent_path() / "worker.py";
  if (fs::exists(in_wheel, error)) return in_wheel.string();
  return ATTEST_SOURCE_DIR "/python/attest_kernels/worker.py";
}

/// Memory that the function's process sees too.
class SharedMemory {
 public:
  SharedMemory() : file_(memfd_create("attest", MFD_CLOEXEC)) {
    if (file_.get() < 0) fail("memfd_create");
  }
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory() { unmap(); }

  [[nodiscard]] int file() const { return file_.get(); }
  [[nodiscard]] std::byte* at(std::size_t byte) { return memory_ + byte; }
  [[nodiscard]] std::size_t size() const { return size_; }
  void make_room(std::size_t bytes) {
    if (bytes <= size_) return;
    unmap();
    if (ftruncate(file_.get(), static_cast<off_t>(bytes)) != 0) fail("ftruncate");
    void* const memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    if (memory == MAP_FAILED) fail("mmap");
    memory_ = static_cast<std::byte*>(memory);
    size_ = bytes;
  }

 private:
  [[noreturn]] static void fail(const char* call) {
    throw MachineError(
        fmt::format("no memory to share with a Python process: {}: {}", call, strerror(errno)));
  }
  void unmap() {
    if (memory_ != nullptr) munmap(memory_, size_);
    memory_ = nullptr;
    size_ = 0;
  }

  OwnedFd file_;
  std::byte* memory_ = nullptr;
  std::size_t size_ = 0;
};

class PythonSubject {
 public:
  explicit PythonSubject(const std::string& text) : text_(text) { start(); }

  [[nodiscard]] const Json& description() const { return worker_->greeting(); }

  /// One at a time: the function has one process.
  void launch(const Arguments& a) {
    const std::scoped_lock lock(mutex_);
    if (!worker_->is_alive()) start();
    std::vector<PythonTensor> tensors = python_tensors(a);
    std::size_t end = 0;
    for (PythonTensor& tensor : tensors) {
      tensor.at = end;
      end = (end + tensor.bytes + alignment) / alignment * alignment;
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
    (void)worker_->ask({{"bytes", memory_.size()},
                        {"mask", name_of(a.problem.mask)},
                        {"scale", a.problem.scale},
                        {"tensors", std::move(described)},
                        {"indices", python_indices(a)}});
    for (const PythonTensor& tensor : tensors) {
      if (tensor.is_output && tensor.here != nullptr) {
        std::memcpy(tensor.here, memory_.at(tensor.at), tensor.bytes);
      } else if (tensor.here != nullptr &&
                 std::memcmp(tensor.here, memory_.at(tensor.at), tensor.bytes) != 0) {
        throw KernelError(fmt::format("it wrote to {}, which is an input", tensor.name));
      }
    }
  }

 private:
  void start() {
    worker_.emplace(text_, worker_script(), std::vector<std::string>{text_}, memory_.file(),
                    limits);
  }

  std::string text_;
  SharedMemory memory_;
  std::optional<PythonWorker> worker_;
  std::mutex mutex_;
};

/// Of a function of which no more is known than its operation.
Roundings usual_roundings(const Problem& p) {
  const Accumulation products = usual_products(p);
  if (p.operation == &backward_operation) return fused_backward_roundings(p, products);
  if (p.operation == &gradient_operation) return fused_gradient_roundings(p, products);
  return fused_precision(p, products);
}

template <typename Value>
std::vector<Value> values_of(const Json& names, Value (*from_name)(std::string_view)) {
  std::vector<Value> values;
  for (const Json& name : names) values.push_back(from_name(name.get<std::string>()));
  return values;
}

KernelInfo kernel_of(const std::string& text, const std::shared_ptr<PythonSubject>& subject) {
  const Json& says = subject->description();
  KernelInfo kernel{.operation = &operation_from_name(says.at("operation").get<std::string>()),
                    .name = says.at("name").get<std::string>(),
                    .summary = printable(says.at("summary").get<std::string>(), 120),
                    .source = text,
                    .executor = Executor::cpu,
                    .plugin = text};
  kernel.element_types = values_of(says.at("types"), element_type_from_name);
  kernel.masks = values_of(says.at("masks"), mask_from_name);
  kernel.head_dims = says.at("head_dims").get<std::vector<std::int64_t>>();
  kernel.query_len_multiple = says.at("query_len_multiple").get<std::int64_t>();
  kernel.key_len_multiple = says.at("key_len_multiple").get<std::int64_t>();
  kernel.is_deterministic = says.at("deterministic").get<bool>();
  kernel.is_batch_invariant = says.at("batch_invariant").get<bool>();
  kernel.ignores_hidden_nan = says.at("ignores_hidden_nan").get<bool>();
  kernel.missing_outputs = says.at("missing").get<std::vector<std::string>>();
  kernel.features.lse_gradient = says.value("lse_gradient", false);
  kernel.features.lengths = says.value("lengths", false);
  kernel.layout_needs.contiguous_only = true;
  if (says.contains("pages")) {
    kernel.layout_needs.pages = Pages::always;
    kernel.layout_needs.tables = says["pages"] == "csr" ? TableForm::csr : TableForm::dense;
    kernel.layout_needs.page_sizes = says.at("page_sizes").get<std::vector<std::int64_t>>();
  }
  kernel.precision = [](const Problem& p, const Plan&) { return usual_roundings(p); };
  kernel.plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; };
  kernel.unsupported = [takes = python_limits(says)](const Problem& p, const Plan&) {
    return takes.why_not(p);
  };
  kernel.launch = [subject, library = says.at("library").get<std::string>()](
                      const Arguments& arguments, Device&) {
    subject->launch(arguments);
    note_library(library);
  };
  return kernel;
}

/// The file's absolute path, so that a counterexample is replayed from anywhere.
std::string absolute(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const fs::path file = text.substr(0, colon);
  if (file.extension() != ".py" && file.extension() != ".so") return text;
  std::error_code error;
  const fs::path found = fs::canonical(file, error);
  if (error) reject(text, fmt::format("{}: {}", file.string(), error.message()));
  return found.string() + text.substr(colon);
}

}  // namespace

bool is_python_subject(std::string_view text) {
  text = text.substr(0, text.rfind(of_operation));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos || colon == 0 || colon + 1 == text.size()) return false;
  return std::ranges::all_of(text.substr(colon + 1), [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '.';
  });
}

std::string for_operation(const std::string& text, const std::string& operation) {
  if (operation.empty() || text.find(of_operation, text.rfind(':')) != std::string::npos) {
    return text;
  }
  return text + of_operation + operation;
}

const LoadedPlugin& load_python_subject(const std::string& given, bool says_how) {
  static std::deque<LoadedPlugin> loaded;  // keeps references good
  const std::string text = absolute(given);
  for (const LoadedPlugin& one : loaded) {
    if (one.path == text) return one;
  }
  std::shared_ptr<PythonSubject> subject;
  try {
    subject = std::make_shared<PythonSubject>(text);
  } catch (const MachineError& error) {
    std::string what = error.what();
    if (what.starts_with(text + ": ")) what.erase(0, text.size() + 2);
    if (what.find("ModuleNotFoundError") != std::string::npos) {
      what += "; ATTEST_PYTHON names the Python that has it";
    }
    reject(given, what);
  }
  const KernelInfo kernel = kernel_of(text, subject);
  if (find_kernel(kernel.name, kernel.executor) != nullptr) {
    reject(given, fmt::format("a kernel '{}' is there already; allowed: another name, by "
                              "@attest_kernels.kernel(name=...)",
                              kernel.name));
  }
  if (says_how) {
    fmt::print(stderr, "attest: {}: taken as {}; {}\n", kernel.name,
               subject->description().at("convention").get<std::string>(),
               subject->description().at("library").get<std::string>());
  }
  loaded.push_back({.path = text, .kernels = {kernel.name}});
  add_kernel(kernel);
  return loaded.back();
}

}  // namespace attest
