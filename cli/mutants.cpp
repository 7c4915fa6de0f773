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
  bool only_kills = false;
  std::filesystem::path out = "out";
  bool in_process = false;
  std::string operation;  ///< empty: of the matrix forward, of --kills all
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

void write_kills(const MutantsOptions& options, const std::vector<KernelResult>& results) {
  write_whole_file(options.out / "kills.tsv", to_kill_lines(results));
}

/// Until each mutant is dead by the law that it names, and no more.
ExitCode run_kills(MutantsOptions options) {
  const auto start = std::chrono::steady_clock::now();
  options.matrix.shrink_calls = 0;
  const std::vector<const KernelInfo*> mutants = mutants_of(options.matrix);
  const std::vector<KernelResult> results = kill_each(mutants, options.matrix);
  write_kills(options, results);
  std::int64_t killed = 0;
  for (const KernelResult& result : results) {
    killed += result.is_as_expected();
    if (result.is_as_expected()) continue;
    fmt::print("NOT KILLED by {}: {}: {}\n", result.kernel->killed_by, result.kernel->name,
               result.failure ? describe(*result.failure, *result.kernel) : "survived");
  }
  const bool all = killed == std::ssize(results);
  fmt::print("{} of {} planted bugs killed by the law that each names, in {}; written to {}\n{}\n",
             killed, results.size(),
             format_duration(
                 std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()),
             (options.out / "kills.tsv").string(), all ? as_good("PASSED") : as_bad("FAILED"));
  return all ? ExitCode::passed : ExitCode::verdict_failed;
}

ExitCode run_mutants(MutantsOptions options) {
  options.matrix.operation =
      options.operation.empty() ? nullptr : &operation_from_name(options.operation);
  load_captured_inputs("");
  const auto start = std::chrono::steady_clock::now();
  if (!options.in_process) {
    // A planted bug may write anywhere: the judge's memory is another process.
    options.matrix.make_runner = [] {
      return std::make_unique<IsolatedRunner>(Isolation{.limits = {.seconds = seconds_per_case}});
    };
  }
  if (options.only_kills) return run_kills(std::move(options));
  if (options.matrix.operation == nullptr) options.matrix.operation = &forward_operation;
  KillMatrix matrix;
  {
    Progress progress({.label = "planted bugs", .unit = "case"});
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
  write_kills(options, matrix.campaign);
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
  command->add_option("--kernel", matrix.kernels, "glob over mutants, commas separate several")
      ->capture_default_str();
  command->add_option("--operation", options->operation,
                      "the mutants and the rules of one, of forward by default; with --kills of "
                      "all; see attest list operations");
  command->add_flag("--kills", options->only_kills,
                    "only until each is killed by the law that it names: no other rules, no "
                    "shrinking; ./attest puts the kills into verify/mutants/killed.tsv");
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
  command
      ->add_option("--out", options->out,
                   "folder for kill_matrix.md, kill_matrix.json and kills.tsv; the names of other "
                   "matrices end in _OPERATION")
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
      "  attest mutants --kills\n"
      "  attest mutants --operation backward --cases 60\n"
      "  attest mutants --kernel 'mutant/z2*' --cases 200");
  command->callback([options, &action] { action = [options] { return run_mutants(*options); }; });
}

}  // namespace attest
