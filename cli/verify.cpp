#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <thread>

#include "cli/commands.hpp"
#include "cli/selection.hpp"
#include "cli/verify_large.hpp"
#include "core/input_family.hpp"
#include "core/progress.hpp"
#include "core/record.hpp"
#include "core/registry.hpp"
#include "verify/campaign.hpp"
#include "verify/counterexample.hpp"

namespace attest {
namespace {

struct VerifyOptions {
  std::string kernels = "*";
  std::vector<std::string> plugins;  ///< without --kernel only theirs are verified
  bool names_kernels = false;
  std::string executor = "auto";
  std::string inputs_file;
  std::string time_limit;
  std::string lengths = to_string(LengthWeights{});
  std::filesystem::path out = "out";
  bool prints_json = false;
  bool is_large = false;
  bool has_cases = false;  ///< --cases was given
  CampaignOptions campaign;
};

/// `90s`, `5m`, `1h`, or a plain number of seconds.
std::chrono::duration<double> parse_duration(const std::string& text) {
  std::size_t used = 0;
  double value = 0;
  try {
    value = std::stod(text, &used);
  } catch (const std::exception&) {
    used = 0;
  }
  const std::string unit = text.substr(used);
  const double factor = unit.empty() || unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : 0;
  if (used == 0 || factor == 0 || !std::isfinite(value) || value <= 0) {
    throw InvalidInput(
        fmt::format("--for is '{}'; allowed: a positive time such as 60s, 5m or 1h", text));
  }
  return std::chrono::duration<double>(value * factor);
}

std::string outcome(const KernelResult& result) {
  if (result.kernel->role != KernelRole::kernel) {
    const bool is_control = result.kernel->role == KernelRole::negative_control;
    return fmt::format("{}{}", result.is_as_expected() ? "killed, as it must be" : "NOT KILLED",
                       is_control ? " (negative control)" : "");
  }
  if (result.vacuous == 0 || result.failure) return std::string(name_of(result.verdict()));
  return fmt::format("{}, {} vacuous", name_of(result.verdict()), result.vacuous);
}

void print_table(const std::vector<KernelResult>& results) {
  fmt::print("\n{:<28} {:<5} {:>6} {:>5} {:>7} {:>9} {:>9}  {}\n", "kernel", "on", "cases", "laws",
             "checks", "O/bound", "LSE/bound", "verdict");
  for (const KernelResult& result : results) {
    std::int64_t checks = 0;
    for (const auto& [law, count] : result.checks) checks += count;
    const auto ratio = [&](double worst) {
      return result.failure ? std::string("-") : fmt::format("{:.3f}", worst);
    };
    fmt::print("{:<28} {:<5} {:>6} {:>5} {:>7} {:>9} {:>9}  {}\n", result.kernel->name,
               name_of(result.kernel->executor), result.cases, result.checks.size(), checks,
               ratio(result.worst_o_over_bound), ratio(result.worst_lse_over_bound),
               outcome(result));
  }
}

void print_failures(const std::vector<KernelResult>& results, const VerifyOptions& options) {
  for (const KernelResult& result : results) {
    if (!result.failure) continue;
    const bool planted = result.kernel->role != KernelRole::kernel;
    fmt::print("\n{}, shrunk from case {}:\n{}", planted ? "killed as it must be" : "FAILED",
               result.failing_case, describe(*result.failure, *result.kernel));
    const std::filesystem::path path =
        write_counterexample(options.out / "counterexamples", *result.failure,
                             result.kernel->executor, options.inputs_file);
    fmt::print("  replay   ./attest replay {}\n", path.string());
  }
}

Record record_of(const KernelResult& result, const VerifyOptions& options, double seconds,
                 const Provenance& provenance) {
  Record record;
  record.kind = "verify";
  record.verdict = name_of(result.verdict());
  record.labels = {{"kernel", result.kernel->name},
                   {"executor", std::string(name_of(result.kernel->executor))},
                   {"expected", result.is_as_expected() ? "yes" : "no"},
                   {"seed", std::to_string(options.campaign.seed)}};
  record.measurements = {
      {"cases", static_cast<double>(result.cases), "1"},
      {"vacuous_cases", static_cast<double>(result.vacuous), "1"},
      {"worst_o_error_over_bound", result.worst_o_over_bound, "1"},
      {"worst_lse_error_over_bound", result.worst_lse_over_bound, "1"},
      {"certified_reference_rows", static_cast<double>(result.certified_rows), "1"},
      {"worst_reference_error_over_own_estimate", result.worst_certificate, "1"},
      {"campaign_time", seconds, "s"}};
  for (const auto& [law, count] : result.checks) {
    record.measurements.push_back({"checks." + law, static_cast<double>(count), "1"});
  }
  for (const auto& [family, count] : result.families) {
    record.measurements.push_back({"cases." + family, static_cast<double>(count), "1"});
  }
  for (const Feature& feature : all_features()) {
    const auto found = result.coverage.find(feature.name);
    const std::int64_t count = found == result.coverage.end() ? 0 : found->second;
    record.measurements.push_back({"feature." + feature.name, static_cast<double>(count), "1"});
  }
  if (result.failure) {
    record.subject = result.failure->the_case;
    record.labels["law"] = result.failure->law;
    record.labels["what"] = result.failure->check.detail;
  }
  record.provenance = provenance;
  return record;
}

ExitCode verify(VerifyOptions options) {
  if (!options.time_limit.empty()) options.campaign.time_limit = parse_duration(options.time_limit);
  options.campaign.generator.lengths = length_weights_from(options.lengths);
  const std::vector<std::string> plugin_kernels = load_plugins(options.plugins);
  if (!plugin_kernels.empty() && !options.names_kernels) {
    options.kernels = glob_of_runnable(plugin_kernels);
  }
  load_captured_inputs(options.inputs_file);
  const std::vector<const KernelInfo*> kernels = select_kernels(options.kernels, options.executor);
  if (std::ranges::none_of(all_properties(), [&](const Property& property) {
        return matches_glob(property.name, options.campaign.laws.glob);
      })) {
    throw InvalidInput(fmt::format("--property '{}' matches no law; see attest list properties",
                                   options.campaign.laws.glob));
  }
  if (std::ranges::none_of(all_input_families(), [&](const InputFamily& family) {
        return matches_glob(family.name, options.campaign.generator.families);
      })) {
    throw InvalidInput(fmt::format("--family '{}' matches no input family; see attest list inputs",
                                   options.campaign.generator.families));
  }
  if (options.is_large) {
    LargeOptions large;
    large.seed = options.campaign.seed;
    large.families = options.campaign.generator.families;
    if (options.has_cases) large.cases_per_kernel = options.campaign.cases_per_kernel;
    return verify_large(kernels, large, options.out, options.inputs_file);
  }
  RecordWriter records(options.out / "verify.jsonl");

  const auto start = std::chrono::steady_clock::now();
  std::vector<KernelResult> results;
  {
    ProgressState state{.label = fmt::format("{} kernels", kernels.size()), .unit = "cases"};
    if (options.campaign.time_limit) {
      state.seconds_limit = options.campaign.time_limit->count();
    } else {
      state.total = options.campaign.cases_per_kernel * static_cast<std::int64_t>(kernels.size());
    }
    Progress progress(state);
    options.campaign.on_case_done = [&] { progress.advance(); };
    results = run_campaign(kernels, options.campaign);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();

  bool as_expected = true;
  std::int64_t cases = 0;
  std::int64_t certified = 0;
  double worst_certificate = 0;
  Coverage coverage;
  std::map<Executor, Provenance> provenances;
  for (const KernelResult& result : results) {
    as_expected = as_expected && result.is_as_expected();
    cases += result.cases;
    for (const auto& [feature, count] : result.coverage) coverage[feature] += count;
    certified += result.certified_rows;
    worst_certificate = std::max(worst_certificate, result.worst_certificate);
    const Executor executor = result.kernel->executor;
    if (!provenances.contains(executor)) {
      provenances[executor] = current_provenance(make_device(executor)->description());
    }
    const Record record = record_of(result, options, seconds, provenances[executor]);
    records.write(record);
    if (options.prints_json) fmt::print("{}\n", to_json(record));
  }
  if (!options.prints_json) {
    print_failures(results, options);
    print_table(results);
    fmt::print(
        "\n{} cases in {}; the f64 reference was certified by the oracle on {} rows (worst {:.3f} "
        "of its own error estimate)\n",
        cases, format_duration(seconds), certified, worst_certificate);
    fmt::print("{}", to_string(coverage));
    fmt::print("records appended to {}\n", records.path().string());
    fmt::print("{}\n", as_expected ? "PASSED" : "FAILED");
  }
  return as_expected ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Property-test kernels against exact arithmetic on random cases");
  const auto options = std::make_shared<VerifyOptions>();
  CampaignOptions& campaign = options->campaign;
  campaign.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  command
      ->add_option("--kernel", options->kernels, "glob over kernel names, commas separate several")
      ->capture_default_str();
  command
      ->add_option("--plugin", options->plugins,
                   "shared object with kernels of your own (include/attest/plugin.h); without "
                   "--kernel only these are verified")
      ->allow_extra_args(false);
  command
      ->add_option("--executor", options->executor,
                   "auto, gpu, simt or cpu; auto takes the GPU where there is one")
      ->capture_default_str();
  command->add_option("--property", campaign.laws.glob, "glob over laws")->capture_default_str();
  command->add_flag(
      "--every-law", campaign.laws.every_law,
      "check all laws on every case instead of one drawn law that needs more launches");
  command->add_option("--family", campaign.generator.families, "glob over input families")
      ->capture_default_str();
  CLI::Option* const cases =
      command->add_option("--cases", campaign.cases_per_kernel, "cases per kernel")
          ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
          ->capture_default_str();
  command->add_flag(
      "--large", options->is_large,
      "long sequences up to 131,072 with few heads, 4 cases per kernel unless --cases "
      "says otherwise, in this process: every element where there is a GPU reference, "
      "64 sampled rows otherwise; kernels too slow for it are left out by name");
  command->add_option("--for", options->time_limit, "run this long instead: 60s, 5m, 1h");
  command->add_option("--seed", campaign.seed, "seed of the campaign")->capture_default_str();
  command->add_option("--jobs", campaign.jobs, "cases run at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--max-len", campaign.generator.max_len, "largest query and key length drawn")
      ->check(CLI::Range(1, 65536))
      ->capture_default_str();
  command
      ->add_option("--lengths", options->lengths,
                   "how often each kind of length is drawn, KIND:WEIGHT separated by commas")
      ->capture_default_str();
  command->add_flag("--far-on-gpu", campaign.generator.far_elements_on_gpu,
                    "draw tensors that span more than 2^31 elements on a GPU too: 8 GiB of its "
                    "memory for each job");
  command->add_option("--max-head-dim", campaign.generator.max_head_dim, "largest head_dim drawn")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--max-batch", campaign.generator.max_batch, "largest batch drawn, to 3")
      ->check(CLI::Range(1, 3))
      ->capture_default_str();
  command
      ->add_option("--max-heads", campaign.generator.max_query_heads,
                   "most query heads drawn, to 28")
      ->check(CLI::Range(1, 28))
      ->capture_default_str();
  command->add_option(
      "--inputs", options->inputs_file,
      "your own safetensors file with q, k, v of [B,H,N,D] or [N,H,D], as family `file`");
  command->add_option("--out", options->out, "folder for records and counterexamples")
      ->capture_default_str();
  command->add_flag("--json", options->prints_json, "print records instead of the table");
  command->footer(
      "Examples:\n"
      "  attest verify                                   all kernels, random and real inputs\n"
      "  attest verify --kernel 'k3*' --for 60s          one kernel for a minute\n"
      "  attest verify --family real --executor simt     real activations on the SIMT executor\n"
      "  attest verify --inputs my.safetensors --family file\n"
      "  attest verify --plugin ./mine.so                your own kernel, see examples/plugin\n"
      "  attest verify --kernel 'mutant/*'               the planted bugs: all must be killed");
  command->callback([options, command, cases, &action] {
    options->has_cases = cases->count() > 0;
    options->names_kernels = command->count("--kernel") > 0;
    action = [options] { return verify(*options); };
  });
}

}  // namespace attest
