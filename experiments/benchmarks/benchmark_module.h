#pragma once

#include <stddef.h>
#include <stdint.h>

/// Between the program and the module libattest_benchmark.so, which alone is linked with Google
/// Benchmark: Debian has it as a shared library only, and the program shall run where there is
/// none. No exception crosses. In C, because the two have a C++ library each.
extern "C" {

struct AttestBenchmark {
  const char* name;
  const char* label; /* printed behind the row, may be empty */
  double flops;      /* of one launch */
  double bytes;      /* of one launch, if a rate of them is wanted; 0: none is */
  void* context;
  /* Called before each measurement. How many launches to time at once, or 0: it may not be timed,
     and why() says why. */
  int64_t (*prepare)(void* context);
  /* Seconds that so many launches took; negative: they failed, and why() says why. */
  double (*time)(void* context, int64_t launches);
  /* Called after each measurement: 0 where the answers were wrong, and why() says why. */
  int (*finish)(void* context);
  const char* (*why)(void* context);
};

/// A fact about the run, printed above the results.
struct AttestBenchmarkFact {
  const char *name, *value;
};

enum { attest_benchmark_bad_argument = -1 };

/// Runs those that the flags of `argv` (`argc` of them, and the program's name first) choose; how
/// many, or attest_benchmark_bad_argument, which is then `*bad`. Once a process: Google Benchmark
/// 1.7 does not survive a second run.
typedef int64_t (*AttestRunBenchmarks)(int argc, char** argv,
                                       const struct AttestBenchmark* benchmarks, size_t count,
                                       const struct AttestBenchmarkFact* facts, size_t fact_count,
                                       const char** bad);
}
