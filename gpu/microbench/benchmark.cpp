#include "gpu/microbench/benchmark.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "core/base/error.hpp"

namespace attest::microbench {
namespace {

const Measurement& measurement(const Record& record, std::string_view name) {
  for (const Measurement& m : record.measurements) {
    if (m.name == name) return m;
  }
  throw InvalidInput(
      fmt::format("a record of kind '{}' has no measurement '{}'", record.kind, name));
}

const std::string& label(const Record& record, const std::string& name) {
  const auto found = record.labels.find(name);
  if (found == record.labels.end()) {
    throw InvalidInput(fmt::format("a record of kind '{}' has no label '{}'", record.kind, name));
  }
  return found->second;
}

}  // namespace

std::vector<Benchmark> chosen(std::span<const Benchmark> all, std::span<const std::string> names) {
  for (const std::string& name : names) {
    if (std::ranges::find(all, name, &Benchmark::name) == all.end()) {
      std::vector<std::string_view> allowed;
      for (const Benchmark& benchmark : all) allowed.push_back(benchmark.name);
      throw InvalidInput(fmt::format("benchmark '{}' does not exist; allowed: {}", name,
                                     fmt::join(allowed, ", ")));
    }
  }
  std::vector<Benchmark> found;
  for (const Benchmark& benchmark : all) {
    if (names.empty() || std::ranges::find(names, benchmark.name) != names.end())
      found.push_back(benchmark);
  }
  return found;
}

Record record_of(const Benchmark& benchmark, const Reading& reading, const Provenance& provenance) {
  Record record;
  record.kind = "microbench";
  record.labels = {{"benchmark", std::string(benchmark.name)}, {"reading", reading.name}};
  record.measurements = {{"median", reading.median, reading.unit},
                         {"lowest", reading.lowest, reading.unit},
                         {"highest", reading.highest, reading.unit},
                         {"launches", static_cast<double>(reading.launches), "1"},
                         {"sm_clock", reading.sm_clock_mhz, "MHz"}};
  record.provenance = provenance;
  return record;
}

std::string table_row(const Record& record) {
  const Measurement& median = measurement(record, "median");
  return fmt::format("| {} | {} | {:.4g} {} | {:.0f} |", label(record, "benchmark"),
                     label(record, "reading"), median.value, median.unit,
                     measurement(record, "sm_clock").value);
}

}  // namespace attest::microbench
