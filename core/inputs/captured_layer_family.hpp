#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/inputs/captured_layers.hpp"
#include "core/inputs/input_family.hpp"

namespace attest {

/// A family that fills Q, K and V with the first rows of one captured layer, every head in its
/// place, bit for bit: what `NAME` of a report about a layer means. InputSpec::seed and ::magnitude
/// have no effect. Problems need the captured batch, heads and head_dim, and as many queries as
/// keys of those that were captured, or all of both.
[[nodiscard]] InputFamily captured_layer_family(CapturedLayer layer, std::string name);

/// Adds one for each layer that is shipped with the program and, if `file` is not empty, for each
/// of the user's; named after the layer, or `layer` if it has no name. Returns their names. Throws
/// InvalidInput when the file is bad or a name is taken.
std::vector<std::string> add_captured_layer_families(const std::filesystem::path& file);

}  // namespace attest
