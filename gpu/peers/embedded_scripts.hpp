#pragma once

#include <string_view>

namespace attest {

/// Source text of the Python files as it was at build time: the binary needs no file beside it.
[[nodiscard]] std::string_view torch_worker_script();
[[nodiscard]] std::string_view triton_flash_script();
[[nodiscard]] std::string_view torch_decode_script();
[[nodiscard]] std::string_view torch_backward_script();

}  // namespace attest
