#include <fmt/format.h>

#include <string>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/attention/operation.hpp"
#include "core/inputs/input_family.hpp"
#include "core/run/mutants.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/parse_study.hpp"
#include "experiments/study/shipped_studies.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace {

/// Empty where it can run.
std::string why_not_here(const KernelInfo& kernel) {
  if (std::string reason = why_unavailable(kernel.executor); !reason.empty()) return reason;
  return kernel.unavailable ? kernel.unavailable() : std::string{};
}

/// Lists kernels, those of plugins only when there are plugins.
void list_kernels(bool mutants, bool of_plugins) {
  for (const KernelInfo& kernel : all_kernels()) {
    if ((kernel.role == KernelRole::mutant) != mutants) continue;
    if (of_plugins == kernel.plugin.empty()) continue;
    std::string formats;
    for (const ElementType type : kernel.element_types) {
      formats += fmt::format("{}{}", formats.empty() ? "" : ",", format_of(type).name);
    }
    const std::string reason = why_not_here(kernel);
    fmt::print("  {:<28} {:<5} {:<15} {}{}{}{}\n", kernel.name, name_of(kernel.executor), formats,
               reason.empty() ? "" : as_open(fmt::format("[not on this machine: {}] ", reason)),
               kernel.summary, kernel.is_batch_invariant ? "" : " [not batch-invariant]",
               kernel.killed_by.empty() ? "" : fmt::format(" [must fail {}]", kernel.killed_by));
  }
}

ExitCode list(const std::string& what, const std::vector<std::string>& plugins) {
  if (!plugins.empty()) {
    (void)load_plugins(plugins);
    list_kernels(false, true);
    return ExitCode::passed;
  }
  const bool all = what.empty();
  if (all || what == "kernels") {
    fmt::print("kernels\n");
    list_kernels(false, false);
  }
  if (all || what == "operations") {
    fmt::print("operations\n");
    for (const Operation* operation : all_operations()) {
      fmt::print("  {:<28} {}\n", operation->name, operation->summary);
    }
  }
  if (all || what == "mutants") {
    fmt::print("mutants (planted bugs; run one with verify --kernel 'mutant/NAME')\n");
    if (const std::string reason = why_no_mutants(); !reason.empty()) {
      fmt::print("  {}\n", reason);
    }
    list_kernels(true, false);
  }
  if (all || what == "laws") {
    fmt::print("laws\n");
    for (const Law& law : all_laws()) {
      fmt::print("  {:<30} {:<11} {}\n", law.name, name_of(law.layer), law.statement);
    }
  }
  if (all || what == "inputs") {
    load_captured_inputs("");
    fmt::print("inputs\n");
    for (const InputFamily& family : all_input_families()) {
      fmt::print("  {:<24} {}\n", family.name, family.summary);
    }
  }
  if (all || what == "studies") {
    fmt::print("studies (run one with study run NAME)\n");
    for (const ShippedStudy& study : shipped_studies()) {
      const auto spec = parse_study(study.text, study.name).spec;
      fmt::print("  {:<24} {}\n", study.name, spec ? spec->question : "");
    }
  }
  return ExitCode::passed;
}

}  // namespace

void add_list_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "list", "What there is: kernels, operations, mutants, laws, inputs, studies");
  const auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "one of them; all when left out")
      ->check(CLI::IsMember({"kernels", "operations", "mutants", "laws", "inputs", "studies"}));
  const auto plugins = std::make_shared<std::vector<std::string>>();
  add_plugin_option(*command, *plugins, "; they are listed instead");
  command->callback(
      [what, plugins, &action] { action = [what, plugins] { return list(*what, *plugins); }; });
}

}  // namespace attest
