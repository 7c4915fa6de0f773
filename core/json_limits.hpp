#pragma once

#include <string_view>

namespace attest {

/// Throws InvalidInput when brackets of a JSON text are nested more than 64 deep: no file of ours
/// needs that, and printing or copying a value recurses once a level. `where` is named.
void require_shallow_json(std::string_view text, std::string_view where);

}  // namespace attest
