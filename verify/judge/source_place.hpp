#pragma once

#include <optional>
#include <string>

namespace attest {

/// A line of source.
struct SourcePlace {
  std::string file{};
  int line = 1;  ///< from 1 on
};

/// The place that a sentence of the executor names first, the one where it saw the defect: `... at
/// gpu/kernels/k1_naive.cu:57, ...`. Nothing in other sentences.
[[nodiscard]] std::optional<SourcePlace> source_place_in(const std::string& sentence);

}  // namespace attest
