#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/json.hpp"
#include "verify/workers/case_runner.hpp"

namespace attest {

/// What a worker loads before its first case: what its parent has loaded.
struct WorkerSetup {
  std::vector<std::string> plugins{};  ///< shared objects that register kernels
  std::string inputs_file{};           ///< the user's activations; empty: none
};

/// Messages between the campaign and its workers, one JSON object a line. NaN and infinities
/// travel as strings. Readers throw std::runtime_error for anything else: a kernel may have written
/// into the channel.
[[nodiscard]] std::string encode(const WorkerSetup& setup);
[[nodiscard]] std::string encode(const CaseTask& task);
[[nodiscard]] std::string encode(const CaseAnswer& answer);
[[nodiscard]] WorkerSetup setup_from_line(std::string_view line);
[[nodiscard]] CaseTask task_from_line(std::string_view line);
[[nodiscard]] CaseAnswer answer_from_line(std::string_view line);

/// Why a worker could not judge, when that is not the kernel's doing.
struct WorkerError {
  enum class Kind { machine, input, internal } kind = Kind::internal;
  std::string text;
};
[[nodiscard]] std::string encode(const WorkerError& error);
/// Nothing if the line is another message. Throws like the other readers.
[[nodiscard]] std::optional<WorkerError> error_from_line(std::string_view line);
/// Throws what the worker caught: MachineError, InvalidInput or std::logic_error.
void rethrow(const WorkerError& error);

/// A failure as it stands in messages and in the state of a campaign.
[[nodiscard]] Json failure_json(const Failure& failure);
[[nodiscard]] Failure failure_from_json(const Json& json);
/// By name of the output.
[[nodiscard]] Json worst_json(const WorstOverBound& worst);
[[nodiscard]] WorstOverBound worst_from_json(const Json& json);

}  // namespace attest
