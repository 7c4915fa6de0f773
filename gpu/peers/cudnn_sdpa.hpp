#pragma once

#include <memory>
#include <string>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {
/// One plan of cuDNN's scaled dot product attention, built for a problem and the strides of its
/// tensors. Nothing of cuDNN shows through: its headers cost half a minute to compile.
class CudnnSdpaPlan {
 public:
  /// Plans of the calling host thread, whose device it is. Throws KernelError with cuDNN's own
  /// words when it has no plan, MachineError when the library cannot be used.
  [[nodiscard]] static CudnnSdpaPlan& of(const ForwardArguments& arguments);

  virtual ~CudnnSdpaPlan() = default;
  /// Enqueues O and LSE in `stream` (a cudaStream_t). Throws KernelError.
  virtual void run(const ForwardArguments& arguments, void* stream) = 0;
};

/// One line why the cuDNN library could not be opened and where it was looked for; empty when it
/// could. Opens it on the first call: $ATTEST_CUDNN (a file), then the loader's path, the CUDA
/// toolkit and the site-packages of Python, where PyTorch brings it along.
[[nodiscard]] const std::string& why_no_cudnn();

/// `cuDNN 9.19.0`. Throws MachineError where it is missing.
[[nodiscard]] const std::string& cudnn_version();

}  // namespace attest
