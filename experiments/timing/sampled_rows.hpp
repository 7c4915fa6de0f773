#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/tensor_list.hpp"
#include "cpu_reference/answer.hpp"
#include "experiments/timing/resident_problem.hpp"

namespace attest {

/// Some rows of what a launch gave, beside their exact answers.
struct SampledRows {
  struct Row {
    Rows kind = Rows::queries;
    Shape at{};  ///< batch, head, and query or key
    Answer answer{};
    Outputs got{};  ///< those outputs that have rows of this kind and that the kernel gives
  };
  std::vector<Row> rows;
  std::string failure{};  ///< a sentence: the launch failed, or some LSE was not written; no rows
  const Operation* operation = &forward_operation;

  /// The failure, or the row that is out of its bounds; nothing when all is well.
  [[nodiscard]] std::optional<std::string> why_wrong() const;
};

/// Launches once on poisoned outputs and samples what the launch gave. A MachineError names kernel,
/// Plan and problem.
[[nodiscard]] SampledRows launch_and_sample(ResidentProblem& resident, const KernelInfo& kernel,
                                            const Plan& plan, std::int64_t rows = 4);
/// Samples the outputs of the last launches: looks at every LSE and at `rows` rows of each kind
/// that outputs have, the first and the last query or key among them; of a quantiser at that many
/// heads (sampled_heads.hpp), of a choice of keys at that many lists (sampled_lists.hpp).
[[nodiscard]] SampledRows sample_rows(ResidentProblem& resident, const KernelInfo& kernel,
                                      const Plan& plan, std::int64_t rows);
/// True if a reference on the device finds the worst element of all in some tenths of a second: it
/// covers the kernel's roundings, and the problem is small enough.
[[nodiscard]] bool compares_every_row(const ResidentProblem& resident, const KernelInfo& kernel,
                                      const Plan& plan);
/// The worst element of all that launches gave, where it is out of its bound. Only where
/// compares_every_row().
[[nodiscard]] std::optional<std::string> why_any_row_wrong(ResidentProblem& resident,
                                                           const KernelInfo& kernel,
                                                           const Plan& plan);

/// Launches once on poisoned outputs: what is wrong with four rows, or, where a GPU compares few of
/// them, with any.
[[nodiscard]] std::optional<std::string> why_launch_wrong(ResidentProblem& resident,
                                                          const KernelInfo& kernel,
                                                          const Plan& plan);

}  // namespace attest
