#include "plugin/loader.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <memory>
#include <system_error>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/run/floating_point_mode.hpp"
#include "core/run/registry.hpp"
#include "plugin/descriptor.hpp"
#include "plugin/plugin_process.hpp"
#include "plugin/probe.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_path = 4096;
constexpr const char* symbol = "attest_plugin";

bool are_apart = false;

[[noreturn]] void reject(const std::string& path, std::string what) {
  // The dynamic linker begins its messages with the path, too.
  if (what.starts_with(path + ": ")) what.erase(0, path.size() + 2);
  throw InvalidInput(
      fmt::format("plugin '{}': {}", printable(path, longest_path), printable(what, longest_path)));
}

std::string last_error() {
  const char* error = dlerror();
  return error == nullptr ? "no reason is given" : error;
}

/// Loads and describes. The object stays loaded for the rest of the process: kernels point into it.
std::vector<KernelInfo> kernels_in(const std::string& path) {
  // Linked with -ffast-math, an object makes its loader flush denormals [gcc(1)].
  const FloatingPointMode mode;
  void* object = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (object == nullptr) reject(path, last_error());
  void* address = dlsym(object, symbol);
  if (address == nullptr) {
    reject(path, fmt::format("exports no function {}(); see attest/plugin.h", symbol));
  }
  const auto describe = reinterpret_cast<decltype(&attest_plugin)>(address);
  return kernels_of(describe(ATTEST_PLUGIN_VERSION), path);
}

/// The same in a process of its own; here, if that is where its memory must be.
std::vector<KernelInfo> kernels_apart(const std::string& path) {
  try {
    std::vector<KernelInfo> kernels =
        PluginProcess::kernels_of(std::make_shared<PluginProcess>(path), path);
    const auto is_of_a_gpu = [](const KernelInfo& one) { return one.executor == Executor::gpu; };
    return std::ranges::any_of(kernels, is_of_a_gpu) ? kernels_in(path) : kernels;
  } catch (const WorkerFault& fault) {
    reject(path, fault.what());
  }
}

/// Asks what the generators will ask in this process, so that a crash happens in the child instead.
void ask_a_little(const KernelInfo& kernel) {
  for (const ElementType type : kernel.element_types) {
    for (const Mask mask : kernel.masks) {
      for (const std::int64_t key_len : {0, 1, 65}) {
        const std::int64_t head_dim = kernel.head_dims.empty() ? 64 : kernel.head_dims.front();
        const Problem problem = with_needs_of(kernel, {.operation = kernel.operation,
                                                       .query_len = 33,
                                                       .key_len = key_len,
                                                       .head_dim = head_dim,
                                                       .mask = mask,
                                                       .element_type = type,
                                                       .scale = default_scale(head_dim)});
        for (const Plan& plan : kernel.plans(problem)) {
          if (why_unsupported(kernel, problem, plan)) continue;
          (void)kernel.workspace_bytes(problem, plan);
          (void)kernel.precision(problem, plan);
          if (kernel.first_row) (void)kernel.first_row(problem, plan);
        }
      }
    }
  }
}

/// The complaint of a load in a child process; empty: it is fine.
std::string trial_load(const std::string& path) {
  try {
    for (const KernelInfo& kernel : kernels_in(path)) ask_a_little(kernel);
    return "";
  } catch (const KernelError& error) {
    return fmt::format("plugin '{}': {}", printable(path, longest_path), error.what());
  } catch (const std::exception& error) {
    return error.what();
  } catch (...) {
    return "a C++ exception left it while it was loaded";
  }
}

}  // namespace

void run_plugins_apart() {
  are_apart = true;
}

const LoadedPlugin& load_plugin(const std::filesystem::path& given,
                                std::chrono::milliseconds limit) {
  static std::deque<LoadedPlugin> loaded;  // keeps references good
  std::error_code error;
  const std::filesystem::path canonical = std::filesystem::canonical(given, error);
  if (error || !std::filesystem::is_regular_file(canonical, error)) {
    reject(given.string(), error ? error.message() : "is not a file");
  }
  const std::string path = canonical.string();
  for (const LoadedPlugin& plugin : loaded) {
    if (plugin.path == path) return plugin;
  }
  (void)all_kernels();  // sorted before the fork
  const ProbeResult probe = run_in_child([&] { return trial_load(path); }, limit);
  if (!probe.finished) reject(path, probe.text + " while it is loaded");
  if (!probe.text.empty()) throw InvalidInput(probe.text);
  LoadedPlugin plugin{.path = path, .kernels = {}};
  for (KernelInfo& kernel : are_apart ? kernels_apart(path) : kernels_in(path)) {
    plugin.kernels.push_back(kernel.name);
    add_kernel(std::move(kernel));
  }
  loaded.push_back(std::move(plugin));
  return loaded.back();
}

}  // namespace attest
