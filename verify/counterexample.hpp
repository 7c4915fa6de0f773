#pragma once

#include <filesystem>
#include <string>

#include "core/case.hpp"
#include "core/device.hpp"
#include "verify/verdict.hpp"

namespace attest {

/// A failing case as a file: all that `attest replay` needs, with the evidence for the reader.
struct Counterexample {
  std::string law;
  Executor executor = Executor::cpu;
  std::string inputs_file;  ///< of --inputs, when the family comes from there; otherwise empty
  Case the_case;
};

/// Writes <folder>/<key>.json, whole or not at all, and returns its path. Throws MachineError with
/// the path.
std::filesystem::path write_counterexample(const std::filesystem::path& folder,
                                           const Failure& failure, Executor executor,
                                           const std::string& inputs_file);

/// Strict: throws InvalidInput naming the file, the key and what is allowed; MachineError if it
/// cannot be read.
[[nodiscard]] Counterexample read_counterexample(const std::filesystem::path& path);

}  // namespace attest
