#include "cli/failure_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "experiments/claims/ledger.hpp"
#include "plugin/python_subject.hpp"

namespace attest {
namespace {

namespace fs = std::filesystem;

/// Path as a code host names it, where the file lies below the current folder.
std::string shown(const fs::path& file) {
  std::error_code ignored;
  const fs::path relative = fs::relative(file, fs::current_path(), ignored);
  return (relative.empty() || *relative.begin() == ".." ? file : relative).generic_string();
}

/// The first line of the file that has the words.
std::optional<int> line_with(const fs::path& file, const std::string& words) {
  std::ifstream stream(file);
  std::string line;
  for (int number = 1; std::getline(stream, line); ++number) {
    if (line.find(words) != std::string::npos) return number;
  }
  return std::nullopt;
}

/// The place of a plugin, `FILE.py:FUNCTION` or a path; nothing for none.
std::optional<SourcePlace> of_plugin(const std::string& plugin) {
  if (plugin.empty()) return std::nullopt;
  std::error_code ignored;
  if (!is_python_subject(plugin)) return SourcePlace{.file = shown(plugin)};
  const std::size_t colon = plugin.rfind(':');
  const fs::path file = plugin.substr(0, colon);
  if (!fs::is_regular_file(file, ignored)) return std::nullopt;  // a module
  const auto line = line_with(file, fmt::format("def {}(", plugin.substr(colon + 1)));
  return SourcePlace{.file = shown(file), .line = line.value_or(1)};
}

std::optional<SourcePlace> in_our_tree(const std::string& kernel) {
  const auto tree = find_tree();
  if (!tree) return std::nullopt;
  const std::string name = fmt::format(".name = \"{}\"", kernel);
  std::error_code error;
  for (const char* folder : {"gpu/kernels", "cpu_reference/kernels"}) {
    for (const auto& entry : fs::recursive_directory_iterator(*tree / folder, error)) {
      const std::string kind = entry.path().extension().string();
      if (kind != ".cu" && kind != ".cpp") continue;
      const auto line = line_with(entry.path(), name);
      if (line) {
        return SourcePlace{.file = entry.path().lexically_relative(*tree).generic_string(),
                           .line = *line};
      }
    }
  }
  return std::nullopt;
}

std::string statement_of(const Failure& failure) {
  if (failure.kind == Verdict::crashed) return "the kernel does not end its process";
  if (failure.kind == Verdict::timed_out) return "the kernel answers in time";
  const Law* const law = find_law(failure.law);
  return law == nullptr ? "the kernel returns no error" : law->statement;
}

FailureReport report_of(const KernelResult& result, const Failure& failure,
                        const Counterexamples& kept) {
  const bool is_broken_law = failure.kind == Verdict::failed;
  return {.rule = is_broken_law ? failure.law : std::string(name_of(failure.kind)),
          .statement = statement_of(failure),
          .sentence = is_broken_law ? failure.check.detail
                                    : fmt::format("{} while {} was checked", name_of(failure.kind),
                                                  failure.law),
          .text = describe(failure, *result.kernel) + replay_of(failure, kept)};
}

/// `failure`: null where that is what is missing.
SourcePlace place_of(const KernelInfo& kernel, const Failure* failure,
                     const Counterexamples& kept) {
  std::optional<SourcePlace> place;
  if (failure != nullptr) place = source_place_in(failure->check.detail);
  if (!place) place = of_plugin(kernel.plugin);
  if (!place) place = in_our_tree(kernel.planted_in.empty() ? kernel.name : kernel.planted_in);
  if (place) return *place;
  const auto at = kept.find(failure);
  return {.file = at == kept.end() ? kernel.name : shown(at->second)};
}

}  // namespace

std::vector<FailureReport> failure_reports(const std::vector<KernelResult>& results,
                                           const Counterexamples& kept) {
  std::vector<FailureReport> reports;
  for (const KernelResult& result : results) {
    const bool is_kernel = result.kernel->role == KernelRole::kernel;
    if (result.is_as_expected() || (is_kernel && !result.failure)) continue;
    FailureReport report = is_kernel ? report_of(result, *result.failure, kept)
                                     : FailureReport{.rule = "not_killed",
                                                     .statement = "a planted bug is noticed",
                                                     .sentence = "it must be killed, and was not"};
    report.kernel = fmt::format("{} on {}", result.kernel->name, name_of(result.kernel->executor));
    report.place = place_of(*result.kernel, is_kernel ? &*result.failure : nullptr, kept);
    reports.push_back(std::move(report));
  }
  return reports;
}

}  // namespace attest
