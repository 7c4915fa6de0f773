#include "experiments/benchmarks/run_benchmarks.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <exception>
#include <filesystem>
#include <fstream>
#include <regex>
#include <string_view>

#include "core/attention/operation.hpp"
#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "experiments/benchmarks/benchmark_module.h"

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* module_name = "libattest_benchmark.so";

AttestRunBenchmarks module_function() {
  const fs::path folder = fs::read_symlink("/proc/self/exe").parent_path();
  std::string reason = fmt::format("no such file in {} or ../lib", folder.string());
  for (const fs::path& file : {folder / module_name, folder / "../lib" / module_name}) {
    if (!fs::exists(file)) continue;
    void* const handle = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const function = handle == nullptr ? nullptr : dlsym(handle, "attest_run_benchmarks");
    if (function != nullptr) return reinterpret_cast<AttestRunBenchmarks>(function);
    if (const char* const said = dlerror(); said != nullptr) reason = said;
  }
  throw MachineError(
      fmt::format("bench needs {}, which is built beside the program: {}", module_name, reason));
}

/// A point as the module sees it. What is thrown in here must not pass through it.
struct Timed {
  BenchmarkRunner* runner = nullptr;
  const BenchmarkPoint* point = nullptr;
  std::string name, label, why;
  std::exception_ptr* failure = nullptr;  ///< of the machine: ends the run
};

template <typename Result, typename Work>
Result guarded(Timed& timed, Result failed, const Work& work) {
  if (*timed.failure) {
    timed.why = "not run: the machine failed before";
    return failed;
  }
  try {
    return work();
  } catch (const KernelError& error) {
    timed.why = error.what();
  } catch (const std::exception& error) {
    timed.why = error.what();
    *timed.failure = std::current_exception();
  } catch (...) {
    timed.why = "interrupted";
    *timed.failure = std::current_exception();
  }
  return failed;
}

std::int64_t prepare(void* context) {
  auto& timed = *static_cast<Timed*>(context);
  return guarded(timed, std::int64_t{0},
                 [&] { return timed.runner->prepare(*timed.point, timed.why).value_or(0); });
}

double time_launches(void* context, std::int64_t launches) {
  auto& timed = *static_cast<Timed*>(context);
  return guarded(timed, -1.0, [&] { return timed.runner->time_s(*timed.point, launches); });
}

int finish(void* context) {
  auto& timed = *static_cast<Timed*>(context);
  return guarded(timed, 0, [&] {
    return static_cast<int>(timed.runner->keeps_its_answers(*timed.point, timed.why));
  });
}

const char* why(void* context) {
  return static_cast<Timed*>(context)->why.c_str();
}

std::string value_of_flag(std::string_view flag, std::string_view name) {
  return flag.starts_with(name) ? std::string(flag.substr(name.size())) : "";
}

}  // namespace

void require_benchmark_flags(const std::vector<std::string>& flags) {
  for (const std::string& flag : flags) {
    if (!flag.starts_with("--benchmark_")) {
      throw InvalidInput(fmt::format(
          "bench: '{}' is unknown; allowed: its own options (attest bench --help) and those of "
          "Google Benchmark, such as --benchmark_filter=REGEX",
          printable(flag)));
    }
    for (const char* const name : {"--benchmark_format=", "--benchmark_out_format="}) {
      const std::string format = value_of_flag(flag, name);
      if (flag.starts_with(name) && format != "console" && format != "json" && format != "csv") {
        throw InvalidInput(
            fmt::format("{}'{}' is unknown; allowed: console, json, csv", name, printable(format)));
      }
    }
    // Google Benchmark ends the program on numbers that it does not take.
    for (const char* const name :
         {"--benchmark_repetitions=", "--benchmark_min_time=", "--benchmark_min_warmup_time="}) {
      if (!flag.starts_with(name)) continue;
      const std::string text = value_of_flag(flag, name);
      const bool is_count = std::string_view(name) == "--benchmark_repetitions=";
      static const std::regex counts("[1-9][0-9]{0,5}"),
          times("[0-9]{1,6}(\\.[0-9]{1,6})?s?|[1-9][0-9]{0,8}x");
      if (!std::regex_match(text, is_count ? counts : times)) {
        throw InvalidInput(
            fmt::format("{}'{}'; allowed: {}", name, printable(text),
                        is_count ? "1 to 999999" : "seconds such as 0.5s, or runs such as 10x"));
      }
    }
    if (const std::string regex = value_of_flag(flag, "--benchmark_filter="); !regex.empty()) {
      try {
        (void)std::regex(regex, std::regex::extended);
      } catch (const std::regex_error& error) {
        throw InvalidInput(fmt::format("--benchmark_filter='{}' is no regular expression: {}",
                                       printable(regex), error.what()));
      }
    }
    if (const std::string out = value_of_flag(flag, "--benchmark_out="); !out.empty()) {
      if (!std::ofstream(out, std::ios::app)) {
        throw MachineError(
            fmt::format("--benchmark_out: {} cannot be written", printable(out, 200)));
      }
    }
  }
}

std::size_t run_benchmarks(BenchmarkRunner& runner, const std::vector<BenchmarkPoint>& points,
                           const std::vector<std::string>& flags,
                           const std::vector<std::pair<std::string, std::string>>& facts) {
  require_benchmark_flags(flags);
  const AttestRunBenchmarks run = module_function();
  std::exception_ptr failure;
  std::vector<Timed> timed;
  for (const BenchmarkPoint& point : points) {
    timed.push_back({&runner, &point, point.name(), point.label(), {}, &failure});
  }
  std::vector<AttestBenchmark> benchmarks;
  for (Timed& one : timed) {
    const Problem& problem = one.point->problem;
    const double flops = problem.operation->flops(problem);
    const double bytes = problem.operation->bytes(problem);
    // Memory bounds what has fewer operations than bytes, wherever it runs.
    benchmarks.push_back({one.name.c_str(), one.label.c_str(), flops, flops < bytes ? bytes : 0,
                          &one, prepare, time_launches, finish, why});
  }
  std::vector<AttestBenchmarkFact> printed;
  for (const auto& [name, value] : facts) printed.push_back({name.c_str(), value.c_str()});
  std::vector<std::string> arguments{"attest bench"};
  arguments.insert(arguments.end(), flags.begin(), flags.end());
  std::vector<char*> argv;
  for (std::string& argument : arguments) argv.push_back(argument.data());
  const char* bad = nullptr;
  const std::int64_t ran = run(static_cast<int>(argv.size()), argv.data(), benchmarks.data(),
                               benchmarks.size(), printed.data(), printed.size(), &bad);
  if (failure) std::rethrow_exception(failure);
  if (ran == attest_benchmark_bad_argument) {
    throw InvalidInput(
        fmt::format("bench: Google Benchmark does not take '{}'", printable(bad, 200)));
  }
  return static_cast<std::size_t>(ran);
}

}  // namespace attest
