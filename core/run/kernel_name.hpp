#pragma once

#include <string>
#include <string_view>

namespace attest {

/// Name of a CUDA kernel that does not depend on who compiled it, from a demangled symbol: without
/// result, parameters and namespaces, template arguments kept but for the Executor. `void
/// attest::(anonymous namespace)::f<(int)2, attest::X>(attest::Arguments)` becomes `f<2, X>`; text
/// that is no such symbol comes back with the same rules applied. The executor's
/// `SixteenBitFloat<..>` is `__half` or
/// `__nv_bfloat16`, as nvcc says.
[[nodiscard]] std::string kernel_name_of(std::string_view demangled);

}  // namespace attest
