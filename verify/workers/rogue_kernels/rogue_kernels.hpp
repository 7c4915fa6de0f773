#pragma once

namespace attest {

/// Registers the kernels `rogue/...`: correct until a problem has more than `rogue_from` query
/// rows. Those that crash when they are asked do so only in a worker.
void add_rogue_kernels(bool is_worker);
inline constexpr int rogue_from = 3;

}  // namespace attest
