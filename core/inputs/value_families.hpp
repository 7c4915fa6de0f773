#pragma once

#include "core/attention/tensor_list.hpp"
#include "core/records/case.hpp"

// Input families whose point is V; Q and K are N(0, 1). V differs between KV heads in all of them,
// or an error of the index map would not show.
namespace attest {

/// One number for all keys of a head.
[[nodiscard]] Inputs constant_v(const Problem& problem, const InputSpec& spec);
/// 1 in one column, which moves with the key; another power of two for every head.
[[nodiscard]] Inputs one_hot_v(const Problem& problem, const InputSpec& spec);
/// Near `magnitude`.
[[nodiscard]] Inputs positive_v(const Problem& problem, const InputSpec& spec);
/// The number of the key, moved by a quarter for every head.
[[nodiscard]] Inputs key_index_v(const Problem& problem, const InputSpec& spec);
/// +magnitude for even keys and -magnitude for odd ones, halved from head to head.
[[nodiscard]] Inputs alternating_v(const Problem& problem, const InputSpec& spec);
/// N(0, 1) times a power of two of the head's own.
[[nodiscard]] Inputs scaled_v(const Problem& problem, const InputSpec& spec);

}  // namespace attest
