#pragma once

#include <string>

namespace attest {

/// Empty when the cuDNN library could be opened; otherwise one line that says where it was looked
/// for. Opens it on the first call: $ATTEST_CUDNN (a file), then the loader's path, the CUDA
/// toolkit and the site-packages of Python, where PyTorch brings it along.
[[nodiscard]] const std::string& why_no_cudnn();

/// `cuDNN 9.19.0`. Throws MachineError where it is missing.
[[nodiscard]] const std::string& cudnn_version();

}  // namespace attest
