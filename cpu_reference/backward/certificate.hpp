#pragma once

#include <cstdint>
#include <functional>

#include "core/attention/problem.hpp"
#include "core/attention/tensor_list.hpp"
#include "cpu_reference/answer.hpp"
#include "cpu_reference/backward/oracle.hpp"
#include "cpu_reference/forward/oracle.hpp"

namespace attest {

/// LSE and delta of a query head's row, in 113 bits.
using OracleRowOf =
    std::function<SavedRow<Quad>(std::int64_t b, std::int64_t h, std::int64_t query)>;

/// Recomputes `rows` rows of dQ, and `with_keys` a key of dK and dV with each, drawn by the seed;
/// dsink of the first row's head, where there are sinks, and its dbias, where there is a bias.
/// `inputs` in the order of backward_operation, but for O and LSE, which `row_of` stands for.
[[nodiscard]] Certificate certify_gradients(const Problem& problem, const Inputs& inputs,
                                            const Answer& answer, std::uint64_t seed, int rows,
                                            const OracleRowOf& row_of, bool with_keys = true);

}  // namespace attest
