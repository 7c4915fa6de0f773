#pragma once

#include <array>
#include <cstdint>

#include "core/attention/layout.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"

namespace attest {

/// More tensors than any operation has.
inline constexpr std::size_t most_tensors = 16;

/// A tensor that a launch reads.
struct InputArgument {
  const void* data = nullptr;  ///< element (0, 0, 0, 0); of the format that the operation says
  Strides strides;             ///< in elements, of the stored tensor (core/attention/storage.hpp)
};

/// A tensor that a launch writes.
struct OutputArgument {
  void* data = nullptr;  ///< null: the kernel does not give it
  Strides strides;
};

/// What a launch receives: addresses on its device, a tensor by its number in the operation.
struct Arguments {
  Problem problem;
  Plan plan;
  std::array<InputArgument, most_tensors> inputs;
  std::array<OutputArgument, most_tensors> outputs;
  void* workspace = nullptr;                   ///< workspace_bytes() of memory holding NaN
  const std::int32_t* query_starts = nullptr;  ///< [batch + 1], cu_seqlens; null without lengths
  const std::int32_t* key_starts = nullptr;    ///< the same of tensors whose rows are keys
  const std::uint8_t* key_mask =
      nullptr;  ///< [batch, key_len], 1: not hidden; null without padding

  [[nodiscard]] InputArgument& operator[](InputIndex index) { return inputs.at(index.number); }
  [[nodiscard]] OutputArgument& operator[](OutputIndex index) { return outputs.at(index.number); }
  [[nodiscard]] const InputArgument& operator[](InputIndex index) const {
    return inputs.at(index.number);
  }
  [[nodiscard]] const OutputArgument& operator[](OutputIndex index) const {
    return outputs.at(index.number);
  }
};

}  // namespace attest
