#pragma once

namespace attest {

/// Address of a kernel with 640 bytes of static shared memory.
[[nodiscard]] const void* with_static_shared_memory_address();
/// Address of a kernel whose threads index an array of 200 numbers by a value that the compiler
/// cannot know: it stays on the stack.
[[nodiscard]] const void* with_stack_address();

}  // namespace attest
