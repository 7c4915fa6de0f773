#include "cli/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>

#include "cli/selection.hpp"
#include "core/attention/common_operation.hpp"
#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/base/quantity.hpp"
#include "core/base/text.hpp"
#include "core/inputs/input_family.hpp"
#include "experiments/tuning/suites.hpp"

namespace attest {

void require_values(const CLI::App& command, const std::string& name) {
  for (const CLI::Option* option : command.get_options()) {
    if (option->get_name() == "--plan" || std::ranges::count(option->results(), "") == 0) continue;
    throw InvalidInput(
        fmt::format("{} is ''; allowed: what {} --help says", option->get_name(), name));
  }
  for (const CLI::App* const given : command.get_subcommands()) {
    require_values(*given, name + " " + given->get_name());
  }
}

CLI::Option* add_plugin_option(CLI::App& command, std::vector<std::string>& plugins,
                               const std::string& more) {
  return command
      .add_option("--plugin,--python", plugins,
                  "kernels of your own: a shared object (include/attest/plugin.h), or a function "
                  "of Python, "
                  "FILE.py:FUNCTION, MODULE:FUNCTION or LIBRARY.so:FUNCTION (tvm-ffi); repeatable" +
                      more)
      ->allow_extra_args(false);
}

CLI::Option* add_seed_option(CLI::App& command, std::uint64_t& seed, const std::string& what) {
  const auto why_not = [](const std::string& text) {
    std::uint64_t value = 0;
    const char* const last = text.data() + text.size();
    const auto [end, error] = std::from_chars(text.data(), last, value);
    return error == std::errc() && end == last
               ? ""
               : "Value " + text + " not in range 0 to 18446744073709551615";
  };
  return command.add_option("--seed", seed, what)
      ->check(CLI::Validator(why_not, "", "seed"))
      ->capture_default_str();
}

void add_problem_options(CLI::App& command, ProblemSelection& selection,
                         const std::string& without_any) {
  command
      .add_option("--kernel", selection.kernels, "glob over kernel names, commas separate several")
      ->each([&selection](const std::string&) { selection.names_kernels = true; })
      ->capture_default_str();
  command.add_option("--operation", selection.operation,
                     "what the problems ask for, else forward unless they say it; see attest list "
                     "operations");
  add_plugin_option(command, selection.plugins, "; without --kernel only their kernels");
  command
      .add_option("--problem", selection.problems,
                  "as reports print it: 'b4 h16 n4096 d128 causal_bottom_right bf16'; several")
      ->allow_extra_args(false);
  std::string names;
  for (const Suite& suite : all_suites()) {
    names += fmt::format("{}{}: {}", names.empty() ? "" : "; ", suite.name, suite.summary);
  }
  command.add_option("--suite", selection.suites, names + without_any)
      ->delimiter(',')
      ->allow_extra_args(false);
}

std::string ProblemSelection::kernel_glob() const {
  const std::vector<std::string> of_plugins = load_plugins(plugins);
  return of_plugins.empty() || names_kernels ? kernels : glob_of_runnable(of_plugins);
}

std::vector<Problem> problems_of(const ProblemSelection& selection,
                                 const std::string& without_any) {
  std::vector<Problem> problems;
  const Operation* const asked =
      selection.operation.empty() ? nullptr : &operation_from_name(selection.operation);
  for (const std::string& text : selection.problems) {
    problems.push_back(asked != nullptr ? problem_of(*asked, text) : problem_from_string(text));
  }
  const auto add_suite = [&](const std::string& name) {
    std::ranges::copy(problems_of_suite(name), std::back_inserter(problems));
  };
  std::ranges::for_each(selection.suites, add_suite);
  if (problems.empty() && !without_any.empty()) add_suite(without_any);
  for (Problem& problem : problems) {
    if (asked != nullptr) {
      problem.operation = asked;
      validate(problem);
    }
  }
  const Operation& operation = common_operation(problems);
  const std::string family = InputSpec{}.family;
  if (!input_family(family).serves(operation)) {
    throw InvalidInput(
        fmt::format("operation {}: what is timed gets inputs of family '{}', and its are others",
                    operation.name, family));
  }
  return problems;
}

double parse_seconds(std::string_view option, const std::string& text) {
  const auto quantity = quantity_from(text);
  if (quantity && quantity->dimension == Dimension::time && quantity->value > 0) {
    return quantity->value / 1e3;
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: a positive time with its unit, such as 60s, 5min or 1h",
                  option, printable(text)));
}

std::uint64_t parse_bytes(std::string_view option, const std::string& text, double least) {
  const auto quantity = quantity_from(text);
  if (quantity && quantity->dimension == Dimension::bytes && quantity->value >= least &&
      quantity->value < 0x1p60) {
    return static_cast<std::uint64_t>(quantity->value);
  }
  throw InvalidInput(fmt::format(
      "{} is '{}'; allowed: a size with its unit, such as 512MiB or 8GiB{}", option,
      printable(text), least > 1 ? fmt::format(", from {:.0f}MiB on", least / 0x1p20) : ""));
}

Shard parse_shard(std::string_view option, const std::string& text) {
  Shard shard;
  const char* end = text.data() + text.size();
  const auto index = std::from_chars(text.data(), end, shard.index);
  if (index.ec == std::errc() && index.ptr != end && *index.ptr == '/') {
    const auto count = std::from_chars(index.ptr + 1, end, shard.count);
    if (count.ec == std::errc() && count.ptr == end && shard.index >= 1 &&
        shard.index <= shard.count && shard.count <= 1'000'000) {
      --shard.index;
      return shard;
    }
  }
  throw InvalidInput(
      fmt::format("{} is '{}'; allowed: i/n with i from 1 to n, such as 2/5", option, text));
}

}  // namespace attest
