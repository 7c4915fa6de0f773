#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/selection.hpp"
#include "core/attention/operation.hpp"
#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/progress.hpp"
#include "core/operations/backward.hpp"
#include "core/records/record.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/calibration.hpp"

namespace attest {
namespace {

struct CalibrateOptions {
  std::string kernels = "*";
  std::string executor = "auto";
  std::string operation = "forward";
  std::filesystem::path out = "out";
  CalibrationOptions calibration;
};

void print_calibration(const Calibration& found) {
  fmt::print("\n{} on {}, {}: {}, {} judged, {} with an alarm (rate at most {:.2g})\n",
             found.kernel->name, name_of(found.kernel->executor),
             format_of(found.element_type).name, counted(found.sets, "set"), found.sets_judged,
             found.sets_alarmed, upper_rate(found.sets_alarmed, found.sets_judged));
  fmt::print("  {:<24} {:>6} {:>8} {:>8} {:>8} {:>10} {:>7}\n", "statistic", "sets", "median",
             "99 %", "largest", "threshold", "alarms");
  for (const StatisticDistribution& values : found.statistics) {
    fmt::print("  {:<24} {:>6} {:>8.2f} {:>8.2f} {:>8.2f} {:>10.2f} {:>7}\n", values.name,
               values.values.size(), values.quantile(0.5), values.quantile(0.99),
               values.quantile(1), values.threshold, values.alarms);
  }
}

/// Throws InvalidInput where there is nothing to calibrate, or no choice of inputs.
const Operation& calibrated_operation(const CalibrateOptions& options) {
  const Operation& operation = operation_from_name(options.operation);
  if (statistics_of(operation).empty()) {
    throw InvalidInput(fmt::format("--operation '{}' has no statistics; allowed: forward, backward",
                                   options.operation));
  }
  if (&operation == &backward_operation && options.calibration.families != "*") {
    throw InvalidInput(
        fmt::format("--family '{}': the statistics of gradients choose their inputs; allowed: '*'",
                    options.calibration.families));
  }
  return operation;
}

ExitCode run_calibration(const CalibrateOptions& options) {
  const Operation& operation = calibrated_operation(options);
  load_captured_inputs("");
  std::vector<const KernelInfo*> kernels =
      select_kernels(options.kernels, options.executor, &operation);
  std::erase_if(kernels,
                [](const KernelInfo* kernel) { return kernel->role != KernelRole::kernel; });
  std::int64_t total = 0;
  for (const KernelInfo* kernel : kernels) {
    total += options.calibration.sets * static_cast<std::int64_t>(kernel->element_types.size());
  }
  RecordWriter records(options.out / "calibrate.jsonl");
  Progress progress(
      {.label = counted(kernels.size(), "kernel"), .unit = "data set", .total = total});
  std::vector<Calibration> found;
  for (const KernelInfo* kernel : kernels) {
    const auto device = make_device(kernel->executor);
    const Provenance provenance = current_provenance(device->description());
    for (const ElementType type : kernel->element_types) {
      found.push_back(
          calibrate(*kernel, type, *device, options.calibration, [&] { progress.advance(); }));
      const Calibration& calibration = found.back();
      Record record;
      record.kind = "calibration";
      record.labels = {{"kernel", kernel->name},
                       {"executor", std::string(name_of(kernel->executor))},
                       {"operation", std::string(operation.name)},
                       {"element_type", std::string(format_of(type).name)},
                       {"seed", std::to_string(options.calibration.seed)},
                       {"max_len", std::to_string(options.calibration.largest_len)}};
      record.measurements = measurements_of(calibration);
      record.provenance = provenance;
      records.write(record);
    }
  }
  progress.finish();
  bool has_alarm = false;
  for (const Calibration& calibration : found) {
    print_calibration(calibration);
    has_alarm = has_alarm || calibration.sets_alarmed > 0;
  }
  fmt::print("\nrecords appended to {}\n", records.path().string());
  return has_alarm ? ExitCode::verdict_failed : ExitCode::passed;
}

}  // namespace

void add_calibrate_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "calibrate",
      "Distribution of the statistics of correct kernels: what the thresholds of the statistics "
      "layer rest on");
  const auto options = std::make_shared<CalibrateOptions>();
  CalibrationOptions& calibration = options->calibration;
  command
      ->add_option("--kernel", options->kernels, "glob over kernel names, commas separate several")
      ->capture_default_str();
  command
      ->add_option("--executor", options->executor,
                   "auto, gpu, simt or cpu; auto takes the GPU where there is one")
      ->capture_default_str();
  command
      ->add_option("--operation", options->operation,
                   "forward or backward: statistics of attention or of its gradients")
      ->capture_default_str();
  command
      ->add_option("--family", calibration.families,
                   "glob over input families, commas separate several; captured activations get a "
                   "quarter of them")
      ->capture_default_str();
  command->add_option("--sets", calibration.sets, "data sets per kernel and element type")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->capture_default_str();
  command->add_option("--max-len", calibration.largest_len, "largest query and key length drawn")
      ->check(CLI::Range(24, 65536))
      ->capture_default_str();
  add_seed_option(*command, calibration.seed, "seed of the data sets");
  command->add_option("--out", options->out, "folder for records")->capture_default_str();
  command->footer(
      "Examples:\n"
      "  attest calibrate --kernel 'emulated_*'\n"
      "  attest calibrate --executor gpu --kernel 'k*' --sets 2000\n"
      "  attest calibrate --operation backward --executor cpu\n"
      "Exit code 1 if a statistic of a kernel that counts as correct passed its threshold.");
  command->callback(
      [options, &action] { action = [options] { return run_calibration(*options); }; });
}

}  // namespace attest
