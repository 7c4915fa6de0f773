#pragma once

#include <filesystem>
#include <vector>

#include "core/attention/mask.hpp"
#include "experiments/errors/error_rows.hpp"

namespace attest {

/// The errors of outputs that somebody else computed: a safetensors file with layers `NAME.q`,
/// `NAME.k`, `NAME.v` (captured_layers.hpp) and for each any number of `NAME.WHO.o` of
/// [batch, query heads, tokens, head_dim], with `NAME.WHO.lse` of [batch, query heads, tokens] or
/// without; where NAME is empty, its dot is too. The exact answer is that of the values of q, k and
/// v as they are in the file, under `mask` and with the scale 1 / sqrt(head_dim); ulp are those of
/// o's type. Metadata `attest.made_by` goes into the records. Throws InvalidInput with one line for
/// a bad file, or one without outputs.
[[nodiscard]] std::vector<ErrorsRow> errors_of_file(const std::filesystem::path& path, Mask mask,
                                                    const ErrorDetail& detail);

}  // namespace attest
