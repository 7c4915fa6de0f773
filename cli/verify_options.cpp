#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <thread>
#include <utility>

#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "core/base/error.hpp"

namespace attest {

WorkerSetup VerifyOptions::setup() const {
  return {.plugins = plugins, .inputs_file = inputs_file};
}

Isolation VerifyOptions::isolation() const {
  return {
      .setup = setup(),
      .limits = {.seconds = parse_seconds("--timeout", timeout),
                 .memory_bytes = parse_bytes("--memory-limit", memory_limit, least_worker_bytes)},
      .is_interrupted = was_interrupted};
}

void add_verify_options(CLI::App& command, VerifyOptions& options) {
  CampaignOptions& campaign = options.campaign;
  campaign.jobs = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  const std::string which = "Which cases";
  command
      .add_option("--kernel", options.kernels, "glob over kernel names, commas separate several")
      ->capture_default_str()
      ->group(which);
  add_plugin_option(command, options.plugins, "; without --kernel only these are verified")
      ->group(which);
  command
      .add_option("--executor", options.executor,
                  "auto, gpu, simt or cpu; auto takes the GPU where there is one")
      ->capture_default_str()
      ->group(which);
  command
      .add_option("--operation", options.operation,
                  "only kernels that compute it; see attest list operations")
      ->group(which);
  command.add_option("--law", campaign.laws.glob, "glob over laws, commas separate several")
      ->capture_default_str()
      ->group(which);
  command
      .add_flag("--every-law", campaign.laws.every_law,
                "check all laws on every case instead of one drawn law that needs more launches")
      ->group(which);
  command
      .add_option("--family", campaign.generator.families,
                  "glob over input families, commas separate several")
      ->capture_default_str()
      ->group(which);
  command
      .add_option(
          "--max-len", campaign.generator.max_len,
          "largest query and key length drawn; four times as many keys under --lengths "
          "many-tiles, of both for kernels that refuse what is shorter [default: 160, 131072 "
          "under heavy-tail and few-queries as far as the work of a case allows]")
      ->check(CLI::Range(std::int64_t{1}, tail_sizes.len))
      ->group(which);
  command
      .add_flag("--far-on-gpu", campaign.generator.far_elements_on_gpu,
                "draw tensors that span more than 2^31 elements, or 2^32 of 2 bytes, on a GPU too: "
                "8 GiB of its memory for each job")
      ->group(which);
  command
      .add_option("--lengths", options.lengths,
                  "how often each kind of length is drawn, KIND:WEIGHT separated by commas")
      ->capture_default_str()
      ->group(which);
  command
      .add_option("--max-head-dim", campaign.generator.max_head_dim,
                  "largest head_dim drawn [default: 256, in one case of 40 all that is claimed]")
      ->check(CLI::Range(std::int64_t{1}, tail_sizes.head_dim))
      ->group(which);
  command
      .add_option(
          "--max-batch", campaign.generator.max_batch,
          "largest batch drawn [default: 3, 6 with entries of different lengths, 131072 in one "
          "case of 40 as far as the work of a case allows]")
      ->check(CLI::Range(std::int64_t{1}, tail_sizes.batch))
      ->group(which);
  command
      .add_option("--max-heads", campaign.generator.max_query_heads,
                  "most query heads drawn [default: 28, 131072 in one case of 40 as far as "
                  "the work of a case allows]")
      ->check(CLI::Range(std::int64_t{1}, tail_sizes.query_heads))
      ->group(which);
  command
      .add_option(
          "--inputs", options.inputs_file,
          "your own safetensors file with q, k, v of [B,H,N,D] or [N,H,D], as family `file`")
      ->group(which);

  command
      .add_flag("--large", options.is_large,
                "long sequences up to 131,072 with few heads, 4 cases per kernel unless --cases "
                "says otherwise, in this process: every element where there is a GPU reference, "
                "64 sampled rows otherwise; kernels too slow for it are left out by name")
      ->group(which);

  const std::string how_many = "How many";
  command
      .add_option("--cases", campaign.cases_per_kernel,
                  fmt::format("cases per kernel [default: {}, and {} on the SIMT executor]",
                              default_cases.per_kernel, default_cases.per_simt_kernel))
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 40))
      ->group(how_many);
  command
      .add_flag("--thorough", options.is_thorough,
                fmt::format("{} cases per kernel, and {} on the SIMT executor",
                            thorough_cases.per_kernel, thorough_cases.per_simt_kernel))
      ->group(how_many);
  command.add_option("--for", options.time_limit, "run this long instead: 60s, 5min, 1h")
      ->group(how_many);
  add_seed_option(command, campaign.seed, "seed of the campaign")->group(how_many);
  command
      .add_option("--shard", options.shard,
                  "i/n: the i-th of n parts of the campaign, which share no case; 1/1: all of it, "
                  "even where mpirun, srun or torchrun started several")
      ->capture_default_str()
      ->group(how_many);
  command
      .add_flag("--no-regressions", options.without_regressions,
                "do not replay the counterexamples of the past")
      ->group(how_many);

  const std::string isolation = "Worker processes";
  command.add_option("--jobs", campaign.jobs, "cases run at the same time, each in a process")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str()
      ->group(isolation);
  command
      .add_option("--timeout", options.timeout,
                  "a kernel that takes longer over one case has timed out")
      ->capture_default_str()
      ->group(isolation);
  command
      .add_option("--memory-limit", options.memory_limit,
                  "resident host memory of one worker; above it the kernel has crashed")
      ->capture_default_str()
      ->group(isolation);
  command
      .add_flag("--in-process", options.in_process,
                "no worker processes, for debuggers: a kernel that crashes ends the program")
      ->group(isolation);

  const std::string results = "Results";
  command.add_option("--out", options.out, "folder for records, counterexamples and the state")
      ->capture_default_str()
      ->group(results);
  command
      .add_flag("--resume", options.resumes,
                "go on with the campaign in --out, with the options it was begun with")
      ->group(results);
  command
      .add_option("--minimize", options.minimize,
                  "shrink an existing counterexample (a file, or the key of one in --out) further")
      ->group(results);
  command
      .add_flag("--coverage", options.names_coverage,
                "name every feature of cases that was not reached, and what it takes")
      ->group(results);
  command
      .add_flag("--strict", options.is_strict,
                "known findings of libraries fail the campaign as other failures do; without, they "
                "are shown and counted apart")
      ->group(results);
  command
      .add_option(
          "--junit", options.junit,
          "file for the verdicts as a CI shows them: a suite a kernel, a case a layer of laws")
      ->group(results);
  command
      .add_option("--sarif", options.sarif,
                  "file for the failures as code hosts show them beside the code: SARIF 2.1.0, a "
                  "result a kernel that failed")
      ->group(results);
  command.add_flag("--json", options.prints_json, "print records instead of the table")
      ->group(results);
}

