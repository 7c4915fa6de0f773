#include <fmt/format.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/commands.hpp"
#include "cli/options.hpp"
#include "cli/output.hpp"
#include "cli/selection.hpp"
#include "core/base/counted.hpp"
#include "core/records/provenance.hpp"
#include "core/run/asked_paging.hpp"
#include "core/run/registry.hpp"
#include "core/run/tuning_key.hpp"
#include "experiments/benchmarks/run_benchmarks.hpp"
#include "experiments/tuning/suites.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

struct BenchOptions : ProblemSelection {
  std::string executor = "auto";
  std::optional<std::string> layouts;
  std::vector<std::string> flags;
};

ExitCode run_bench(const BenchOptions& options) {
  require_benchmark_flags(options.flags);
  const std::vector<Problem> problems = problems_of(options, "quick");
  // The time of a simulated GPU is nobody's answer unless it is asked for.
  const bool chooses = options.executor == "auto";
  const std::string no_gpu = chooses ? why_unavailable(Executor::gpu) : "";
  const std::string executor = !chooses ? options.executor : no_gpu.empty() ? "gpu" : "cpu";
  const auto kernels = select_kernels(options.kernel_glob(), executor, problems.front().operation);
  const Provenance build = current_provenance("");
  if (const auto reason = why_not_benchmarked(build)) throw MachineError(*reason);
  if (!no_gpu.empty()) {
    fmt::print(stderr, "attest: no usable GPU ({}): kernels of the CPU, by the host's time\n",
               no_gpu);
  }

  std::map<Executor, std::unique_ptr<Device>> devices;
  const auto device_of = [&](Executor wanted) -> Device& {
    auto& device = devices[wanted];
    if (device == nullptr) device = make_device(wanted);
    return *device;
  };
  const std::string device = device_of(kernels.front()->executor).description();
  const auto paging =
      options.layouts ? std::optional(asked_paging("--layouts", *options.layouts)) : std::nullopt;
  const BenchmarkPoints chosen = benchmark_points(kernels, problems, device, paging);
  if (chosen.points.empty()) {
    throw InvalidInput(fmt::format("bench: none of the kernels runs any of the problems; {}",
                                   chosen.why_left_out));
  }
  if (chosen.left_out > 0) {
    fmt::print(stderr, "attest: {} of kernel and problem left out, first {}\n",
               counted(chosen.left_out, "pair"), chosen.why_left_out);
  }

  Gate gate(
      isolated_runners({.setup = {.plugins = options.plugins}, .is_interrupted = was_interrupted}));
  BenchmarkRunner runner(device_of, gate, was_interrupted);
  catch_interrupts();
  std::size_t ran = 0;
  try {
    ran = run_benchmarks(runner, chosen.points, options.flags,
                         {{"commit", build.commit + (build.dirty ? " with changes" : "")},
                          {"device", device},
                          {"compiler", build.cuda_compiler.empty()
                                           ? build.compiler
                                           : build.compiler + ", nvcc " + build.cuda_compiler}});
  } catch (const Interrupted&) {
  }
  if (was_interrupted()) return ExitCode::interrupted;
  if (ran == 0) throw InvalidInput("bench: --benchmark_filter matches no kernel and problem");
  if (runner.refused() == 0) return ExitCode::passed;
  fmt::print(stderr, "attest: {} of {} not timed, because they are wrong\n", runner.refused(), ran);
  return ExitCode::verdict_failed;
}

}  // namespace

void add_bench_command(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "bench",
      "Times kernels with Google Benchmark, each verified before; takes its --benchmark_ flags");
  const auto options = std::make_shared<BenchOptions>();
  add_problem_options(*command, *options, "; without any, quick");
  command
      ->add_option(
          "--executor", options->executor,
          "gpu, cpu, simt (the time of the simulation); auto: gpu, or cpu where there is none")
      ->capture_default_str();
  command->add_option("--layouts", options->layouts, layouts_help);
  command->allow_extras();
  command->footer(
      "Examples:\n"
      "  attest bench\n"
      "  attest bench --suite fa3 --kernel 'fa*' --benchmark_filter='d128 none'\n"
      "  attest bench --operation backward --executor cpu\n"
      "  attest bench --suite serving --benchmark_out=serving.json --benchmark_repetitions=10\n"
      "Each kernel runs with its default Plan; times are the device's own. A kernel that gives a "
      "wrong answer is not timed; exit code 1 then.");
  command->callback([options, command, &action] {
    options->flags = command->remaining();
    action = [options] { return run_bench(*options); };
  });
}

}  // namespace attest
