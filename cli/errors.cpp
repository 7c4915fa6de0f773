#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/errors_of_file.hpp"
#include "cli/errors_report.hpp"
#include "cli/selection.hpp"
#include "core/default_plan.hpp"
#include "core/input_family.hpp"
#include "core/progress.hpp"
#include "core/record.hpp"
#include "core/registry.hpp"
#include "core/safetensors.hpp"
#include "core/tuning_key.hpp"
#include "verify/error_study.hpp"

namespace attest {
namespace {

struct ErrorsOptions {
  std::vector<std::string> kernels{"k7_shuffled_rows,fa2_mma,emulated_fma,emulated_mma_sm90"};
  std::string executor = "auto";
  std::vector<std::string> problems{"b1 h4 n512 d64"};
  std::vector<std::string> families{"normal", "outliers", "real"};
  std::string inputs_file;
  std::string outputs_file;
  std::string mask = "none";
  std::string plan;
  std::int64_t sets = 4;
  std::uint64_t seed = 0;
  std::filesystem::path out = "out";
  bool prints_json = false;
};

/// `FAMILY` or `FAMILY:MAGNITUDE`.
InputSpec input_spec(const std::string& text, std::uint64_t seed) {
  const std::size_t colon = text.find(':');
  InputSpec spec{.family = text.substr(0, colon), .seed = seed};
  spec.magnitude = input_family(spec.family).magnitudes.front();
  if (colon == std::string::npos) return spec;
  const char* const begin = text.c_str() + colon + 1;
  const char* const end = text.c_str() + text.size();
  const auto [stop, error] = std::from_chars(begin, end, spec.magnitude);
  if (error != std::errc() || stop != end || !(spec.magnitude > 0)) {
    throw InvalidInput(fmt::format("--family has magnitude '{}'; allowed: a number above 0",
                                   printable(text.substr(colon + 1))));
  }
  return spec;
}

/// The problem, and the element type if its text names one: without, each kernel brings its own.
struct AskedProblem {
  Problem problem;
  std::optional<ElementType> type;
};
AskedProblem asked_problem(const std::string& text) {
  AskedProblem asked{.problem = problem_from_string(text), .type = {}};
  if (asked.problem.query_len == 0) {
    throw InvalidInput(
        fmt::format("--problem '{}' has no rows; allowed: at least one", printable(text)));
  }
  if (asked.problem.length_seed != 0) {
    throw InvalidInput(
        fmt::format("--problem '{}' has lengths of single entries: rows that do not exist would "
                    "count as right; allowed: without",
                    printable(text)));
  }
  for (const ElementType type : all_element_types()) {
    if (text.find(format_of(type).name) != std::string::npos) asked.type = type;
  }
  return asked;
}

/// One device an executor, made when it is first needed.
class Devices {
 public:
  Device& of(const KernelInfo& kernel) {
    auto& device = devices_[kernel.executor];
    if (!device) device = make_device(kernel.executor);
    return *device;
  }

