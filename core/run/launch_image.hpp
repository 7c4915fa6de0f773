#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "core/attention/storage.hpp"
#include "core/run/arguments.hpp"
#include "core/run/index_arrays.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// Arguments of a launch, and how its tensors are stored. Whose memory that is says
/// who builds one: a Session has guards and poison around every tensor, a ResidentProblem
/// (experiments/timing) has neither.
struct LaunchImage {
  /// `entry_gap` rows of nobody lie behind every packed entry.
  LaunchImage(const Problem& problem, const Paging& paging, std::int64_t entry_gap = 0);

  Arguments arguments;
  IndexArrays indices;
  std::vector<Storage> inputs, outputs;  ///< by number in the operation

  /// Asks `place` for every input that has memory of its own; one that lies in another's columns
  /// has that one's address and strides, one that the problem lacks has none.
  void place_inputs(const std::function<InputArgument(InputIndex)>& place);
  void place_outputs(const std::function<OutputArgument(OutputIndex)>& place);
  /// Shape of a tensor as it is stored: [entries or 1 or pages, heads, rows, columns].
  [[nodiscard]] Shape stored_shape(InputIndex index) const;
  [[nodiscard]] Shape stored_shape(OutputIndex index) const;
};

/// Memory that a launch needs beside its tensors, in bytes.
struct ExtraMemory {
  std::size_t workspace = 0, counters = 0;
};
[[nodiscard]] ExtraMemory extra_memory(const KernelInfo& kernel, const Problem& problem,
                                       const Plan& plan);

}  // namespace attest
