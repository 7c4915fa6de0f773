#pragma once

#include <string>
#include <string_view>

#include "plugin/loader.hpp"

namespace attest {

/// True for `FILE.py:FUNCTION`, `MODULE:FUNCTION` and `LIBRARY.so:FUNCTION` (tvm-ffi), with
/// `@OPERATION` behind it or not.
[[nodiscard]] bool is_python_subject(std::string_view text);

/// The text with the operation that the function is to be judged by, unless it names one or
/// `operation` is empty: then the function's declaration and its parameters say.
[[nodiscard]] std::string for_operation(const std::string& text, const std::string& operation);

/// Registers a function of Python as a kernel, which runs in a Python process of this process
/// (python/attest_kernels/worker.py): what it takes, and how it is called, is found by probes, and
/// said on stderr where `says_how`. Gradients that a framework derives are a kernel of
/// gradient_operation, a backward pass that takes dO is one of backward_operation. Its tensors are
/// contiguous and lie in shared memory; it is judged by the bound of a fused kernel of which no
/// more is known. One that was loaded before is
/// not loaded again. Throws InvalidInput with one line for a function that cannot be used. Not for
/// several threads.
const LoadedPlugin& load_python_subject(const std::string& text, bool says_how);

}  // namespace attest