 private:
  std::map<Executor, std::unique_ptr<Device>> devices_;
};

/// What the command was asked for, in the order of the table.
std::vector<ErrorsRow> rows_of(const ErrorsOptions& options,
                               const std::vector<const KernelInfo*>& kernels, Devices& devices) {
  std::vector<ErrorsRow> rows;
  for (const std::string& text : options.problems) {
    const AskedProblem asked = asked_problem(text);
    for (const std::string& family : options.families) {
      const InputSpec inputs = input_spec(family, options.seed);
      for (const KernelInfo* kernel : kernels) {
        for (const ElementType type : kernel->element_types) {
          if (asked.type && *asked.type != type) continue;
          ErrorsRow row{.contender = kernel->name,
                        .executor = std::string(name_of(kernel->executor)),
                        .the_case = {.kernel = kernel->name},
                        .sets = options.sets,
                        .kernel = kernel};
          Case& c = row.the_case;
          c.problem = asked.problem;
          c.problem.element_type = type;
          c.inputs = inputs;
          const InputFamily& chosen = input_family(inputs.family);
          if (chosen.unsupported) {
            if (const auto reason = chosen.unsupported(c.problem)) throw InvalidInput(*reason);
          }
          const auto choice =
              default_plan(*kernel, c.problem, gpu_name_in(devices.of(*kernel).description()));
          if (options.plan.empty() && !choice) {
            row.left_out = "no plan for this problem";
          } else {
            c.plan = options.plan.empty() ? choice->plan : plan_from_string(options.plan);
            if (const auto reason = why_unsupported(*kernel, c)) row.left_out = *reason;
          }
          rows.push_back(std::move(row));
        }
      }
    }
  }
  return rows;
}

/// Throws InvalidInput when nothing would be measured.
void require_any(const std::vector<ErrorsRow>& rows) {
  if (rows.empty()) throw InvalidInput("--problem: no selected kernel takes its element type");
  if (std::ranges::any_of(rows, [](const ErrorsRow& row) { return row.left_out.empty(); })) return;
  throw InvalidInput(fmt::format("no selected kernel can run the problem; {}: {}",
                                 rows.front().contender, rows.front().left_out));
}

void measure(ErrorsRow& row, Device& device, std::uint64_t seed) {
  device.seed_schedule(seed);
  const ErrorStudy study = study_errors(*row.kernel, row.the_case, row.sets, device);
  row.o = study.o;
  row.lse = study.lse;
  row.certified_rows = study.certified_rows;
}

/// Records each row when it is done, so that an interrupted run keeps what it has.
std::vector<ErrorsRow> measured_rows(
    const ErrorsOptions& options,
    const std::function<void(const ErrorsRow&, const std::string&)>& done) {
  if (!options.outputs_file.empty()) {
    std::vector<ErrorsRow> rows =
        errors_of_file(options.outputs_file, mask_from_name(options.mask));
    for (const ErrorsRow& row : rows) done(row, "");
    return rows;
  }
  load_captured_inputs(options.inputs_file);
  Devices devices;
  std::vector<ErrorsRow> rows = rows_of(
      options, select_kernels(fmt::format("{}", fmt::join(options.kernels, ",")), options.executor),
      devices);
  require_any(rows);
  Progress progress({.label = "errors", .unit = "rows", .total = std::ssize(rows)});
  for (ErrorsRow& row : rows) {
    progress.set_label(row.contender);
    if (row.left_out.empty()) {
      Device& device = devices.of(*row.kernel);
      measure(row, device, options.seed);
      done(row, device.description());
    }
    progress.advance();
  }
  return rows;
}

ExitCode report_errors(const ErrorsOptions& options) {
  std::optional<RecordWriter> records;  // bad input makes no file
  const std::vector<ErrorsRow> rows =
      measured_rows(options, [&](const ErrorsRow& row, const std::string& device) {
        if (!records) records.emplace(options.out / "errors.jsonl");
        for (const Record& record : records_of(row, device)) {
          records->write(record);
          if (options.prints_json) fmt::print("{}\n", to_json(record));
        }
      });
  if (!options.prints_json) {
    print_errors(rows);
    fmt::print("\nrecords appended to {}\n", records->path().string());
  }
  return ExitCode::passed;
}

}  // namespace

void add_errors_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "errors",
      "How large the errors of kernels are: against the exact answer, by precision and inputs");
  const auto options = std::make_shared<ErrorsOptions>();
  command->add_option("--kernel", options->kernels, "glob over kernel names; may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--executor", options->executor,
                   "auto, gpu, simt or cpu; auto takes the GPU where there is one")
      ->capture_default_str();
  command
      ->add_option("--problem", options->problems,
                   "'b1 h4 n512 d64 causal_top_left'; an element type in it leaves out the others; "
                   "may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command
      ->add_option("--family", options->families,
                   "input family, NAME or NAME:MAGNITUDE (attest list families); may be repeated")
      ->allow_extra_args(false)
      ->capture_default_str();
  command->add_option("--inputs", options->inputs_file,
                      "your own safetensors file with q, k, v, as family `file`");
  command->add_option("--plan", options->plan,
                      "'qt64,kt64,w4,st2' instead of each kernel's default Plan");
  command->add_option(
      "--outputs", options->outputs_file,
      "instead of kernels: a safetensors file with NAME.q, NAME.k, NAME.v and the outputs "
      "NAME.WHO.o, NAME.WHO.lse that somebody else computed");
  command->add_option("--mask", options->mask, "with --outputs")->capture_default_str();
  command->add_option("--sets", options->sets, "data sets a row, with seeds from --seed on")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--seed", options->seed, "seed of the first data set")->capture_default_str();
  command->add_option("--out", options->out, "folder for errors.jsonl")->capture_default_str();
  command->add_flag("--json", options->prints_json, "print records instead of the table");
  command->footer(
      "Examples:\n"
      "  attest errors\n"
      "  attest errors --kernel fa2_mma --family outliers --problem 'b4 h16 n1024 d64 fp16'\n"
      "  attest errors --outputs my.safetensors --mask causal_top_left\n"
      "A row that has vacuous elements says how many: their bound is infinite, their errors "
      "count.");
  command->callback([options, &action] { action = [options] { return report_errors(*options); }; });
}

}  // namespace attest
