#include <fmt/format.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/selection.hpp"
#include "core/base/slow_notice.hpp"
#include "core/base/text.hpp"
#include "core/run/asked_paging.hpp"
#include "core/run/registry.hpp"
#include "experiments/explain/explanation.hpp"
#include "experiments/explain/largest_tiles.hpp"
#include "experiments/explain/plan_to_explain.hpp"

namespace attest {
namespace {

struct ExplainOptions {
  std::string kernel;
  std::optional<std::string> problem;
  std::string plan;
  std::optional<std::string> layouts;
  std::vector<std::string> plugins;
  std::string device = "h200";
  std::string link;
  std::optional<double> rate;
  bool json = false;
  std::string fit;
  std::int64_t head_dim = 64;
  std::string element = "fp16";
};

const KernelInfo& kernel_named(const std::string& name) {
  // The executor's copy says most: its launches and accesses can be watched.
  for (const Executor executor : {Executor::simt, Executor::gpu, Executor::cpu}) {
    const KernelInfo* const kernel = find_kernel(name, executor);
    if (kernel == nullptr) continue;
    if (!is_explained(*kernel->operation)) {
      throw InvalidInput(
          fmt::format("explain is about attention and its gradients, and {} computes {}", name,
                      kernel->operation->name));
    }
    return *kernel;
  }
  throw InvalidInput(
      fmt::format("kernel '{}' is unknown; attest list kernels names them all", printable(name)));
}

/// Link and rate of the GPUs that share the problem, as --link and --rate say; nothing for a Plan
/// without ranks.
std::optional<RankQuestion> rank_question(const ExplainOptions& options, const KernelInfo& kernel,
                                          const Plan& plan) {
  if (plan.ranks == 0) {
    if (options.link.empty() && !options.rate) return std::nullopt;
    throw InvalidInput(
        fmt::format("--{} is about kernels of several ranks such as n3_ring; {} has none",
                    options.link.empty() ? "rate" : "link", kernel.name));
  }
  RankQuestion question;
  if (!options.link.empty()) question.link = &link_model_from_name(options.link);
  constexpr double largest_rate = 1e6;
  if (options.rate && !(*options.rate > 0 && *options.rate <= largest_rate)) {
    throw InvalidInput(fmt::format("--rate is {}; allowed: TFLOP/s above 0, up to {}",
                                   *options.rate, largest_rate));
  }
  if (options.rate) question.flops_per_s = *options.rate * 1e12;
  return question;
}

ExitCode explain_kernel(const ExplainOptions& options) {
  (void)load_plugins(options.plugins);
  const KernelInfo& kernel = kernel_named(options.kernel);
  const GpuModel& gpu = gpu_model_from_name(options.device);
  const Problem problem = problem_to_explain(kernel, options.problem);
  const Paging paging =
      options.layouts ? asked_paging("--layouts", *options.layouts) : default_paging(kernel);
  validate(paging, problem);
  const ChosenPlan chosen =
      plan_to_explain(kernel, problem, gpu, plan_from_string(options.plan), paging);
  const std::optional<RankQuestion> ranks = rank_question(options, kernel, chosen.plan);
  const SlowNotice notice("attest: counting the accesses of one block after the other");
  Explanation explanation = explain(kernel, problem, chosen.plan, gpu, nullptr, paging);
  if (!explanation.why_not_run.empty()) {
    throw InvalidInput(fmt::format("kernel {} cannot run plan '{}' on --device {}: {}", kernel.name,
                                   to_string(chosen.plan), gpu.name, explanation.why_not_run));
  }
  explanation.plan_origin = chosen.origin;
  if (ranks) explanation.ranks = rank_scaling(problem, chosen.plan, gpu, *ranks);
  options.json ? fmt::print("{}\n", explanation_json(explanation).dump())
               : fmt::print("{}", explanation_text(explanation));
  return ExitCode::passed;
}

ExitCode explain_fit(const ExplainOptions& options) {
  constexpr std::int64_t largest_budget = std::int64_t{1} << 30, largest_head_dim = 1024;
  const auto budget = static_cast<std::int64_t>(parse_bytes("--fit", options.fit));
  if (budget > largest_budget) {
    throw InvalidInput(fmt::format("--fit is {} bytes; allowed: up to 1GiB", budget));
  }
  if (options.head_dim < 1 || options.head_dim > largest_head_dim) {
    throw InvalidInput(
        fmt::format("--head-dim is {}; allowed: 1 to {}", options.head_dim, largest_head_dim));
  }
  const FitQuestion question{.budget_bytes = budget,
                             .head_dim = options.head_dim,
                             .element_type = element_type_from_name(options.element)};
  options.json ? fmt::print("{}\n", largest_tiles_json(question).dump())
               : fmt::print("{}", largest_tiles_text(question));
  return ExitCode::passed;
}

}  // namespace

void add_explain_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "explain", "Why a kernel is as fast as it is: work, traffic, occupancy, bank conflicts");
  const auto options = std::make_shared<ExplainOptions>();
  command->add_option("kernel", options->kernel, "name of one kernel; see attest list kernels");
  add_plugin_option(*command, options->plugins);
  command
      ->add_option("--problem", options->problem,
                   "as reports print it: 'b8 h12/4 n4096 d64 causal_top_left fp32'; without an "
                   "element type, fp32 or one that the kernel has")
      ->default_str(fmt::format("{}, or what the kernel takes in its place", usual_problem));
  command->add_option(
      "--plan", options->plan,
      "'qt32,kt32'; what is left open is taken from the Plan of the kernel that is most like it; "
      "without --plan: the fastest on this device, if it was tuned, else the first");
  command->add_option("--layouts", options->layouts, layouts_help);
  command->add_option("--device", options->device, "h200, h100, a100, a6000 or t4")
      ->capture_default_str();
  command->add_option(
      "--link", options->link,
      fmt::format("between the GPUs of a kernel of several ranks: {}; without it: the device's own "
                  "where it joins them all, else one network card a GPU",
                  names_of_links()));
  command->add_option("--rate", options->rate,
                      "TFLOP/s that attention reaches on one of them; without it: the peak");
  command->add_flag("--json", options->json, "one JSON object");
  command->add_option("--fit", options->fit,
                      "instead: the largest tiles for this much shared memory, such as 164KiB");
  command->add_option("--head-dim", options->head_dim, "with --fit")->capture_default_str();
  command->add_option("--element", options->element, "with --fit: fp32, fp16 or bf16")
      ->capture_default_str();
  command->footer(
      "Examples:\n"
      "  attest explain k3_sequence_parallel --problem 'b8 h12 n4096 d64 causal_top_left' "
      "--plan 'qt32,kt32'\n"
      "  attest explain k1_naive --device a6000 --json\n"
      "  attest explain n3_ring --problem 'h32/8 n131072 d128 causal_top_left bf16' "
      "--plan 'r8,distribution=zigzag' --rate 800\n"
      "  attest explain --fit 164KiB --head-dim 64");
  command->callback([options, &action] {
    if (options->kernel.empty() == options->fit.empty()) {
      throw InvalidInput("explain: nothing or too much is asked; allowed: one kernel, or --fit");
    }
    action = [options] {
      return options->fit.empty() ? explain_kernel(*options) : explain_fit(*options);
    };
  });
}

}  // namespace attest
