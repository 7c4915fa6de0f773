#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/inputs/captured_layers.hpp"
#include "core/inputs/input_family.hpp"

namespace attest {

/// A family that fills Q, K and V with windows of captured ones, bit for bit. InputSpec::seed draws
/// the layer and, for each batch entry and key head of the problem, a captured batch entry, a
/// captured key head and a window of its keys; a quarter of the windows begin at the first token,
/// where decoders keep their attention sink. The query heads of that key head take captured query
/// heads that belong to it. Under a causal mask they take the rows at the tokens that the mask puts
/// them at, as far as those were captured (first_query_row); with no mask, or where a query head
/// has to repeat, any window. InputSpec::magnitude has no effect. Problems need a captured head_dim
/// and at most the captured rows. The logits are the model's own at the default scale. `layers` is
/// not empty.
[[nodiscard]] InputFamily captured_family(std::vector<CapturedLayer> layers, std::string name,
                                          std::string summary);

/// Adds the family `family_name` made from a user's file, see captured_layers. Throws InvalidInput
/// when the file is bad or the name is taken.
void add_captured_inputs(const std::filesystem::path& file, std::string family_name);

/// Adds the families `real`, `real_outliers` and `real_audio`, made from the files of data/ that
/// every binary carries inside (embedded_captures).
void add_real_inputs();

}  // namespace attest
