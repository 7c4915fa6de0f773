#pragma once

#include "core/base/error.hpp"

namespace attest {

/// A buffer is larger than the memory that the device has left. Of a case this says that it cannot
/// be judged here, and nothing about the kernel.
class OutOfDeviceMemory : public MachineError {
 public:
  using MachineError::MachineError;
};

}  // namespace attest
