#pragma once

namespace attest {

/// Registers the kernels `rogue/...`: correct until a problem has more than `rogue_from` query
/// rows.
void add_rogue_kernels();
inline constexpr int rogue_from = 3;

}  // namespace attest
