#include "plugin/judged_subject.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <deque>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "core/attention/fused_roundings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/registry.hpp"
#include "plugin/python_process.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A way to call what is handed in. Only what has nothing to compile needs no other processes.
struct Format {
  std::string_view name, usual_name;
  bool starts_processes;
};
constexpr std::array known_formats{
    Format{"numpy", "attention", false}, Format{"kernelbench", "ModelNew", true},
    Format{"gpumode", "custom_kernel", true}, Format{"flashinfer", "run", true}};

const Format* find_format(std::string_view name) {
  const auto* const found = std::ranges::find(known_formats, name, &Format::name);
  return found == known_formats.end() ? nullptr : found;
}

struct TextParts {
  std::string_view place, format, task;
};

/// Of a text with two @ in the end; empty parts where there are none.
TextParts parts_of_judged(std::string_view text) {
  const std::size_t second = text.rfind('@');
  if (second == std::string_view::npos || second == 0) return {};
  const std::size_t first = text.rfind('@', second - 1);
  if (first == std::string_view::npos) return {};
  return {.place = text.substr(0, first),
          .format = text.substr(first + 1, second - first - 1),
          .task = text.substr(second + 1)};
}

KernelInfo kernel_of(const std::string& text, const Task& task,
                     const std::shared_ptr<PythonProcess>& process) {
  KernelInfo kernel{.name = judged_kernel_name,
                    .summary = fmt::format("what was handed in for the task {}", task.text),
                    .source = text,
                    .executor = Executor::cpu,
                    .plugin = text};
  kernel.element_types = task.element_types;
  kernel.masks = task.masks;
  kernel.head_dims = task.head_dims;
  kernel.query_len_multiple = kernel.key_len_multiple = task.multiple;
  kernel.is_deterministic = task.is_deterministic;
  kernel.is_batch_invariant = false;
  kernel.ignores_hidden_nan = false;
  if (!task.wants_lse) kernel.missing_outputs = {"lse"};
  kernel.layout_needs.contiguous_only = true;
  kernel.precision = [](const Problem& p, const Plan&) {
    return fused_precision(p, usual_products(p));
  };
  kernel.plans = [](const Problem&) { return std::vector<Plan>{Plan{}}; };
  kernel.unsupported = [task](const Problem& p, const Plan&) { return task.why_not(p); };
  kernel.launch = [process](const Arguments& arguments, Device&) { process->launch(arguments); };
  return kernel;
}

std::vector<std::string>& flags() {
  static std::vector<std::string> found;
  return found;
}

}  // namespace

const std::vector<std::string_view>& judged_formats() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const Format& format : known_formats) all.push_back(format.name);
    return all;
  }();
  return names;
}

bool is_judged_subject(std::string_view text) {
  return find_format(parts_of_judged(text).format) != nullptr;
}

std::string judged_text(const JudgedSubject& subject) {
  const Format* const format = find_format(subject.format);
  if (format == nullptr) {
    throw InvalidInput(fmt::format("--format is '{}'; allowed: {}", printable(subject.format),
                                   fmt::join(judged_formats(), ", ")));
  }
  const std::size_t end = subject.place.rfind(".py");
  const bool is_python = end != std::string::npos &&
                         (end + 3 == subject.place.size() || subject.place[end + 3] == ':');
  if (!is_python) {
    throw InvalidInput(fmt::format("'{}' is no solution; allowed: FILE.py or FILE.py:NAME",
                                   printable(subject.place, 4096)));
  }
  std::error_code error;
  const fs::path file = fs::canonical(subject.place.substr(0, end + 3), error);
  if (error || !fs::is_regular_file(file, error)) {
    throw InvalidInput(fmt::format("'{}': {}", printable(subject.place, 4096),
                                   error ? error.message() : "is not a file"));
  }
  const std::string name = end + 4 < subject.place.size() ? subject.place.substr(end + 4)
                                                          : std::string(format->usual_name);
  return fmt::format("{}:{}@{}@{}", file.string(), name, subject.format, subject.task.text);
}

const LoadedPlugin& load_judged_subject(const std::string& given, std::chrono::milliseconds limit) {
  static std::deque<LoadedPlugin> loaded;  // keeps references good
  const TextParts parts = parts_of_judged(given);
  const Task task = task_from(std::string(parts.task));
  const std::string text = judged_text(
      {.place = std::string(parts.place), .format = std::string(parts.format), .task = task});
  for (const LoadedPlugin& one : loaded) {
    if (one.path == text) return one;
  }
  if (find_kernel(judged_kernel_name, Executor::cpu) != nullptr) {
    throw InvalidInput(fmt::format("'{}': one solution is judged at a time", printable(given)));
  }
  const std::string place(parts_of_judged(text).place);
  Json asked = task.to_json();
  asked["format"] = std::string(parts.format);
  std::shared_ptr<PythonProcess> process;
  try {
    process = std::make_shared<PythonProcess>(
        place, Judgeable{.file = place.substr(0, place.rfind(':')),
                         .asked = asked.dump(),
                         .starts_processes = find_format(parts.format)->starts_processes,
                         .limit = limit});
  } catch (const WorkerFault& fault) {
    std::string what = fault.what();
    if (what.starts_with("solution: ")) what.erase(0, 10);
    throw KernelError(what);
  }
  flags().clear();
  if (const Json& said = process->description(); said.contains("flags")) {
    for (const Json& flag : said["flags"]) {
      if (flag.is_string()) flags().push_back(printable(flag.get<std::string>(), 120));
    }
  }
  add_kernel(kernel_of(text, task, process));
  loaded.push_back({.path = text, .kernels = {judged_kernel_name}});
  return loaded.back();
}

const std::vector<std::string>& flags_of_judged_subject() {
  return flags();
}

}  // namespace attest
