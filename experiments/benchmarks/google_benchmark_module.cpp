#include <benchmark/benchmark.h>

#include "experiments/benchmarks/benchmark_module.h"

namespace {

void run(benchmark::State& state, const AttestBenchmark& b) {
  const std::int64_t launches = b.prepare(b.context);
  if (launches <= 0) {
    state.SkipWithError(b.why(b.context));
    return;
  }
  while (state.KeepRunningBatch(launches)) {
    const double seconds = b.time(b.context, launches);
    if (!(seconds >= 0)) {
      state.SkipWithError(b.why(b.context));
      return;
    }
    state.SetIterationTime(seconds);
  }
  if (b.finish(b.context) == 0) {
    state.SkipWithError(b.why(b.context));
    return;
  }
  state.counters["FLOP/s"] =
      benchmark::Counter(b.flops, benchmark::Counter::kIsIterationInvariantRate);
  if (b.bytes > 0) {
    state.counters["B/s"] =
        benchmark::Counter(b.bytes, benchmark::Counter::kIsIterationInvariantRate);
  }
  state.SetLabel(b.label);
}

}  // namespace

extern "C" [[gnu::visibility("default")]] std::int64_t attest_run_benchmarks(
    int argc, char** argv, const AttestBenchmark* benchmarks, std::size_t count,
    const AttestBenchmarkFact* facts, std::size_t fact_count, const char** bad) {
  benchmark::Initialize(&argc, argv);
  if (argc > 1) {
    *bad = argv[1];
    return attest_benchmark_bad_argument;
  }
  for (std::size_t i = 0; i < fact_count; ++i) {
    benchmark::AddCustomContext(facts[i].name, facts[i].value);
  }
  for (std::size_t i = 0; i < count; ++i) {
    benchmark::RegisterBenchmark(benchmarks[i].name, run, benchmarks[i])
        ->UseManualTime()
        ->Unit(benchmark::kMicrosecond);
  }
  const std::size_t ran = benchmark::RunSpecifiedBenchmarks();
  return static_cast<std::int64_t>(ran);
}
