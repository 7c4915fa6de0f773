#pragma once

#include <string_view>

namespace attest {

/// The text of gpu/kernels/tuned_plans.json as it was at build time.
[[nodiscard]] std::string_view embedded_tuning_text();

}  // namespace attest
