#pragma once

#include <cstdint>
#include <string>

#include "core/attention/element_type.hpp"
#include "core/base/json.hpp"

namespace attest {

/// Question of `attest explain --fit`.
struct FitQuestion {
  std::int64_t budget_bytes = 0;
  std::int64_t head_dim = 64;
  ElementType element_type = ElementType::fp16;
};

/// The largest tiles that the budget holds, by every rule of gpu/model/block_size: as a table, and
/// as a JSON object.
[[nodiscard]] std::string largest_tiles_text(const FitQuestion& question);
[[nodiscard]] Json largest_tiles_json(const FitQuestion& question);

}  // namespace attest
