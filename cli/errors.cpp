#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/counted.hpp"
#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/base/progress.hpp"
#include "core/base/slow_notice.hpp"
#include "core/base/text.hpp"
#include "core/inputs/captured_layers.hpp"
#include "core/inputs/safetensors.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/records/record.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/backward/gradient_choices.hpp"
#include "cpu_reference/forward/precision_choices.hpp"
#include "experiments/errors/error_axes.hpp"
#include "experiments/errors/errors_of_file.hpp"

namespace attest {
namespace {

constexpr const char* file_family = "file";  ///< all layers of the user's file

struct ErrorsOptions {
  std::vector<std::string> kernels;  ///< none: the operation's default, or the plugins'
  std::vector<std::string> plugins;
  std::string operation;
  std::string executor = "auto";
  ErrorsAxes axes;
  std::vector<std::string> by;
  bool with_map = false;
  std::string inputs_file;
  std::string outputs_file;
  std::string mask = "none";
  std::filesystem::path out = "out";
  bool prints_json = false;

  [[nodiscard]] ErrorDetail detail() const {
    ErrorDetail detail{.axes = {}, .map = with_map};
    for (const std::string& axis : by)
      detail.axes.push_back(axis == "head" ? ErrorAxis::head : ErrorAxis::row);
    return detail;
  }
};

/// A glob over kernels: those that were named, or all of the plugins that were given; empty:
/// neither.
std::string named_kernels(const ErrorsOptions& options) {
  const std::vector<std::string> of_plugins = load_plugins(options.plugins);
  if (!options.kernels.empty()) return fmt::format("{}", fmt::join(options.kernels, ","));
  return of_plugins.empty() ? "" : glob_of_runnable(of_plugins);
}

/// Operation that all kernels of a glob compute; forward where they differ.
const Operation& operation_of_kernels(const std::string& glob) {
  const Operation* common = nullptr;
  for (const KernelInfo& kernel : all_kernels()) {
    if (!matches_glob(kernel.name, glob)) continue;
    if (common != nullptr && common != kernel.operation) return forward_operation;
    common = kernel.operation;
  }
  return common == nullptr ? forward_operation : *common;
}

const Operation& operation_asked(const ErrorsOptions& options, const std::string& named) {
  const ErrorsAxes& axes = options.axes;
  const Operation& operation = !options.operation.empty() ? operation_from_name(options.operation)
                               : axes.problems.empty() && !named.empty()
                                   ? operation_of_kernels(named)
                                   : operation_of(axes.problems);
  if (!options.outputs_file.empty() && &operation != &forward_operation) {
    throw InvalidInput(fmt::format("--outputs holds O and LSE, and {} gives others; allowed: {}",
                                   operation.name, forward_operation.name));
  }
  return *errors_defaults(operation).operation;
}

/// The kernels that differ in one rounding each.
std::vector<KernelInfo> choices_of(const Operation& operation) {
  return &operation == &backward_operation ? gradient_choices() : precision_choices();
}

std::string texts_of_defaults(const std::function<std::string(const ErrorsDefaults&)>& text) {
  std::string all;
  for (const ErrorsDefaults& one : all_errors_defaults()) {
    const bool is_first = one.operation == all_errors_defaults().front().operation;
    all += is_first ? text(one) : fmt::format("; {}: {}", one.operation->name, text(one));
  }
  return all;
}

/// Names of the families that are layers of the user's file; `all` has those of the program first.
std::vector<std::string> layers_of_file(const std::vector<std::string>& all) {
  std::ptrdiff_t shipped = 0;
  for (const EmbeddedCapture& capture : embedded_captures()) {
    shipped += std::ssize(embedded_layers(capture));
  }
  return {all.begin() + shipped, all.end()};
}

/// Throws InvalidInput where nothing that is measured has inputs of the user's file.
void require_inputs_of_file(const std::vector<ErrorsRow>& rows, const std::string& file,
                            std::vector<std::string> layers) {
  layers.insert(layers.begin(), file_family);
  const bool is_read = std::ranges::any_of(rows, [&](const ErrorsRow& row) {
    return std::ranges::count(layers, row.the_case.inputs.family) > 0;
  });
  if (is_read) return;
  throw InvalidInput(fmt::format("--inputs {}: no --family asks for it; allowed: {}",
                                 printable(file), fmt::join(layers, ", ")));
}

/// Records each row when it is done, so that an interrupted run keeps what it has.
std::vector<ErrorsRow> measured_rows(
    ErrorsOptions options, const std::function<void(const ErrorsRow&, const std::string&)>& done) {
  const std::string named = named_kernels(options);
  options.axes.operation = &operation_asked(options, named);
  if (!options.outputs_file.empty()) {
    std::vector<ErrorsRow> rows =
        errors_of_file(options.outputs_file, mask_from_name(options.mask), options.detail());
    for (const ErrorsRow& row : rows) done(row, "");
    return rows;
  }
  const std::string glob = named.empty() ? errors_defaults(*options.axes.operation).kernels : named;
  load_captured_inputs(options.inputs_file);
  for (const KernelInfo& choice : choices_of(*options.axes.operation)) add_kernel(choice);
  options.axes.fixed_families = add_captured_layer_families(options.inputs_file);
  const bool has_file = !options.inputs_file.empty();
  if (has_file && options.axes.families.empty()) options.axes.families = {file_family};
  Devices devices;
  std::vector<ErrorsRow> rows = rows_of(
      options.axes, select_kernels(glob, options.executor, options.axes.operation), devices);
  if (has_file) {
    require_inputs_of_file(rows, options.inputs_file, layers_of_file(options.axes.fixed_families));
  }
  const SlowNotice notice("attest: measuring; the exact answer takes time by queries x keys");
  Progress progress({.label = "errors", .unit = "row", .total = std::ssize(rows)});
  for (ErrorsRow& row : rows) {
    progress.set_label(row.name);
    if (row.left_out.empty()) {
      Device& device = devices.of(*row.kernel);
      measure(row, device, options.axes.seed, options.detail());
      done(row, device.description());
    }
    progress.advance();
  }
  return rows;
}

ExitCode report_errors(const ErrorsOptions& options) {
  JsonOutput json(options.prints_json);
  std::optional<RecordWriter> records;  // bad input makes no file
  const std::vector<ErrorsRow> rows =
      measured_rows(options, [&](const ErrorsRow& row, const std::string& device) {
        if (!records) records.emplace(options.out / "errors.jsonl");
        for (const Record& record : records_of(row, device)) {
          records->write(record);
          json.print(to_json(record));
        }
      });
  const auto is_wrong = [](const ErrorsRow& row) { return is_beyond_bound(row); };
  const auto wrong = std::ranges::count_if(rows, is_wrong);
  if (!options.prints_json) {
    fmt::print("{}\nrecords appended to {}\n", errors_table(rows), records->path().string());
  }
  if (wrong == 0) return ExitCode::passed;
  const ErrorsRow& first = *std::ranges::find_if(rows, is_wrong);
  fmt::print("{}: {} of {} {} beyond {} bound, {} first; attest verify shrinks such a case\n",
             as_bad("FAILED"), wrong, counted(rows.size(), "row"), wrong == 1 ? "is" : "are",
             wrong == 1 ? "its" : "their", first.name);
  return ExitCode::verdict_failed;
}

}  // namespace

void add_errors_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "errors",
      "How large the errors of kernels are: against the exact answer, by precision and inputs");
  const auto options = std::make_shared<ErrorsOptions>();
  command
      ->add_option("--kernel", options->kernels,
                   "glob over kernel names, 'choice/*' (what each rounding of 16-bit "
                   "attention, or of its gradients, costs) among them; commas separate several")
      ->allow_extra_args(false)
      ->default_str(texts_of_defaults([](const ErrorsDefaults& one) { return one.kernels; }));
  command->add_option("--operation", options->operation,
                      "what the problems ask for, else forward unless they say it, or without "
                      "problems the kernels: forward, "
                      "backward (dQ, dK, dV) or quantised");
  add_plugin_option(*command, options->plugins, "; without --kernel only these");
  command
      ->add_option("--executor", options->executor,
                   "auto, gpu, simt or cpu; auto takes the GPU where there is one")
      ->capture_default_str();
  ErrorsAxes& axes = options->axes;
  command
      ->add_option("--problem", axes.problems,
                   "'b1 h4 n{256,512} d64 causal_top_left'; an element type in it leaves out the "
                   "others; may be repeated")
      ->allow_extra_args(false)
      ->default_str(texts_of_defaults([](const ErrorsDefaults& one) {
        return fmt::format("{}", fmt::join(one.problems, ","));
      }));
  command
      ->add_option("--family", axes.families,
                   "input family, NAME or NAME:MAGNITUDE (attest list inputs), a captured layer "
                   "(smollm2.layer18) or a glob; commas separate several")
      ->allow_extra_args(false)
      ->default_str(texts_of_defaults([](const ErrorsDefaults& one) {
        return fmt::format("{}", fmt::join(one.families, ","));
      }));
  command->add_option("--inputs", options->inputs_file,
                      "your own safetensors file with q, k, v, as family `file`, which is then "
                      "the default, and each of its layers by name");
  command
      ->add_option("--plan", axes.plans,
                   "'qt64,kt64,w4,st2', or fields to change in each kernel's default Plan: "
                   "'kt{32,64}'; may be repeated")
      ->allow_extra_args(false);
  command
      ->add_option("--layouts", axes.layouts,
                   std::string(layouts_help) + "; commas separate several")
      ->allow_extra_args(false);
  command
      ->add_option("--key-order", axes.key_orders,
                   "order of the keys: drawn, reversed, rising or falling by mean score; commas "
                   "separate several")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--by", options->by,
                   "records of parts too: row (0, 1, 2-3, 4-7, ...; of dK and dV keys) or head; "
                   "commas separate several")
      ->delimiter(',')
      ->check(CLI::IsMember({"row", "head"}))
      ->allow_extra_args(false);
  command->add_flag("--map", options->with_map,
                    "records of where the error of O, or of dQ, dK and dV, sits: RMSE of rows x "
                    "columns");
  const auto asks_of = [options](Truth truth) {
    return [options, truth] { options->axes.truth = truth; };
  };
  CLI::Option* unrounded = command->add_flag_callback(
      "--unrounded", asks_of(Truth::unrounded),
      "hold kernels of 16 bits or of codes against the exact answer of the inputs before they were "
      "rounded, O and LSE of a backward pass among them; fp32 kernels are left out");
  command
      ->add_flag_callback(
          "--exact-saved", asks_of(Truth::exact_saved),
          "backward: hold 16-bit kernels against the gradient, with the exact O and LSE of "
          "their Q, K and V instead of the rounded ones that they read")
      ->excludes(unrounded);
  command
      ->add_flag("--smooth-keys", axes.smooths_keys,
                 "quantised, with --unrounded: K loses its mean over the keys of a head before it "
                 "becomes codes, as SageAttention's does; LSE gets its share back")
      ->needs(unrounded);
  CLI::Option* outputs = command->add_option(
      "--outputs", options->outputs_file,
      "instead of kernels: a safetensors file with NAME.q, NAME.k, NAME.v and the outputs "
      "NAME.WHO.o, NAME.WHO.lse that somebody else computed");
  for (const char* of_kernels : {"--kernel", "--plugin", "--executor", "--problem", "--family",
                                 "--inputs", "--plan", "--layouts", "--key-order"}) {
    outputs->excludes(command->get_option(of_kernels));
  }
  command->add_option("--mask", options->mask, "with --outputs; kernels take that of --problem")
      ->needs(outputs)
      ->capture_default_str();
  command->add_option("--sets", axes.sets, "data sets a row, with seeds from --seed on")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_seed_option(*command, axes.seed, "seed of the first data set");
  command->add_option("--out", options->out, "folder for errors.jsonl")->capture_default_str();
  command->add_flag("--json", options->prints_json, "print records instead of the table");
  command->footer(
      "Examples:\n"
      "  attest errors\n"
      "  attest errors --kernel fa2_mma --family outliers --problem 'b4 h16 n1024 d64 fp16'\n"
      "  attest errors --kernel fa2_mma --problem 'h2 n{128,512,2048} d64' --family "
      "'normal:{1,8}'\n"
      "  attest errors --family 'smollm2.*' --problem 'h3/1 n1024 d64 causal_top_left' --by head\n"
      "  attest errors --family 'qwen2.layer8' --problem 'h7/1 q{1,8} k512 d64 "
      "causal_bottom_right'\n"
      "  attest errors --family 'whisper.cross*' --problem 'h1 q84 k1500 d64'\n"
      "  attest errors --operation backward --kernel 'choice/*' --family 'gradient_mean_kv:3'\n"
      "  attest errors --operation quantised --unrounded --problem 'h1 n1024 d64 kscales_block'\n"
      "  attest errors --outputs my.safetensors --mask causal_top_left\n"
      "Lists in braces stand for every combination. A row that has vacuous elements says how many: "
      "their bound is infinite, their errors "
      "count.\n"
      "Exit code 1: an element is further from the exact answer than the kernel's roundings allow; "
      "its row says 'beyond its bound', its record 'failed'. Not with --unrounded, --exact-saved "
      "and --outputs, which have no bound.");
  command->callback([options, &action] { action = [options] { return report_errors(*options); }; });
}

}  // namespace attest
