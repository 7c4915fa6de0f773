#include "cli/study_check.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "cli/plugin_option.hpp"
#include "cli/selection.hpp"
#include "cli/study_file.hpp"
#include "core/base/progress.hpp"
#include "experiments/study/language/point.hpp"
#include "experiments/study/language/schema.hpp"

namespace attest {
namespace {

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
    for (const Point::Rival& rival : point.baselines) baselines.insert(rival.name);
    for (const auto& [name, value] : point.axes) axes.insert(name);
  }
  fmt::print("{}: {}\n", spec.name, spec.question);
  fmt::print("  {:>5} points of {}\n", expansion.points.size(), fmt::join(kernels, ", "));
  if (!baselines.empty()) fmt::print("        against {}\n", fmt::join(baselines, ", "));
  fmt::print("        axes {}\n", fmt::join(axes, ", "));
  print_skipped(expansion);
  print_few_rounds(spec);
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
    const Expansion expansion = expand_here(*spec, options.device);
    print_study(*spec, expansion, options.device);
    if (options.lists_points) print_points(expansion);
    if (!expansion.points.empty()) continue;
    fmt::print(stderr, "{}: no point is left to run\n", file);
    code = ExitCode::bad_input;
  }
  return code;
}

}  // namespace

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
