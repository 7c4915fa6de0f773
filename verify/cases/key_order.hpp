#pragma once

#include <string_view>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"

namespace attest {

/// Order in which a kernel meets the keys of a head. The exact answer does not depend on it, but
/// what is rescaled and how sums grow does.
enum class KeyOrder {
  drawn,     ///< as the input family made them
  reversed,  ///< the last first
  rising,    ///< by the mean score that the queries of their head give them, the lowest first
  falling    ///< the highest first
};
[[nodiscard]] std::string_view name_of(KeyOrder order);
/// Order of a name. Throws InvalidInput listing the names.
[[nodiscard]] KeyOrder key_order_from_name(std::string_view name);

/// Throws InvalidInput where rows see different keys (a mask, lengths, padding): then an order
/// other than `drawn` would change the answer.
void require_same_answer(const Problem& problem, KeyOrder order);

/// `inputs` with the keys of every head, and the values that belong to them, in another order.
/// Throws as above.
[[nodiscard]] Inputs with_key_order(const Problem& problem, const Inputs& inputs, KeyOrder order);

}  // namespace attest
