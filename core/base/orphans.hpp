#pragma once

namespace attest {

/// Makes this process adopt, from now on, what its children leave behind when they end.
void adopt_orphans();
/// Kills all children of this process, until there are none. How many they were.
int end_children();

}  // namespace attest
