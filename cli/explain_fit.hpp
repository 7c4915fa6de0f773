#pragma once

#include <cstdint>

#include "core/attention/element_type.hpp"

namespace attest {

/// What `attest explain --fit` asks.
struct FitQuestion {
  std::int64_t budget_bytes = 0;
  std::int64_t head_dim = 64;
  ElementType element_type = ElementType::fp16;
};

/// The largest tiles that the budget holds, by every rule of gpu/model/block_size.
void print_fit(const FitQuestion& question);
void print_fit_json(const FitQuestion& question);

}  // namespace attest
