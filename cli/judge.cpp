#include "cli/judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <random>
#include <thread>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/box.hpp"
#include "core/base/fnv1a.hpp"
#include "core/base/orphans.hpp"
#include "core/base/temporary_folder.hpp"
#include "core/base/text_file.hpp"
#include "core/run/registry.hpp"
#include "plugin/judged_subject.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_seed_file = 1 << 16;  // bytes

struct JudgeOptions {
  std::string solution, task, format, seed_file, time_limit, timeout = "20s", json, out, serve;
  std::uint64_t seed = 0;
  bool has_seed = false;
  std::int64_t cases = default_cases.per_kernel;
  int runs = 8, jobs = 1;
  bool is_ahead = false;
};

std::uint64_t seed_of(const JudgeOptions& options) {
  if (!options.seed_file.empty() && options.has_seed) {
    throw InvalidInput("--seed and --seed-file are both given; allowed: one of them");
  }
  if (!options.seed_file.empty())
    return fnv1a(read_text_file(options.seed_file, longest_seed_file));
  if (options.has_seed) return options.seed;
  std::random_device entropy;
  return std::uint64_t{entropy()} << 32U | entropy();
}

CampaignOptions campaign_of(const JudgeOptions& options, const Task& task, std::uint64_t seed) {
  CampaignOptions campaign{.cases_per_kernel = options.cases,
                           .seed = seed,
                           .jobs = options.jobs,
                           .shrink = {.calls = 200, .seconds = 20, .seconds_without_answer = 10}};
  if (!options.time_limit.empty()) {
    campaign.time_limit = std::chrono::duration<double>(parse_seconds("--for", options.time_limit));
  }
  campaign.generator.max_len = std::max(task.query_len.most, task.key_len.most);
  campaign.generator.max_head_dim = std::ranges::max(task.head_dims);
  campaign.generator.max_batch = task.batch.most;
  campaign.generator.max_query_heads = task.heads.most;
  return campaign;
}

/// All laws, then the clock.
void ask(const JudgeOptions& options, const Task& task, const std::string& text, Judged& judged) {
  const std::chrono::milliseconds limit(
      static_cast<std::int64_t>(parse_seconds("--timeout", options.timeout) * 1e3));
  try {
    (void)load_judged_subject(text, limit);
  } catch (const KernelError& error) {
    judged.reason = fmt::format("it cannot be loaded: {}", error.what());
    return;
  }
  judged.is_compiled = true;
  judged.flags = flags_of_judged_subject();
  const KernelInfo& kernel = *find_kernel(judged_kernel_name, Executor::cpu);
  const std::uint64_t seed = seed_of(options);
  CampaignOptions campaign = campaign_of(options, task, seed);
  campaign.is_interrupted = was_interrupted;
  campaign.make_runner =
      isolated_runners({.setup = {.plugins = {text}},
                        .make_worker = worker_for_judging,
                        .limits = {.seconds = static_cast<double>(limit.count()) / 1e3,
                                   .memory_bytes = std::uint64_t{8} << 30},
                        .is_interrupted = was_interrupted});
  KernelResult result = run_campaign({&kernel}, campaign).front();
  judged.cases = result.cases;
  judged.verdict = result.verdict();
  set_layers(judged, result);
  std::optional<Failure> failure = result.failure;
  if (!failure && judged.verdict == Verdict::passed && options.runs > 0 && !was_interrupted()) {
    const TimedRuns timed = time_runs(kernel, task, seed, options.runs);
    failure = timed.failure;
    if (failure) {
      judged.verdict = failure->kind;
      judged.bound = failure->kind == Verdict::failed ? std::optional(false) : std::nullopt;
      judged.reason = fmt::format("in run {} of those that are timed, ", timed.runs);
    } else {
      judged.time_ms = timed.time_ms;
      judged.is_time_confirmed = timed.is_confirmed;
    }
  }
  if (failure) {
    judged.reason += reason_of(*failure);
    judged.problem = to_string(failure->the_case.problem);
    if (!options.out.empty()) {
      judged.replay = write_counterexample(std::filesystem::path(options.out) / "counterexamples",
                                           *failure, kernel.executor, "")
                          .string();
    }
  } else if (judged.verdict == Verdict::passed) {
    judged.reason = fmt::format("no law is broken in {} cases", judged.cases);
  } else {
    judged.reason =
        fmt::format("too little was decided: {}", fmt::join(shortfalls_of(result, false), "; "));
  }
}

