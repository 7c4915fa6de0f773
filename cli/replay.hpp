#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "cli/verify.hpp"
#include "verify/campaign/counterexample.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
/// A counterexample and the kernel it is about.
struct Subject {
  Counterexample example;
  const KernelInfo* kernel = nullptr;

  /// The question that failed then.
  [[nodiscard]] CaseTask task() const;
};

/// Loads the plugins given and, if its kernel is not there then, the one that the file names;
/// returns what a worker must load. Throws InvalidInput for a bad file and for whatever is wrong
/// with one.
[[nodiscard]] std::vector<std::string> load_plugins_for(const std::filesystem::path& counterexample,
                                                        std::vector<std::string> given);
/// Reads a counterexample and finds its kernel and law. Throws InvalidInput naming the file if it,
/// its kernel or its law is not known.
[[nodiscard]] Subject read_subject(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<CaseRunner> runner_for(const Isolation& isolation, bool in_process);
void print_not_reproduced(const Subject& subject, const CaseVerdict& verdict);

/// Shrinks the counterexample that `options.minimize` names until no simpler case fails, and writes
/// the result beside the others. Exit code 1: it still fails (and is smaller, if it says so); 0: it
/// does not fail any more.
[[nodiscard]] ExitCode minimize(VerifyOptions options);

}  // namespace attest
