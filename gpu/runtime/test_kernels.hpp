#pragma once

#include <cstddef>

#include "core/run/device.hpp"

namespace attest {
/// Address of a kernel with 640 bytes of static shared memory.
[[nodiscard]] const void* with_static_shared_memory_address();
/// Address of a kernel whose threads index an array of 200 numbers by a value that the compiler
/// cannot know: it stays on the stack.
[[nodiscard]] const void* with_stack_address();

/// One thread touches the last of `bytes` of dynamic shared memory. Returns without waiting.
void launch_touch_shared(std::size_t bytes, Device& device);

/// Each block copies `words` words of shared memory that it never wrote to to[block * words].
void launch_copy_unwritten_shared(unsigned* to, int blocks, int words, Device& device);

}  // namespace attest
