#include "plugin/judged_subject.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <deque>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include "core/attention/fused_roundings.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "plugin/plugin_process.hpp"
#include "plugin/python_process.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// A way to call what is handed in. Only what has nothing to compile needs no other processes. The
/// first of an extension is its usual one.
struct Format {
  std::string_view name, extension;
  std::string_view usual_name;  ///< of what is called in the file; empty: the only one
  bool starts_processes;
};
constexpr std::array known_formats{
    Format{"numpy", ".py", "attention", false}, Format{"kernelbench", ".py", "ModelNew", true},
    Format{"gpumode", ".py", "custom_kernel", true}, Format{"flashinfer", ".py", "run", true},
    Format{"plugin", ".so", "", false}};

const Format* find_format(std::string_view name) {
  const auto* const found = std::ranges::find(known_formats, name, &Format::name);
  return found == known_formats.end() ? nullptr : found;
}

/// Where the name of the file ends in FILE or FILE:NAME; npos: it is no file of the extension.
std::size_t end_of_file(std::string_view place, std::string_view extension) {
  const std::size_t at = place.rfind(extension);
  if (at == std::string_view::npos) return at;
  const std::size_t end = at + extension.size();
  return end == place.size() || place[end] == ':' ? end : std::string_view::npos;
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

/// Who is meant is clear while it is loaded.
std::string without_name(std::string what) {
  if (what.starts_with("solution: ")) what.erase(0, 10);
  return what;
}

std::vector<std::string>& flags() {
  static std::vector<std::string> found;
  return found;
}

/// All but how it is launched.
KernelInfo claimed_by(const std::string& text, const Task& task) {
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
  return kernel;
}

/// The simplest of its Plans that takes the problem; where none does, the simplest.
Plan plan_of(const KernelInfo& declared, const Problem& problem) {
  const std::vector<Plan> plans = declared.plans(problem);
  for (const Plan& plan : plans) {
    if (!why_unsupported(declared, problem, plan)) return plan;
  }
  return plans.front();
}

/// Of what a plugin declares counts only what does not help it: where its memory must lie, how much
/// more it needs, and what it refuses.
void launch_as_declared(KernelInfo& kernel, const KernelInfo& declared) {
  kernel.layout_needs.pointer_alignment_bytes = declared.layout_needs.pointer_alignment_bytes;
  kernel.workspace_bytes = [declared](const Problem& p, const Plan&) {
    try {
      return declared.workspace_bytes(p, plan_of(declared, p));
    } catch (const WorkerFault& fault) {  // a question is no launch, whose faults are expected
      throw KernelError(fault.what());
    }
  };
  kernel.launch = [declared](const Arguments& given, Device& device) {
    Arguments arguments = given;
    arguments.plan = plan_of(declared, given.problem);
    if (const auto why = why_unsupported(declared, given.problem, arguments.plan)) {
      throw KernelError("it refuses what the task asks for: " + *why);
    }
    declared.launch(arguments, device);
  };
}

/// The kernel of this name; empty: the only one. Throws KernelError where none of them can be
/// asked.
const KernelInfo& asked_for(const std::vector<KernelInfo>& kernels, std::string_view name,
                            const Task& task) {
  std::vector<std::string_view> names;
  for (const KernelInfo& kernel : kernels) names.push_back(kernel.name);
  const auto found = std::ranges::find(names, name);
  if (name.empty() ? kernels.size() != 1 : found == names.end()) {
    throw KernelError(fmt::format("it describes {}; the solution is FILE.so:NAME",
                                  printable(fmt::format("{}", fmt::join(names, ", ")), 200)));
  }
  const KernelInfo& kernel = kernels.at(name.empty() ? 0 : found - names.begin());
  if (kernel.executor != Executor::cpu) {
    throw KernelError("it wants memory of a GPU (ATTEST_CUDA); the task gives the host's");
  }
  if (kernel.operation->name != forward_operation.name) {
    throw KernelError(fmt::format("its operation is '{}'; the task asks for '{}'",
                                  kernel.operation->name, forward_operation.name));
  }
  if (kernel.layout_needs.pages == Pages::always) {
    throw KernelError("it takes K and V in pages only (ATTEST_ONLY_PAGES); the task has none");
  }
  if (task.wants_lse && !kernel.gives(forward::lse)) {
    throw KernelError("it does not give LSE (missing_outputs); the task asks for O and LSE");
  }
  return kernel;
}

KernelInfo python_kernel(const std::string& text, const Task& task, const Judgeable& judged) {
  const auto process = std::make_shared<PythonProcess>(judged);
  KernelInfo kernel = claimed_by(text, task);
  kernel.launch = [process](const Arguments& arguments, Device&) { process->launch(arguments); };
  for (const Json& flag : process->description().value("flags", Json::array())) {
    if (flag.is_string()) flags().push_back(printable(flag.get<std::string>(), 120));
  }
  return kernel;
}

KernelInfo plugin_kernel(const std::string& text, const Task& task, const Judgeable& judged) {
  const auto process = std::make_shared<PluginProcess>(judged);
  KernelInfo kernel = claimed_by(text, task);
  try {
    launch_as_declared(
        kernel, asked_for(PluginProcess::kernels_of(process, "solution"), judged.name, task));
  } catch (const InvalidInput& error) {  // its own, not the user's
    throw KernelError(error.what());
  }
  return kernel;
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

bool is_shared_object(std::string_view place) {
  return end_of_file(place, ".so") != std::string_view::npos;
}

std::string judged_text(const JudgedSubject& subject) {
  const auto fits = [&](const Format& one) {
    return (subject.format.empty() || one.name == subject.format) &&
           end_of_file(subject.place, one.extension) != std::string::npos;
  };
  if (!subject.format.empty() && find_format(subject.format) == nullptr) {
    throw InvalidInput(fmt::format("--format is '{}'; allowed: {}", printable(subject.format),
                                   fmt::join(judged_formats(), ", ")));
  }
  const auto* const format = std::ranges::find_if(known_formats, fits);
  if (format == known_formats.end()) {
    throw InvalidInput(
        fmt::format("'{}' is no solution; allowed: FILE.py or FILE.py:NAME, FILE.so or "
                    "FILE.so:NAME of --format "
                    "plugin",
                    printable(subject.place, 4096)));
  }
  const std::size_t end = end_of_file(subject.place, format->extension);
  std::error_code error;
  const fs::path file = fs::canonical(subject.place.substr(0, end), error);
  if (error || !fs::is_regular_file(file, error)) {
    throw InvalidInput(fmt::format("'{}': {}", printable(subject.place, 4096),
                                   error ? error.message() : "is not a file"));
  }
  const std::string name = end + 1 < subject.place.size() ? subject.place.substr(end + 1)
                                                          : std::string(format->usual_name);
  return fmt::format("{}:{}@{}@{}", file.string(), name, format->name, subject.task.text);
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
  const TextParts known = parts_of_judged(text);
  const Format& format = *find_format(known.format);
  const std::size_t colon = known.place.rfind(':');
  Json asked = task.to_json();
  asked["format"] = std::string(known.format);
  const Judgeable judged{.file = std::string(known.place.substr(0, colon)),
                         .name = std::string(known.place.substr(colon + 1)),
                         .asked = std::move(asked),
                         .starts_processes = format.starts_processes,
                         .limit = limit};
  flags().clear();
  try {
    add_kernel(format.extension == ".so" ? plugin_kernel(text, task, judged)
                                         : python_kernel(text, task, judged));
  } catch (const WorkerFault& fault) {
    throw KernelError(without_name(fault.what()));
  } catch (const KernelError& error) {
    throw KernelError(without_name(error.what()));
  }
  loaded.push_back({.path = text, .kernels = {judged_kernel_name}});
  return loaded.back();
}

const std::vector<std::string>& flags_of_judged_subject() {
  return flags();
}

}  // namespace attest
