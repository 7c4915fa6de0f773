#pragma once

#include <string>
#include <string_view>

namespace attest {

/// A kernel that calls a library of others says at each launch who computed, for the records of
/// what is timed: `cuDNN 9.19.0`, `PyTorch 2.11.0 ran flash_fwd_kernel`. Kept for the calling
/// thread.
void note_library(std::string_view note);

/// The thread's last note; empty: none since it was taken.
[[nodiscard]] std::string take_library_note();

}  // namespace attest
