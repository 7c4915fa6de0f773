#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/attention/plan.hpp"
#include "core/attention/problem.hpp"
#include "core/operations/backward_arguments.hpp"
#include "core/operations/quantised_arguments.hpp"

namespace attest {

/// A tensor or an array of integers as another process is told of it.
struct PeerTensor {
  std::string name;  ///< of torch_worker.py's requests
  const void* first = nullptr;
  std::vector<std::int64_t> shape, strides;  ///< in elements
  /// Element type of this tensor; nothing: the problem's, or what the name says.
  std::optional<ElementType> type = std::nullopt;
};

/// A launch as another process is told of it: whatever the operation, tensors by their names.
struct PeerCall {
  Problem problem;
  Plan plan;
  std::vector<PeerTensor> tensors{};
  std::int64_t most_queries = 0, most_keys = 0;  ///< of one entry, where entries are packed; or 0
};

[[nodiscard]] PeerCall call_of(const ForwardArguments& arguments);
/// Scales are "q_scale", "k_scale" and "v_scale", those that there are.
[[nodiscard]] PeerCall call_of(const QuantisedArguments& arguments);
/// Dense tensors alone.
[[nodiscard]] PeerCall call_of(const BackwardArguments& arguments);

}  // namespace attest
