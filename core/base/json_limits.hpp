#pragma once

#include <string_view>

namespace attest {

/// Throws InvalidInput when brackets of a JSON text are nested more than 64 deep: no file of ours
/// needs that, and printing or copying a value recurses once a level. `where` is named.
void require_shallow_json(std::string_view text, std::string_view where);

/// Throws InvalidInput when an object of a JSON text, at any depth, has a key twice: which of the
/// values is meant nobody can know. Text that is no JSON passes: whoever parses it complains. Call
/// after require_shallow_json.
void require_distinct_keys(std::string_view text, std::string_view where);

}  // namespace attest
