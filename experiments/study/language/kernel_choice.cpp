#include "experiments/study/language/kernel_choice.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/attention/operation.hpp"
#include "core/base/glob.hpp"
#include "core/base/near_names.hpp"
#include "core/base/text.hpp"
#include "core/operations/select.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

std::string executors_of(std::string_view name) {
  std::string executors;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.name != name) continue;
    executors += fmt::format("{}{}", executors.empty() ? "" : ", ", name_of(kernel.executor));
  }
  return executors;
}

/// Attention, what has its inputs among its own, and choices of keys.
bool is_studied(const Operation& operation) {
  return &operation == &forward_operation || operation.extends == &forward_operation ||
         &operation == &select_operation;
}

}  // namespace

const std::vector<std::string>& peer_names() {
  static const std::vector<std::string> names{"bwd_ring_processes",
                                              "bwd_ring_processes_share",
                                              "bwd_ring_share",
                                              "cublas_standard",
                                              "cublas_standard_tf32",
                                              "cudnn_sdpa",
                                              "cudnn_sdpa_backward",
                                              "cudnn_sdpa_backward_deterministic",
                                              "flash_attention_3",
                                              "flash_attention_3_fp8",
                                              "flash_attention_3_kvcache",
                                              "flash_attention_4",
                                              "flash_attention_4_backward",
                                              "flashinfer_decode",
                                              "flashinfer_prefill",
                                              "read_once",
                                              "ring_processes",
                                              "ring_processes_share",
                                              "ring_share",
                                              "torch_cudnn",
                                              "torch_cudnn_backward",
                                              "torch_efficient",
                                              "torch_efficient_backward",
                                              "torch_flash",
                                              "torch_flash_backward",
                                              "torch_math",
                                              "torch_math_backward",
                                              "triton_flash"};
  return names;
}

bool is_peer(std::string_view name) {
  return std::ranges::find(peer_names(), name) != peer_names().end();
}

std::vector<std::string> study_kernel_names() {
  std::vector<std::string> names = peer_names();
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role == KernelRole::kernel && is_studied(*kernel.operation)) {
      names.push_back(kernel.name);
    }
  }
  std::ranges::sort(names);
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

std::vector<std::string> kernels_matching(std::string_view glob) {
  std::vector<std::string> names = study_kernel_names();
  std::erase_if(names, [&](const std::string& name) { return !matches_glob(name, glob); });
  return names;
}

std::string why_no_study_kernel(std::string_view name) {
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.name != name || is_studied(*kernel.operation)) continue;
    return fmt::format(
        "{} computes {}; allowed: kernels of attention, of its gradients and of choices of keys",
        name, kernel.operation->name);
  }
  const auto near = near_names(name, study_kernel_names());
  return fmt::format(
      "no kernel is called '{}'; {}", printable(name),
      near.empty() ? "see attest list kernels" : fmt::format("near: {}", fmt::join(near, ", ")));
}

ChosenKernel choose_kernel(std::string_view name, std::optional<Executor> executor, bool has_gpu) {
  std::vector<Executor> wanted{Executor::gpu, Executor::simt, Executor::cpu};
  if (executor) {
    wanted = {*executor};
  } else if (!has_gpu) {
    wanted.erase(wanted.begin());
  }
  for (const Executor e : wanted) {
    const KernelInfo* kernel = find_kernel(name, e);
    // With a GPU, a kernel of the executor would be counted beside kernels that are timed.
    if (kernel == nullptr || (!executor && has_gpu && e == Executor::simt)) continue;
    const std::string unavailable = kernel->unavailable ? kernel->unavailable() : "";
    if (unavailable.empty()) return {.kernel = kernel};
    return {.why_not = fmt::format("{} cannot run on this machine: {}", name, unavailable)};
  }
  const std::string executors = executors_of(name);
  if (executors.empty()) return {.why_not = fmt::format("{} is not in this build", name)};
  if (executor) {
    return {.why_not = fmt::format("{} does not run on executor {}, but on {}", name,
                                   name_of(*executor), executors)};
  }
  return {.why_not = fmt::format("{} runs on {} only", name, executors)};
}

}  // namespace attest