std::vector<std::string> typed_options(const CLI::App& command) {
  std::vector<std::string> typed;
  for (const CLI::Option* option : command.get_options()) {
    for (const std::string& value : option->results()) {
      typed.push_back(fmt::format("{}={}", option->get_name(), value));
    }
  }
  return typed;
}

VerifyOptions parse_verify_options(const std::vector<std::string>& typed) {
  VerifyOptions options;
  CLI::App app;
  add_verify_options(app, options);
  std::vector<std::string> reversed(typed.rbegin(), typed.rend());  // as CLI11 wants them
  try {
    app.parse(std::move(reversed));
  } catch (const CLI::ParseError& error) {
    throw InvalidInput(fmt::format("--resume: the options of the campaign: {}", error.what()));
  }
  note_typed_options(app, options);
  return options;
}

void note_typed_options(const CLI::App& command, VerifyOptions& options) {
  options.names_kernels = command.count("--kernel") > 0;
  options.has_cases = command.count("--cases") > 0;
  options.has_jobs = command.count("--jobs") > 0;
  options.has_shard = command.count("--shard") > 0;
  if (options.is_thorough) {
    options.campaign.cases_per_kernel = thorough_cases.per_kernel;
    options.campaign.cases_per_simt_kernel = thorough_cases.per_simt_kernel;
  }
  if (options.has_cases) {
    options.campaign.cases_per_simt_kernel = options.campaign.cases_per_kernel;
  }
}

void require_one_number(const VerifyOptions& options) {
  const std::array given{std::pair("--for", !options.time_limit.empty()),
                         std::pair("--cases", options.has_cases),
                         std::pair("--thorough", options.is_thorough)};
  std::vector<std::string_view> names;
  for (const auto& [name, is_given] : given) {
    if (is_given) names.emplace_back(name);
  }
  if (names.size() > 1) {
    throw InvalidInput(fmt::format("{} are both given; allowed: one of them",
                                   fmt::join(std::span(names).first(2), " and ")));
  }
}

void require_a_campaign_for_files(const VerifyOptions& options) {
  if (!options.is_large && options.minimize.empty()) return;
  for (const auto& [name, file] :
       {std::pair("--junit", &options.junit), std::pair("--sarif", &options.sarif)}) {
    if (file->empty()) continue;
    throw InvalidInput(fmt::format("{} and {} are both given; allowed: one of them", name,
                                   options.is_large ? "--large" : "--minimize"));
  }
}

VerifyOptions resumed_options(const VerifyOptions& now, const std::vector<std::string>& typed,
                              const std::vector<std::string>& typed_then) {
  constexpr std::array<std::string_view, 12> may_change{
      "--resume",       "--out",        "--for",  "--cases",    "--jobs",  "--timeout",
      "--memory-limit", "--in-process", "--json", "--coverage", "--junit", "--sarif"};
  std::vector<std::string> merged;
  const auto name_of_option = [](const std::string& option) {
    return option.substr(0, option.find('='));
  };
  for (const std::string& option : typed) {
    if (std::ranges::find(may_change, name_of_option(option)) == may_change.end()) {
      throw InvalidInput(
          fmt::format("--resume takes {} from the campaign it resumes; what may change: {}",
                      name_of_option(option), fmt::join(may_change, ", ")));
    }
    merged.push_back(option);
  }
  for (const std::string& option : typed_then) {
    const auto is_replaced = [&](const std::string& newer) {
      return name_of_option(newer) == name_of_option(option);
    };
    if (std::ranges::none_of(typed, is_replaced) && name_of_option(option) != "--json") {
      merged.push_back(option);
    }
  }
  VerifyOptions options = parse_verify_options(merged);
  options.out = now.out;
  return options;
}

}  // namespace attest
