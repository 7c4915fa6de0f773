#pragma once

#include <filesystem>
#include <string>
#include <string_view>

#include "core/records/case.hpp"
#include "core/run/device.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {

/// A failing case as a file: all that `attest replay` needs, with the evidence for the reader.
struct Counterexample {
  std::string law;
  Executor executor = Executor::cpu;
  std::string inputs_file;  ///< of --inputs, when the family comes from there; otherwise empty
  Case the_case;
  Verdict kind = Verdict::failed;  ///< or crashed, timed_out: `law` was being checked, or is `*`
  std::string plugin{};  ///< shared object that the kernel came from; empty: one of our own
};

/// Writes <folder>/<key>.json, whole or not at all, and returns its path. Throws MachineError with
/// the path.
std::filesystem::path write_counterexample(const std::filesystem::path& folder,
                                           const Failure& failure, Executor executor,
                                           const std::string& inputs_file);

/// Reads a counterexample's file. Strict: throws InvalidInput naming the file, the key and what is
/// allowed; MachineError if it cannot be read.
[[nodiscard]] Counterexample read_counterexample(const std::filesystem::path& path);
/// Reads the text of a counterexample's file; `where` is named in messages.
[[nodiscard]] Counterexample counterexample_from_json(std::string_view text,
                                                      const std::string& where);

}  // namespace attest
