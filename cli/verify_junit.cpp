#include <fmt/format.h>
#include <fmt/ranges.h>

#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "cli/junit.hpp"
#include "cli/verify.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {
namespace {

Layer layer_of(const Failure& failure) {
  const Law* const law = find_law(failure.law);
  return law == nullptr ? Layer::exact : law->layer;  // the process ended before any law
}

JunitEnding ending_of(const Failure& failure, const KernelResult& result,
                      const Counterexamples& kept) {
  const bool is_error = failure.kind != Verdict::failed;  // crashed or timed out
  const std::string kind(name_of(failure.kind));
  return {.tag = is_error ? "error" : "failure",
          .type = is_error ? kind : failure.law,
          .message = is_error ? fmt::format("{} under {}", kind, failure.law)
                              : fmt::format("{}: {}", failure.law, failure.check.detail),
          .text = describe(failure, *result.kernel) + replay_of(failure, kept)};
}

JunitEnding skipped(std::string why) {
  return {.tag = "skipped", .message = std::move(why)};
}

/// A layer of a kernel's laws.
JunitEnding ending_of(Layer layer, const KernelResult& result, const Counterexamples& kept) {
  if (result.failure && layer_of(*result.failure) == layer) {
    return ending_of(*result.failure, result, kept);
  }
  if (result.verdict() == Verdict::inconclusive) {
    constexpr bool names_claims = false;
    return skipped(fmt::format("{}", fmt::join(shortfalls_of(result, names_claims), "; ")));
  }
  if (result.checks_of(layer) > 0) return {};
  return skipped(result.failure ? "not asked before another layer failed"
                                : "no law of this layer was asked");
}

std::vector<JunitCase> test_cases_of(const KernelResult& result, const Counterexamples& kept) {
  if (result.kernel->role != KernelRole::kernel) {  // is wrong by design
    if (result.is_as_expected()) return {{"killed", {}}};
    return {
        {"killed", {.tag = "failure", .type = "not killed", .message = "it must be, and was not"}}};
  }
  std::vector<JunitCase> cases;
  for (const Layer layer : {Layer::exact, Layer::bound, Layer::statistics}) {
    cases.push_back({std::string(name_of(layer)), ending_of(layer, result, kept)});
  }
  return cases;
}

JunitSuite suite_of(const KernelResult& result, const VerifyOptions& options,
                    const Counterexamples& kept) {
  return {.name = fmt::format("{} on {}", result.kernel->name, name_of(result.kernel->executor)),
          .seconds = std::accumulate(result.seconds.begin(), result.seconds.end(), 0.0),
          .properties = {{"seed", std::to_string(options.campaign.seed)},
                         {"cases", std::to_string(result.cases)},
                         {"commit", current_provenance("").commit}},
          .cases = test_cases_of(result, kept)};
}

}  // namespace

void write_junit(const std::vector<KernelResult>& results, const VerifyOptions& options,
                 const Counterexamples& kept) {
  std::vector<JunitSuite> suites;
  for (const KernelResult& result : results) suites.push_back(suite_of(result, options, kept));
  write_junit_file(options.junit, "attest verify", suites);
}

}  // namespace attest
