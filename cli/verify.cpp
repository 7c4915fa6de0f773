#include "cli/verify.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/replay.hpp"
#include "cli/selection.hpp"
#include "core/base/counted.hpp"
#include "core/base/glob.hpp"
#include "core/base/progress.hpp"
#include "core/base/text.hpp"
#include "core/inputs/input_family.hpp"
#include "core/records/record.hpp"
#include "core/run/registry.hpp"
#include "plugin/loader.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/campaign_state.hpp"

namespace attest {
namespace {

/// Resuming with another program would mix the cases and the laws of two.
std::string this_program() {
  const Provenance here = current_provenance("");
  return here.commit + (here.dirty ? " with changes" : "");
}

void check_globs(const CampaignOptions& campaign, const std::string& inputs_file) {
  std::vector<std::string> laws, families;
  for (const Law& law : all_laws()) laws.push_back(law.name);
  for (const InputFamily& family : all_input_families()) families.push_back(family.name);
  require_matches({"--law", "law", "attest list laws"}, campaign.laws.glob, laws);
  require_matches({"--family", "input family", "attest list inputs"}, campaign.generator.families,
                  families);
  if (!inputs_file.empty() && !matches_glob("file", campaign.generator.families)) {
    throw InvalidInput(fmt::format("--inputs {}: --family '{}' does not ask for it; allowed: file",
                                   printable(inputs_file), printable(campaign.generator.families)));
  }
}

/// Kernels that the laws and input families asked for say anything about.
std::vector<const KernelInfo*> kernels_asked(const VerifyOptions& options) {
  const Operation* operation =
      options.operation.empty() ? nullptr : &operation_from_name(options.operation);
  if (options.is_large) {
    if (operation != nullptr && operation != &forward_operation) {
      throw InvalidInput(
          fmt::format("--large is about attention, and not about {}", operation->name));
    }
    operation = &forward_operation;
  }
  std::vector<const KernelInfo*> kernels =
      select_kernels(options.kernels, options.executor, operation);
  const CampaignOptions& campaign = options.campaign;
  std::erase_if(kernels, [&](const KernelInfo* kernel) {
    const bool has_law = std::ranges::any_of(all_laws(), [&](const Law& law) {
      return law.is_about(*kernel->operation) && matches_glob(law.name, campaign.laws.glob);
    });
    const auto families = families_of(*kernel->operation);
    const bool has_family = std::ranges::any_of(families, [&](const InputFamily* family) {
      return matches_glob(family->name, campaign.generator.families);
    });
    return !has_law || !has_family;
  });
  if (kernels.empty()) {
    throw InvalidInput(fmt::format(
        "--law '{}' and --family '{}' match nothing of what the kernels of --kernel '{}' "
        "compute; see attest list laws and attest list inputs",
        campaign.laws.glob, campaign.generator.families, options.kernels));
  }
  return kernels;
}

struct Outcome {
  std::vector<KernelResult> results;
  double seconds = 0;  ///< with those before it was resumed
};

/// The negative control is not counted: it ends early, when it is caught.
bool has_known_number(const KernelInfo& kernel) {
  return kernel.role != KernelRole::negative_control;
}

/// Runs the campaign; what is done is in `state` and on disk at any time, unless that is full.
Outcome run(const std::vector<const KernelInfo*>& kernels, VerifyOptions& options,
            CampaignState& state, Trouble& trouble) {
  CampaignOptions& campaign = options.campaign;
  ProgressState shown{.label = counted(kernels.size(), "kernel"), .unit = "case"};
  if (campaign.time_limit) {
    // What was spent before the campaign was resumed counts.
    *campaign.time_limit -= std::chrono::duration<double>(state.seconds);
    shown.seconds_limit = std::max(0.0, campaign.time_limit->count());
  } else {
    shown.total = 0;
    for (const KernelInfo* kernel : kernels) {
      if (!has_known_number(*kernel)) continue;
      shown.total += cases_of_shard(*kernel, campaign);
    }
    for (const KernelResult& result : state.results) {
      if (!has_known_number(*result.kernel)) continue;
      shown.total -= result.asked();
    }
  }
  const auto start = std::chrono::steady_clock::now();
  const double before = state.seconds;
  const auto seconds_now = [&] {
    const std::chrono::duration<double> here = std::chrono::steady_clock::now() - start;
    return before + here.count();
  };
  campaign.resume_from = std::move(state.results);
  state.is_finished = false;
  campaign.on_checkpoint = [&](const std::vector<KernelResult>& results) {
    state.results = results;
    state.seconds = seconds_now();
    trouble.tries([&] { write_campaign_state(options.out, state); });
  };
  Progress progress(shown);
  campaign.on_case_done = [&](const KernelInfo& kernel) {
    if (has_known_number(kernel)) progress.advance();
  };
  campaign.on_shrink = [&](const KernelInfo& kernel, int tried) {
    progress.set_label(fmt::format("shrinking {}, {} tried", kernel.name, tried));
  };
  Outcome outcome{.results = run_campaign(kernels, campaign), .seconds = seconds_now()};
  campaign.on_checkpoint(outcome.results);
  return outcome;
}

/// Prints the records of a campaign and, with `records`, appends them.
void write_records(const Outcome& outcome, const VerifyOptions& options, RecordWriter* records,
                   JsonOutput& json, Trouble& trouble) {
  std::map<Executor, Provenance> provenances;
  for (const KernelResult& result : outcome.results) {
    const Executor executor = result.kernel->executor;
    if (!provenances.contains(executor)) {
      provenances[executor] = current_provenance(make_device(executor)->description());
    }
    const Record record = record_of(result, options, outcome.seconds, provenances[executor]);
    if (records != nullptr) trouble.tries([&] { records->write(record); });
    json.print(to_json(record));
  }
}

ExitCode verify(VerifyOptions options, std::vector<std::string> typed) {
  CampaignState state{.program = this_program(), .arguments = typed};
  if (options.resumes) {
    state = read_campaign_header(options.out);
    if (state.program != this_program()) {
      throw InvalidInput(
          fmt::format("--resume: {} was made by the program of commit {}, this is {}",
                      campaign_state_path(options.out).string(), state.program, this_program()));
    }
    options = resumed_options(options, typed, state.arguments);
  }
  if (!options.resumes) require_one_number(options);
  const std::optional<Rank> rank = take_rank(options);
  // Before a plugin can print.
  JsonOutput json(options.prints_json && !options.is_large && options.minimize.empty());
  CampaignOptions& campaign = options.campaign;
  if (!options.time_limit.empty()) {
    campaign.time_limit = std::chrono::duration<double>(parse_seconds("--for", options.time_limit));
  }
  campaign.generator.lengths = length_weights_from(options.lengths);
  campaign.shard = parse_shard("--shard", options.shard);
  const bool are_functions = ask_functions_for(options.operation, options.plugins);
  if (are_functions && !options.names_kernels) options.operation.clear();
  if (!options.in_process && !options.is_large) run_plugins_apart();
  const std::vector<std::string> plugin_kernels = load_plugins(options.plugins);
  if (!plugin_kernels.empty() && !options.names_kernels) {
    options.kernels = glob_of_runnable(plugin_kernels);
  }
  require_a_campaign_for_files(options);
  (void)options.isolation();  // its texts are checked before anything is written
  load_captured_inputs(options.inputs_file);
  if (!options.minimize.empty()) return minimize(options);
  if (!options.without_regressions) campaign.regressions = all_regressions();
  if (!options.is_strict) campaign.known_findings = all_known_findings();
  if (!options.in_process && !options.is_large) leave_questions_to_workers();
  check_globs(campaign, options.inputs_file);
  const std::vector<const KernelInfo*> kernels = kernels_asked(options);
  if (options.is_large) {
    LargeOptions large;
    large.seed = campaign.seed;
    large.families = campaign.generator.families;
    if (options.has_cases) large.cases_per_kernel = campaign.cases_per_kernel;
    return verify_large(kernels, large, options.out, options.inputs_file);
  }
  if (!options.in_process) campaign.make_runner = isolated_runners(options.isolation());
  campaign.is_interrupted = was_interrupted;
  catch_interrupts();
  std::optional<SharedCampaign> shared;  // until the end: who reports holds a claim to that
  if (rank) {
    shared.emplace(options.out, kernels, campaign);
    if (const auto code = work_as_rank(*rank, *shared, options, kernels, state)) return *code;
  }
  RecordWriter records(options.out / "verify.jsonl");  // held alone: one campaign a folder
  if (options.resumes && !rank) {
    state.results = read_campaign_state(options.out).results;
    absorb_chunks(options.out, state.results);
  }
  if (!options.resumes && !rank) remove_chunks(options.out);
  Trouble trouble;
  const bool was_finished = (options.resumes || rank) && has_nothing_left(state, kernels, campaign);
  const Outcome outcome =
      was_finished ? Outcome{state.results, state.seconds} : run(kernels, options, state, trouble);
  const bool is_complete = !was_interrupted();
  if (is_complete) {
    write_records(outcome, options, was_finished ? nullptr : &records, json, trouble);
    // Only now: who is killed before writes the records when it is resumed.
    if (!was_finished && !trouble.is_any()) {
      state.is_finished = true;
      trouble.tries([&] { write_campaign_state(options.out, state); });
    }
  }
  const Counterexamples kept = keep_counterexamples(outcome.results, options, trouble);
  if (!options.prints_json) {
    constexpr bool planted = true;
    print_failures(outcome.results, options, planted, kept);
    print_table(outcome.results, campaign, is_complete);
    if (is_complete) print_shortfalls(outcome.results, options.names_coverage);
    print_summary(outcome.results, outcome.seconds, options.names_coverage);
    print_known_findings(outcome.results, options, kept);
    print_failures(outcome.results, options, !planted, kept);
  }
  if (is_complete) write_for_ci(outcome.results, options, kept, trouble);
  trouble.tell();
  if (!is_complete) {
    fmt::print(stderr,
               "attest: interrupted; what is done is kept: attest verify --resume --out {}\n",
               options.out.string());
    return ExitCode::interrupted;
  }
  const Verdict verdict = campaign_verdict(outcome.results);
  if (was_finished) {  // with --json on stderr
    fmt::print("the campaign in {} was finished before: nothing is appended\n",
               options.out.string());
  }
  if (!options.prints_json) {
    if (!was_finished) fmt::print("records appended to {}\n", records.path().string());
    fmt::print("{}\n", verdict == Verdict::passed         ? as_good("PASSED")
                       : verdict == Verdict::inconclusive ? as_open("INCONCLUSIVE")
                                                          : as_bad("FAILED"));
  }
  if (verdict == Verdict::inconclusive) return ExitCode::inconclusive;
  return verdict == Verdict::passed ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_verify_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "verify", "Property-test kernels against exact arithmetic on random cases");
  const auto options = std::make_shared<VerifyOptions>();
  add_verify_options(*command, *options);
  command->footer(
      "Examples:\n"
      "  attest verify                                   all kernels, random and real inputs\n"
      "  attest verify --kernel 'k3*' --for 60s          one kernel for a minute\n"
      "  attest verify --thorough                        ten times the cases: before a release\n"
      "  attest verify --family real --executor simt     real activations on the SIMT executor\n"
      "  attest verify --inputs my.safetensors --family file\n"
      "  attest verify --plugin ./mine.so                your own kernel, see examples/plugin\n"
      "  attest verify --python mine.py:flash            a function; --operation backward: its "
      "gradients\n"
      "  attest verify --kernel 'mutant/*'               the planted bugs: all must be killed\n"
      "  attest verify --shard 2/5 --out part2           a fifth of the campaign\n"
      "  mpirun -n 8 attest verify --out shared/folder   one campaign, a GPU a rank; srun, "
      "torchrun\n"
      "  attest verify --resume --out part2              go on after Ctrl-C, a kill or a power "
      "cut\n"
      "A failure that is a known finding of a library, in a version of which it is known, costs no "
      "exit code: it is shown with its report (FINDINGS.md); --strict fails it.\n"
      "Exit code 4: nothing failed, but of some kernel less than half of the cases asked for were "
      "judged and not vacuous.\n"
      "Exit code 130: interrupted by Ctrl-C or SIGTERM; the table shows what was done until then.\n"
      "Verdicts have colours on a terminal; NO_COLOR=1 takes them away.");
  command->callback([options, command, &action] {
    note_typed_options(*command, *options);
    action = [options, typed = typed_options(*command)] { return verify(*options, typed); };
  });
}

}  // namespace attest
