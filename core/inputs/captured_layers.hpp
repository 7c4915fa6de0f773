#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/attention/tensor.hpp"
#include "core/inputs/embedded_data.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/safetensors.hpp"

namespace attest {
/// Q, K and V that one attention layer of a real model received.
/// q [batch, query_heads, query_len, head_dim], k and v [batch, kv_heads, key_len, head_dim];
/// all values finite, no extent 0, kv_heads divides query_heads.
struct CapturedLayer {
  std::string name;  ///< of the tensors without `.q`; empty for plain `q`, `k`, `v`
  Tensor<float> q, k, v;
};

/// The layers of a file, sorted by name; at least one. A layer is three tensors `q`, `k`, `v` or
/// `NAME.q`, `NAME.k`, `NAME.v`, each [batch, heads, tokens, head_dim] or [tokens, heads,
/// head_dim]; a file whose metadata has `attest.layout` = `HND` means [heads, tokens, head_dim] by
/// three dimensions. Other tensors are ignored. Throws InvalidInput with one line for a missing
/// tensor, shapes that do not belong together, and values that are NaN or infinite.
[[nodiscard]] std::vector<CapturedLayer> captured_layers(const Safetensors& file);

/// The layers of a file that the program carries.
[[nodiscard]] std::vector<CapturedLayer> embedded_layers(const EmbeddedCapture& capture);

/// Head dims of the layers, sorted, each once.
[[nodiscard]] std::vector<std::int64_t> captured_head_dims(
    const std::vector<CapturedLayer>& layers);

/// Captured row of a problem's first query, given the captured row of its first key: queries stand
/// at the tokens where the mask puts them, at the last of the keys if there is none. The last
/// captured query and key are one token; where a token's query was not captured, the nearest is
/// taken. The problem has at most the captured queries.
[[nodiscard]] std::int64_t first_query_row(const Problem& problem, std::int64_t key_begin,
                                           const CapturedLayer& layer);

/// A family that fills K and V with the first rows of one captured layer and Q with the rows that
/// first_query_row says, every head in its place, bit for bit: what `NAME` of a report about a
/// layer means. A problem of one query is a step of decoding: it gets the query of its last key.
/// InputSpec::seed and ::magnitude have no effect. Problems need the captured batch, heads and
/// head_dim, and at most the captured rows.
[[nodiscard]] InputFamily captured_layer_family(CapturedLayer layer, std::string name);

/// Adds one for each layer that is shipped with the program and, if `file` is not empty, for each
/// of the user's; named after the layer, or `layer` if it has no name. Returns their names. Throws
/// InvalidInput when the file is bad or a name is taken.
std::vector<std::string> add_captured_layer_families(const std::filesystem::path& file);

}  // namespace attest
