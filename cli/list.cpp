#include <fmt/format.h>

#include <string>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "core/input_family.hpp"
#include "core/registry.hpp"
#include "verify/property.hpp"

namespace attest {
namespace {

void list_kernels(bool mutants) {
  for (const KernelInfo& kernel : all_kernels()) {
    if ((kernel.role == KernelRole::mutant) != mutants) continue;
    std::string formats;
    for (const ElementType type : kernel.element_types) {
      formats += fmt::format("{}{}", formats.empty() ? "" : ",", format_of(type).name);
    }
    const std::string unavailable = kernel.unavailable ? kernel.unavailable() : "";
    fmt::print("  {:<28} {:<5} {:<15} {}{}{}\n", kernel.name, name_of(kernel.executor), formats,
               kernel.summary,
               kernel.killed_by.empty() ? "" : fmt::format(" [must fail {}]", kernel.killed_by),
               unavailable.empty() ? "" : fmt::format(" [unavailable: {}]", unavailable));
  }
}

ExitCode list(const std::string& what) {
  const bool all = what.empty();
  if (all || what == "kernels") {
    fmt::print("kernels\n");
    list_kernels(false);
  }
  if (all || what == "mutants") {
    fmt::print("mutants (planted bugs; run one with verify --kernel 'mutant/NAME')\n");
    list_kernels(true);
  }
  if (all || what == "properties") {
    fmt::print("properties\n");
    for (const Property& property : all_properties()) {
      fmt::print("  {:<24} {:<11} {}\n", property.name, name_of(property.layer),
                 property.statement);
    }
  }
  if (all || what == "inputs") {
    load_captured_inputs("");
    fmt::print("inputs\n");
    for (const InputFamily& family : all_input_families()) {
      fmt::print("  {:<24} {}\n", family.name, family.summary);
    }
  }
  return ExitCode::passed;
}

}  // namespace

void add_list_command(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("list", "What there is: kernels, mutants, properties, inputs");
  const auto what = std::make_shared<std::string>();
  command->add_option("what", *what, "one of them; all when left out")
      ->check(CLI::IsMember({"kernels", "mutants", "properties", "inputs"}));
  command->callback([what, &action] { action = [what] { return list(*what); }; });
}

}  // namespace attest
