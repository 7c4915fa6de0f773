#include <utility>

#include "cli/output.hpp"
#include "cli/verify.hpp"
#include "verify/campaign/counterexample.hpp"

namespace attest {

Counterexamples keep_counterexamples(const std::vector<KernelResult>& results,
                                     const VerifyOptions& options, Trouble& trouble) {
  Counterexamples kept;
  const auto keep = [&](const Failure& failure, Executor executor) {
    trouble.tries([&] {
      kept[&failure] = write_counterexample(options.out / "counterexamples", failure, executor,
                                            options.inputs_file);
    });
  };
  for (const KernelResult& result : results) {
    if (result.failure) keep(*result.failure, result.kernel->executor);
    for (const auto& [id, same] : result.known) keep(same.failure, result.kernel->executor);
  }
  return kept;
}

std::string replay_of(const Failure& failure, const Counterexamples& kept) {
  const auto at = kept.find(&failure);
  return at == kept.end() ? "" : replay_line(at->second);
}

}  // namespace attest
