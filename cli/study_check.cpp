#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "cli/study.hpp"
#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/near_names.hpp"
#include "core/base/progress.hpp"
#include "core/base/text.hpp"
#include "core/base/text_file.hpp"
#include "experiments/claims/ledger.hpp"
#include "experiments/explain/launch_counts.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/shipped_studies.hpp"
#include "gpu/simt/trace_kernel.hpp"

namespace attest {
namespace {

/// Says on stderr which claims of the study the ledger has not; a program without one cannot tell.
bool has_known_claims(const StudySpec& spec, const std::string& file) {
  const auto tree = spec.claims.empty() ? std::nullopt : find_tree();
  if (!tree) return true;
  const std::vector<std::string> ids = ids_of(read_ledger(ledger_folder(*tree)));
  bool are_known = true;
  for (const std::string& claim : spec.claims) {
    if (std::ranges::find(ids, claim) != ids.end()) continue;
    fmt::print(stderr, "{}: 'claims' has '{}', no id of the ledger; see attest claims\n", file,
               printable(claim));
    are_known = false;
  }
  return are_known;
}

struct StudyCheckOptions {
  std::vector<std::string> files, plugins;
  std::string device = "h200";
  bool lists_points = false;
};

void print_points(const Expansion& expansion) {
  for (const Point& point : expansion.points) {
    fmt::print(
        "  {} {} on {}, {}, plan {}, inputs {} seed {}\n", point_id(*point.kernel, point.subject),
        point.kernel->name, name_of(point.kernel->executor), to_string(point.subject.problem),
        to_string(point.subject.plan), point.subject.inputs.family, point.subject.inputs.seed);
  }
}

void print_study(const StudySpec& spec, const Expansion& expansion, const std::string& device) {
  std::set<std::string> kernels, baselines, axes;
  for (const Point& point : expansion.points) {
    kernels.insert(point.kernel->name);
    for (const Point::BaselineCase& baseline : point.baselines) baselines.insert(baseline.name);
    for (const auto& [name, value] : point.axes) axes.insert(name);
  }
  fmt::print("{}: {}\n", spec.name, spec.question);
  fmt::print("  {:>5} {} of {}\n", expansion.points.size(),
             noun_behind(expansion.points.size(), "point"), fmt::join(kernels, ", "));
  if (!baselines.empty()) fmt::print("        against {}\n", fmt::join(baselines, ", "));
  fmt::print("        axes {}\n", fmt::join(axes, ", "));
  fmt::print("{}{}", skipped_text(expansion), few_rounds_text(spec));
  const GpuModel& gpu = gpu_model_from_name(device);
  const EstimatedWork work = estimated_work(expansion, gpu);
  fmt::print("  one launch of each is {:.3g} FLOP, at least {:.3g} ms on an {}", work.flops,
             1e3 * work.seconds, gpu.title);
  if (spec.time_budget_s) fmt::print("; the budget is {}", format_duration(*spec.time_budget_s));
  fmt::print("\n");
}

ExitCode check_files(const StudyCheckOptions& options) {
  (void)load_plugins(options.plugins);
  load_captured_inputs("");
  ExitCode code = ExitCode::passed;
  for (const std::string& file : options.files) {
    const auto spec = study_or_complaints(study_text(file), file);
    if (!spec) {
      code = ExitCode::bad_input;
      continue;
    }
    const Expansion expansion = expand_here(*spec, options.device, study_program());
    print_study(*spec, expansion, options.device);
    if (options.lists_points) print_points(expansion);
    if (!expansion.points.empty()) continue;
    fmt::print(stderr, "{}: no point is left to run\n", file);
    code = ExitCode::bad_input;
  }
  return code;
}

}  // namespace

StudyProgram study_program() {
  return {.launches_of = observe_launches,
          .model_of = launch_counts,
          .is_interrupted = was_interrupted};
}

std::string study_text(const std::string& file) {
  std::error_code none;
  if (!std::filesystem::exists(file, none)) {
    if (const ShippedStudy* shipped = find_shipped_study(file)) return std::string(shipped->text);
    std::vector<std::string> names;
    for (const ShippedStudy& study : shipped_studies()) names.emplace_back(study.name);
    const std::vector<std::string> near = near_names(file, names);
    throw InvalidInput(fmt::format(
        "{}: no such file or shipped study; {}", printable(file),
        near.empty() ? "see attest list studies" : fmt::format("near: {}", fmt::join(near, ", "))));
  }
  constexpr std::size_t most_bytes = 1 << 20;
  return read_text_file(file, most_bytes);
}

std::optional<StudySpec> study_or_complaints(const std::string& text, const std::string& file) {
  ParsedStudy parsed = parse_study(text, std::filesystem::path(file).stem().string());
  for (const StudyError& error : parsed.errors) {
    fmt::print(stderr, "{}\n", to_string(error, file));
  }
  if (parsed.spec && !has_known_claims(*parsed.spec, file)) return std::nullopt;
  return std::move(parsed.spec);
}

void add_study_check_commands(CLI::App& study, Action& action) {
  CLI::App* check = study.add_subcommand(
      "check", "Says what is wrong in the files, or what they ask for; runs nothing");
  const auto options = std::make_shared<StudyCheckOptions>();
  check->add_option("FILE", options->files, "studies, such as experiments/studies/block_size.yaml")
      ->required();
  check->add_option("--device", options->device, "GPU whose limits count where there is none")
      ->capture_default_str();
  add_plugin_option(*check, options->plugins);
  check->add_flag("--points", options->lists_points, "lists every point with its id");
  check->footer("Exit code 2 when a file is wrong or leaves nothing to run.");
  check->callback([options, &action] { action = [options] { return check_files(*options); }; });

  CLI::App* schema =
      study.add_subcommand("schema", "Prints the JSON Schema by which editors complete a study");
  schema->callback([&action] {
    action = [] {
      fmt::print("{}", study_json_schema());
      return ExitCode::passed;
    };
  });
  CLI::App* keys = study.add_subcommand("keys", "Prints what the keys of a study mean");
  keys->callback([&action] {
    action = [] {
      fmt::print("{}", study_key_table());
      return ExitCode::passed;
    };
  });
}

}  // namespace attest
