#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <string>
#include <thread>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/base/progress.hpp"
#include "core/base/text_file.hpp"
#include "core/operations/forward.hpp"
#include "core/records/provenance.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/kill_matrix.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

struct MutantsOptions {
  std::filesystem::path out = "out";
  bool in_process = false;
  std::string operation = "forward";
  KillMatrixOptions matrix;
};

/// A case that a campaign draws takes milliseconds, on the executor up to seconds; a hang is waited
/// for once.
constexpr double seconds_per_case = 30;

std::string feature_of(const MatrixRow& mutant) {
  if (mutant.killing_feature) return mutant.killing_feature->name;
  return mutant.features.all.kills > 0 ? "any" : "-";
}

void print_table(const KillMatrix& matrix) {
  fmt::print("\n{:<38}", "mutant");
  for (std::size_t column = 0; column < matrix.columns(); ++column) {
    fmt::print(" {:>6}", column_head(*matrix.options.operation, column));
  }
  fmt::print("  {:<30} feature of the cases that our laws kill it in\n", "named law");
  const auto row = [&](const std::string& name, const auto& cell, std::string_view last) {
    fmt::print("{:<38}", name);
    for (std::size_t column = 0; column < matrix.columns(); ++column) {
      fmt::print(" {:>6}", cell(column));
    }
    fmt::print("  {}\n", last);
  };
  for (std::size_t i = 0; i < matrix.mutants.size(); ++i) {
    const MatrixRow& mutant = matrix.mutants[i];
    row(
        mutant.kernel->name, [&](std::size_t c) { return mutant.columns[c].kills; },
        fmt::format("{:<30} {}",
                    matrix.campaign[i].is_as_expected() ? mutant.kernel->killed_by : "NOT KILLED",
                    feature_of(mutant)));
  }
  fmt::print("\n");
  row(
      fmt::format("killed, of {}", matrix.mutants.size()),
      [&](std::size_t c) {
        return std::ranges::count_if(matrix.mutants,
                                     [&](const MatrixRow& m) { return m.is_killed_by(c); });
      },
      "");
  row(
      "killed on N(0, 1) only",
      [&](std::size_t c) {
        if (c >= matrix.peers()) return std::string("-");
        return fmt::format("{}", std::ranges::count_if(matrix.mutants, [&](const MatrixRow& m) {
                             return m.on_normal[c].kills > 0;
                           }));
      },
      "");
  std::int64_t cases = 0;
  for (const MatrixRow& kernel : matrix.correct) cases += kernel.cases;
  row(
      fmt::format("false alarms, of {} cases", cases),
      [&](std::size_t c) {
        std::int64_t alarms = 0;
        for (const MatrixRow& kernel : matrix.correct) alarms += kernel.columns[c].rejected;
        return alarms;
      },
      "");
}

ExitCode run_mutants(MutantsOptions options) {
  options.matrix.operation = &operation_from_name(options.operation);
  load_captured_inputs("");
  const auto start = std::chrono::steady_clock::now();
  if (!options.in_process) {
    // A planted bug may write anywhere: the judge's memory is another process.
    options.matrix.make_runner = [] {
      return std::make_unique<IsolatedRunner>(Isolation{.limits = {.seconds = seconds_per_case}});
    };
  }
  KillMatrix matrix;
  {
    Progress progress({.label = "planted bugs", .unit = "cases"});
    options.matrix.on_case_done = [&] { progress.advance(); };
    options.matrix.on_drawn = [&](std::int64_t total) { progress.set_total(total); };
    matrix = make_kill_matrix(options.matrix);
  }
  matrix.options.on_case_done = {};
  matrix.options.on_drawn = {};
  matrix.options.make_runner = {};
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  const Provenance provenance = current_provenance("");
  const std::string name = matrix.options.operation == &forward_operation
                               ? "kill_matrix"
                               : fmt::format("kill_matrix_{}", matrix.options.operation->name);
  const std::filesystem::path markdown = options.out / (name + ".md");
  const std::filesystem::path json = options.out / (name + ".json");
  write_whole_file(markdown, to_markdown(matrix, provenance));
  write_whole_file(json, to_json(matrix, provenance));
  print_table(matrix);
  fmt::print("\n{} in {}; written to {} and {}\n{}\n", "kill matrix", format_duration(seconds),
             markdown.string(), json.string(),
             matrix.is_as_expected() ? as_good("PASSED") : as_bad("FAILED"));
  return matrix.is_as_expected() ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_mutants_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "mutants", "Judge the judge: planted bugs against our laws and other projects' rules");
  const auto options = std::make_shared<MutantsOptions>();
  KillMatrixOptions& matrix = options->matrix;
  matrix.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  command->add_option("--kernel", matrix.kernels, "glob over mutants")->capture_default_str();
  command
      ->add_option("--operation", options->operation,
                   "the mutants and the rules of one; see attest list operations")
      ->capture_default_str();
  command->add_option("--cases", matrix.cases, "cases of each mutant")
      ->check(CLI::Range(1, 1 << 20))
      ->capture_default_str();
  command
      ->add_option("--normal-cases", matrix.normal_cases,
                   "further cases of each on N(0, 1), for the rules of other projects")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  command
      ->add_option(
          "--correct-cases", matrix.correct_cases,
          "at least so many cases of each CPU kernel without a bug, a quarter on the executor: "
          "for false alarms")
      ->check(CLI::Range(0, 1 << 20))
      ->capture_default_str();
  add_seed_option(*command, matrix.seed, "seed of the cases");
  command->add_option("--jobs", matrix.jobs, "cases run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_flag("--in-process", options->in_process,
                    "judge here instead of in worker processes: for debuggers");
  add_out_option(
      *command, options->out,
      "folder for kill_matrix.md and kill_matrix.json; the names of others end in _OPERATION")
      ->capture_default_str();
  command->footer(
      "A number counts the cases in which a rule rejects the mutant and accepts the kernel without "
      "the bug; the\n"
      "last column is the feature that tells best which cases our laws kill it in.\n"
      "Exit code 0: our laws kill every mutant, each names a law that does, and no correct kernel "
      "is "
      "rejected.\n"
      "Examples:\n"
      "  attest mutants\n"
      "  attest mutants --operation backward --cases 60\n"
      "  attest mutants --kernel 'mutant/z2*' --cases 200");
  command->callback([options, &action] { action = [options] { return run_mutants(*options); }; });
}

}  // namespace attest