ExitCode judge(const JudgeOptions& options) {
  if (!options.serve.empty()) return serve_judge(options.serve);
  if (options.is_ahead) return judge_when_asked(options.format == "plugin");
  if (options.solution.empty() || options.task.empty()) {
    throw InvalidInput("judge takes a SOLUTION and a --task, or --serve SOCKET");
  }
  const Task task = task_from(options.task);
  const std::string text =
      judged_text({.place = options.solution, .format = options.format, .task = task});
  (void)seed_of(options);  // its file is read before anything of the solution runs
  JsonOutput json(options.json == "-");
  adopt_orphans();
  catch_interrupts();
  Judged judged{.task = task.text, .box = box_here()};
  {
    const SharedTemporaryFolder folder;
    load_captured_inputs("");
    try {
      ask(options, task, text, judged);
    } catch (const KernelError& error) {
      judged.reason = fmt::format("it was loaded once and not again: {}", error.what());
    }
    (void)end_children();
  }
  if (was_interrupted()) return ExitCode::interrupted;
  const std::string object = to_json(judged).dump();
  json.print(object);
  if (!options.json.empty() && options.json != "-") write_whole_file(options.json, object + "\n");
  if (options.json.empty()) fmt::print("{}", to_string(judged));
  if (judged.verdict == Verdict::inconclusive) return ExitCode::inconclusive;
  return judged.verdict == Verdict::passed ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace

void add_judge_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "judge", "Judge a solution that nobody trusts, in a box, by what its task asks");
  const auto options = std::make_shared<JudgeOptions>();
  options->jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  command->add_option(
      "SOLUTION", options->solution,
      "FILE.py or FILE.py:NAME; FILE.so or FILE.so:KERNEL, a plugin of host memory");
  std::string names;
  for (const NamedTask& task : named_tasks()) {
    names += fmt::format("; {}: {}", task.name, task.summary);
  }
  command->add_option("--task", options->task, "what is asked: d64:bf16:causal" + names);
  command
      ->add_option("--format", options->format,
                   fmt::format("how it is called: {}", fmt::join(judged_formats(), ", ")))
      ->default_str("numpy, of FILE.so plugin");
  add_seed_option(*command, options->seed, "seed of the cases, which processes here can see")
      ->default_str("drawn")
      ->each([options](const std::string&) { options->has_seed = true; });
  command->add_option("--seed-file", options->seed_file,
                      "file whose bytes are the seed: the solution cannot read it");
  command->add_option("--for", options->time_limit, "time for the cases: 90s, 5min");
  command->add_option("--cases", options->cases, "cases, unless --for is given")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->capture_default_str();
  command->add_option("--runs", options->runs, "timed are so many runs and twice as many; 0: none")
      ->check(CLI::Range(0, 10000))
      ->capture_default_str();
  command->add_option("--jobs", options->jobs, "cases at the same time")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command->add_option("--timeout", options->timeout, "to be loaded, and for one case")
      ->capture_default_str();
  command->add_option("--json", options->json, "file for the verdict, - for stdout");
  command->add_option("--out", options->out, "folder for a counterexample that can be replayed");
  command->add_option("--serve", options->serve,
                      "Unix socket: judges for whoever connects, a request a line of JSON");
  command->add_flag("--ahead", options->is_ahead)->group("");  // of --serve's own processes
  command->footer(
      "What the solution declares of itself counts for nothing: types, masks, sizes and the "
      "roundings behind the bound are the task's.\n"
      "Examples:\n"
      "  attest judge solution.py --task d64:causal --seed-file secret --for 90s --json -\n"
      "  attest judge solution.py --task kernelbench --format kernelbench\n"
      "  attest judge solution.so:my_kernel --task d64:causal\n"
      "Exit code 0: passed; 1: failed, loading it among that; 4: too little was decided.");
  command->callback([options, &action] { action = [options] { return judge(*options); }; });
}

}  // namespace attest
