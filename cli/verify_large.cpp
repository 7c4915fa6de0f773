#include <fmt/format.h>

#include <chrono>

#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "core/base/counted.hpp"
#include "core/base/progress.hpp"
#include "core/records/record.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/counterexample.hpp"

namespace attest {
namespace {

Record record_of(const LargeResult& result, const LargeOptions& options) {
  Record record;
  record.kind = "verify_large";
  record.verdict = result.failure ? "failed" : result.cases == 0 ? "unsupported" : "passed";
  record.labels = {{"kernel", result.kernel->name},
                   {"executor", std::string(name_of(result.kernel->executor))},
                   {"seed", std::to_string(options.seed)}};
  if (!result.left_out.empty()) record.labels["left_out"] = result.left_out;
  record.measurements = {
      {"cases", static_cast<double>(result.cases), "1"},
      {"longest", static_cast<double>(result.longest), "1"},
      {"rows", static_cast<double>(result.rows), "1"},
      {"checked_rows", static_cast<double>(result.checked_rows), "1"},
      {"certified_reference_rows", static_cast<double>(result.certified_rows), "1"}};
  for (const TensorSpec& output : result.kernel->operation->outputs()) {
    record.measurements.push_back({fmt::format("worst_{}_error_over_bound", output.name),
                                   result.worst_over_bound.of(output.name), "1"});
  }
  if (result.failure) {
    record.subject = result.failure->the_case;
    record.labels["law"] = result.failure->law;
    record.labels["what"] = result.failure->check.detail;
  }
  record.provenance = current_provenance(make_device(result.kernel->executor)->description());
  return record;
}

}  // namespace

ExitCode verify_large(const std::vector<const KernelInfo*>& kernels, LargeOptions options,
                      const std::filesystem::path& out, const std::string& inputs_file) {
  RecordWriter records(out / "verify.jsonl");
  const auto start = std::chrono::steady_clock::now();
  std::vector<LargeResult> results;
  {
    Progress progress({.label = "long sequences", .unit = "case"});
    options.on_case_done = [&] { progress.advance(); };
    results = run_large(kernels, options);
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  bool passed = true;
  Trouble trouble;
  std::int64_t cases = 0;
  fmt::print("{:<28} {:<5} {:>6} {:>8} {:>9} {:>9}", "kernel", "on", "cases", "longest", "rows",
             "checked");
  for (const TensorSpec& output : forward_operation.outputs()) {
    fmt::print(" {:>9}", fmt::format("{}/bound", output.label));
  }
  fmt::print("  verdict\n");
  for (const LargeResult& result : results) {
    trouble.tries([&] { records.write(record_of(result, options)); });
    cases += result.cases;
    passed = passed && !result.failure;
    fmt::print("{:<28} {:<5} {:>6} {:>8} {:>9} {:>9}", result.kernel->name,
               name_of(result.kernel->executor), result.cases, result.longest, result.rows,
               result.checked_rows);
    for (const TensorSpec& output : forward_operation.outputs()) {
      fmt::print(" {:>9.3f}", result.worst_over_bound.of(output.name));
    }
    fmt::print("  {}\n", result.failure            ? as_bad("failed")
                         : result.left_out.empty() ? as_good("passed")
                                                   : "left out: " + result.left_out);
  }
  for (const LargeResult& result : results) {
    if (!result.failure) continue;
    fmt::print("\n{}, shrunk:\n{}", as_bad("FAILED"), describe(*result.failure, *result.kernel));
    std::filesystem::path path;
    const bool is_kept = trouble.tries([&] {
      path = write_counterexample(out / "counterexamples", *result.failure, result.kernel->executor,
                                  inputs_file);
    });
    if (is_kept) fmt::print("{}", replay_line(path));
  }
  trouble.tell();
  fmt::print("\n{} in {}\nrecords appended to {}\n", counted(cases, "case"),
             format_duration(seconds), records.path().string());
  // Nothing checked is nothing proven.
  if (cases == 0)
    throw InvalidInput("--large: no kernel of --kernel is fast enough on this machine");
  fmt::print("{}\n", passed ? as_good("PASSED") : as_bad("FAILED"));
  return passed ? ExitCode::passed : ExitCode::verdict_failed;
}

}  // namespace attest
