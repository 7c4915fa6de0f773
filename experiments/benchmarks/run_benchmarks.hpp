#pragma once

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "experiments/benchmarks/benchmark_points.hpp"

namespace attest {

/// Times the points with Google Benchmark, whose flags are `flags`; `facts` (name, value) are
/// printed above the results. Returns how many points the flags chose. Throws InvalidInput for a
/// flag that it does not know or a value that it does not take, MachineError where the module
/// libattest_benchmark.so is missing: it is looked for beside the program and in its ../lib. Once a
/// process.
[[nodiscard]] std::size_t run_benchmarks(
    BenchmarkRunner& runner, const std::vector<BenchmarkPoint>& points,
    const std::vector<std::string>& flags,
    const std::vector<std::pair<std::string, std::string>>& facts);

/// Throws InvalidInput for what Google Benchmark itself would answer by ending the program, or not
/// at all: arguments that are no flags of its, formats that it does not have.
void require_benchmark_flags(const std::vector<std::string>& flags);

}  // namespace attest
