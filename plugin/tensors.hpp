#pragma once

#include <array>
#include <cstddef>

#include "core/run/arguments.hpp"
#include "include/attest/plugin.h"

namespace attest {

/// The tensors of one launch as plugin.h lists them: those of the operation, then the arrays that
/// say how they are packed and what padding hides. AttestRun points into it.
class PluginTensors {
 public:
  explicit PluginTensors(const Arguments& arguments);
  PluginTensors(const PluginTensors&) = delete;
  PluginTensors& operator=(const PluginTensors&) = delete;

  [[nodiscard]] const AttestTensor* const* data() const { return pointers_.data(); }
  [[nodiscard]] std::size_t size() const { return count_; }

 private:
  void add(const AttestTensor& tensor);

  static constexpr std::size_t most_indices = 3;
  std::array<AttestTensor, 2 * most_tensors + most_indices> tensors_{};
  std::array<const AttestTensor*, 2 * most_tensors + most_indices> pointers_{};
  std::size_t count_ = 0;
};

}  // namespace attest
