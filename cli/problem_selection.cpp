#include "cli/problem_selection.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "cli/plugin_option.hpp"
#include "cli/selection.hpp"
#include "experiments/tuning/suites.hpp"

namespace attest {

void add_problem_options(CLI::App& command, ProblemSelection& selection,
                         const std::string& without_any) {
  command
      .add_option("--kernel", selection.kernels, "glob over kernel names, commas separate several")
      ->each([&selection](const std::string&) { selection.names_kernels = true; })
      ->capture_default_str();
  add_plugin_option(command, selection.plugins, "; without --kernel only their kernels");
  command
      .add_option("--problem", selection.problems,
                  "as reports print it: 'b4 h16 n4096 d128 causal_bottom_right bf16'; several")
      ->allow_extra_args(false);
  std::string names;
  for (const Suite& suite : all_suites()) {
    names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", suite.name, suite.summary);
  }
  command.add_option("--suite", selection.suites, names + without_any)->allow_extra_args(false);
}

std::string ProblemSelection::kernel_glob() const {
  const std::vector<std::string> of_plugins = load_plugins(plugins);
  return of_plugins.empty() || names_kernels ? kernels : glob_of_runnable(of_plugins);
}

std::vector<Problem> problems_of(const ProblemSelection& selection) {
  std::vector<Problem> problems;
  for (const std::string& text : selection.problems) problems.push_back(problem_from_string(text));
  for (const std::string& name : selection.suites) {
    std::ranges::copy(problems_of_suite(name), std::back_inserter(problems));
  }
  return problems;
}

}  // namespace attest
