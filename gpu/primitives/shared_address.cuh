#pragma once

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Where something lies in shared memory, in the form that its instructions take: 32 bits on the
/// GPU, half of the registers and of the arithmetic of a pointer.
class SharedAddress {
 public:
#ifdef __CUDACC__
  __device__ SharedAddress(const void* pointer)
      : value_(static_cast<unsigned>(__cvta_generic_to_shared(pointer))) {}
#else
  SharedAddress(const void* pointer) : value_(static_cast<const char*>(pointer)) {}
#endif

  __device__ SharedAddress operator+(int bytes) const {
    SharedAddress sum = *this;
    sum.value_ += bytes;
    return sum;
  }
#ifdef __CUDACC__
  __device__ unsigned value() const {
    return value_;
  }

 private:
  unsigned value_;
#else
  void* value() const {
    return const_cast<char*>(value_);
  }

 private:
  const char* value_;
#endif
};

}  // namespace attest
