#include "cli/selection.hpp"

#include <fmt/format.h>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/base/text.hpp"
#include "core/inputs/captured_inputs.hpp"
#include "core/run/mutants.hpp"
#include "core/run/registry.hpp"
#include "plugin/loader.hpp"
#include "plugin/python_subject.hpp"

namespace attest {
namespace {

bool runs_here(const KernelInfo& kernel, const std::string& executor) {
  if (executor != "auto") return name_of(kernel.executor) == executor;
  if (kernel.executor == Executor::cpu) return true;
  const bool has_gpu = why_unavailable(Executor::gpu).empty();
  const bool on_gpu = has_gpu && find_kernel(kernel.name, Executor::gpu) != nullptr;
  return on_gpu == (kernel.executor == Executor::gpu);
}

/// True if the name is one of those that commas separate.
bool names_it(const std::string& glob, const std::string& name) {
  return ("," + glob + ",").find("," + name + ",") != std::string::npos;
}

}  // namespace

std::vector<const KernelInfo*> select_kernels(const std::string& glob, const std::string& executor,
                                              const Operation* operation) {
  if (executor != "auto" && !executor_from_name(executor)) {
    throw InvalidInput(fmt::format("--executor is '{}'; allowed: auto, gpu, simt, cpu", executor));
  }
  if (executor == "gpu") {
    if (const std::string reason = why_unavailable(Executor::gpu); !reason.empty()) {
      throw MachineError(fmt::format("--executor gpu: {}", reason));
    }
  }
  const bool with_mutants = glob.find("mutant") != std::string::npos;
  if (const std::string reason = why_no_mutants(); with_mutants && !reason.empty()) {
    throw InvalidInput(fmt::format("--kernel '{}': {}", glob, reason));
  }
  std::vector<std::string> names;
  const auto is_judged = [with_mutants](const KernelInfo& kernel) {
    return kernel.role != KernelRole::limit && (kernel.role != KernelRole::mutant || with_mutants);
  };
  for (const KernelInfo& kernel : all_kernels()) {
    if (is_judged(kernel)) names.push_back(kernel.name);
    if (kernel.role == KernelRole::limit && names_it(glob, kernel.name)) {
      throw InvalidInput(
          fmt::format("--kernel '{}': {} gives no answer to judge, it is timed as what the machine "
                      "allows; allowed: in explain and in studies",
                      printable(glob), kernel.name));
    }
  }
  require_matches({"--kernel", "kernel", "attest list kernels"}, glob, names);
  std::vector<const KernelInfo*> selected;
  std::string unavailable;
  for (const KernelInfo& kernel : all_kernels()) {
    if (!is_judged(kernel)) continue;
    if (operation != nullptr && kernel.operation != operation) continue;
    if (!matches_glob(kernel.name, glob) || !runs_here(kernel, executor)) continue;
    if (const std::string reason = kernel.unavailable ? kernel.unavailable() : "";
        !reason.empty()) {
      unavailable = fmt::format("kernel {} cannot run on this machine: {}", kernel.name, reason);
      fmt::print(stderr, "attest: {}\n", unavailable);
      continue;
    }
    selected.push_back(&kernel);
  }
  if (selected.empty() && !unavailable.empty()) throw MachineError(unavailable);
  if (selected.empty()) {
    throw InvalidInput(fmt::format(
        "--kernel '{}' matches no kernel{} on executor {}; see attest list kernels", glob,
        operation == nullptr ? "" : fmt::format(" of {}", operation->name), executor));
  }
  return selected;
}

const LoadedPlugin& load_kernels_of(const std::string& plugin, bool says_how) {
  return is_python_subject(plugin) ? load_python_subject(plugin, says_how) : load_plugin(plugin);
}

bool ask_functions_for(const std::string& operation, std::vector<std::string>& plugins) {
  bool are_all = !plugins.empty();
  for (std::string& plugin : plugins) {
    const bool is_function = is_python_subject(plugin);
    if (is_function) plugin = for_operation(plugin, operation);
    are_all = are_all && is_function;
  }
  return are_all;
}

std::vector<std::string> load_plugins(const std::vector<std::string>& plugins, bool says_how) {
  std::vector<std::string> kernels;
  for (const std::string& plugin : plugins) {
    const LoadedPlugin& loaded = load_kernels_of(plugin, says_how);
    kernels.insert(kernels.end(), loaded.kernels.begin(), loaded.kernels.end());
  }
  return kernels;
}

std::string glob_of_runnable(const std::vector<std::string>& plugin_kernels) {
  std::string glob;
  std::string refusals;
  for (const std::string& name : plugin_kernels) {
    const bool needs_gpu = find_kernel(name, Executor::gpu) != nullptr;
    if (const std::string reason = needs_gpu ? why_unavailable(Executor::gpu) : "";
        !reason.empty()) {
      refusals += fmt::format("{}the plugin's kernel '{}' needs a GPU: {}",
                              refusals.empty() ? "" : "; ", name, reason);
    } else {
      glob += (glob.empty() ? "" : ",") + name;
    }
  }
  if (glob.empty()) throw MachineError(refusals);
  if (!refusals.empty()) fmt::print(stderr, "attest: not run: {}\n", refusals);
  return glob;
}

void load_captured_inputs(const std::string& user_file) {
  add_real_inputs();
  if (!user_file.empty()) add_captured_inputs(user_file, "file");
}

}  // namespace attest
