#pragma once

#include "verify/judge/run.hpp"

namespace attest {

/// The case with one key that all queries of an entry see, Problem's scale 1 and no softcap, in
/// contiguous layouts as far as the kernel takes them: O is then the value, and LSE q.k. The Plan
/// stays.
[[nodiscard]] Case with_one_key(const Run& run);

}  // namespace attest
