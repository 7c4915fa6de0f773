#pragma once

#include <filesystem>
#include <memory>

#include "verify/counterexample.hpp"
#include "verify/isolated_runner.hpp"

namespace attest {

/// A counterexample and the kernel it is about.
struct Subject {
  Counterexample example;
  const KernelInfo* kernel = nullptr;

  /// The question that failed then.
  [[nodiscard]] CaseTask task() const;
};

/// Throws InvalidInput naming the file if it, its kernel or its law is not known.
[[nodiscard]] Subject read_subject(const std::filesystem::path& path);
[[nodiscard]] std::unique_ptr<CaseRunner> runner_for(const Isolation& isolation, bool in_process);
void print_not_reproduced(const Subject& subject, const CaseVerdict& verdict);

}  // namespace attest
