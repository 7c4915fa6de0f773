#pragma once

#include <memory>

#include "core/operations/forward_arguments.hpp"
#include "core/run/kernel.hpp"

namespace attest {

/// One plan of cuDNN's scaled dot product attention, built for a problem and the strides of its
/// tensors. Nothing of cuDNN shows through: its headers cost 20 s to compile and stay in one file.
class CudnnSdpaPlan {
 public:
  /// Plans of the calling host thread, whose device it is. Throws KernelError with cuDNN's own
  /// words when it has no plan, MachineError when the library cannot be used.
  [[nodiscard]] static CudnnSdpaPlan& of(const ForwardArguments& arguments);

  virtual ~CudnnSdpaPlan() = default;
  /// Enqueues O and LSE in `stream` (a cudaStream_t). Throws KernelError.
  virtual void run(const ForwardArguments& arguments, void* stream) = 0;
};

}  // namespace attest
