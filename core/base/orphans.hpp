#pragma once

namespace attest {

/// From now on what the children of this process leave behind when they end becomes its own child.
void adopt_orphans();
/// Kills all children of this process, until there are none. How many they were.
int end_children();

}  // namespace attest
