#pragma once

namespace attest {

/// From now on Ctrl-C and SIGTERM only set a flag, once: the second one ends the program as usual.
void catch_interrupts();
[[nodiscard]] bool was_interrupted();

}  // namespace attest
