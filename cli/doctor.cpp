#include <fmt/format.h>

#include <string>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/provenance.hpp"
#include "core/registry.hpp"

namespace attest {
namespace {

ExitCode doctor() {
  const Provenance provenance = current_provenance("");
  fmt::print("build      commit {}{}, {}, {}{}\n", provenance.commit,
             provenance.dirty ? " with local changes" : "", provenance.compiler,
             provenance.build_type,
             provenance.sanitizers.empty() ? "" : ", sanitizers " + provenance.sanitizers);
  fmt::print("GPU code   {}\n", provenance.cuda_compiler.empty()
                                    ? "not built: no nvcc when this program was configured"
                                    : "nvcc " + provenance.cuda_compiler);
  fmt::print("host       {}\n", provenance.host);
  for (const Executor executor : {Executor::cpu, Executor::simt, Executor::gpu}) {
    const std::string reason = why_unavailable(executor);
    fmt::print("{:<10} {}\n", name_of(executor),
               reason.empty() ? make_device(executor)->description() : "not available: " + reason);
  }
  std::size_t kernels = 0;
  for (const KernelInfo& kernel : all_kernels()) kernels += kernel.role != KernelRole::mutant;
  fmt::print("kernels    {} registered, {} mutants\n", kernels, all_kernels().size() - kernels);
  const bool has_gpu = why_unavailable(Executor::gpu).empty();
  fmt::print("verify     runs GPU kernels {}\n",
             has_gpu ? "natively" : "on the SIMT executor, because there is no usable GPU");
  return ExitCode::passed;
}

}  // namespace

void add_doctor_command(CLI::App& app, Action& action) {
  app.add_subcommand("doctor", "What this machine and this build can do")->callback([&action] {
    action = doctor;
  });
}

}  // namespace attest
