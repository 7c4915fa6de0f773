#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/base/error.hpp"
#include "core/records/provenance.hpp"
#include "core/run/card.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/mutants.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

/// A row is stale when its kernel is gone or no longer offers its Plan for its problem.
bool is_stale(const TunedPlan& row) {
  try {
    for (const Executor executor : {Executor::gpu, Executor::simt}) {
      const KernelInfo* const kernel = find_kernel(row.key.kernel, executor);
      if (kernel == nullptr) continue;
      const Problem problem = problem_from_string(row.problem);
      return !is_offered(*kernel, problem, kernel->plans(problem), plan_from_string(row.plan));
    }
  } catch (const InvalidInput&) {
    // A problem or a Plan that this program no longer reads.
  }
  return true;
}

void print_tuned(const TuningTable& table) {
  std::map<std::string, int> of_gpu;
  for (const TunedPlan& row : table.rows) ++of_gpu[row.key.gpu];
  std::string gpus;
  for (const auto& [gpu, rows] : of_gpu) {
    gpus += fmt::format("{}{} for {}", gpus.empty() ? "" : ", ", rows, gpu);
  }
  const auto stale = std::ranges::count_if(table.rows, is_stale);
  fmt::print("tuned      {}{}\n", gpus.empty() ? "no default Plans" : "default Plans: " + gpus,
             stale == 0 ? "" : fmt::format("; {} stale, not used", stale));
}

void print_state(Device& gpu) {
  if (const auto state = gpu.state()) {
    fmt::print("now        SM {:.0f} MHz, memory {:.0f} MHz, {:.0f} W, {:.0f} degrees{}\n",
               state->sm_clock_mhz, state->memory_clock_mhz, state->power_w, state->temperature_c,
               !state->throttle_reasons ? ", throttled or not: it does not tell"
               : state->throttle_reasons->empty()
                   ? ""
                   : fmt::format(", throttled: {}", fmt::join(*state->throttle_reasons, ", ")));
  } else {
    fmt::print("now        not known: NVML does not tell clocks and power of this GPU\n");
  }
  std::string reason;
  try {
    (void)gpu.count({}, [] {});
  } catch (const MachineError& error) {
    reason = error.what();
  }
  fmt::print("counters   {}\n", reason.empty() ? "hardware counters can be read" : reason);
}

void print_card(const Device& gpu) {
  const std::string description = gpu.description();
  fmt::print("card       {}: default Plans {}\n", to_string(card_in(description)),
             where_plans_are_from(description));
}

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
  const bool has_gpu = why_unavailable(Executor::gpu).empty();
  if (has_gpu) print_state(*make_device(Executor::gpu));
  print_tuned(embedded_tuning_table());
  if (has_gpu) print_card(*make_device(Executor::gpu));
  std::size_t kernels = 0;
  for (const KernelInfo& kernel : all_kernels()) kernels += kernel.role != KernelRole::mutant;
  const std::string no_mutants = why_no_mutants();
  fmt::print("kernels    {} registered\n", kernels);
  fmt::print("mutants    {}\n", no_mutants.empty()
                                    ? fmt::format("{} registered", all_kernels().size() - kernels)
                                    : no_mutants);
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
