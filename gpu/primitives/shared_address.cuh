#pragma once

#include <cstdint>

#include "gpu/primitives/launch.cuh"

namespace attest {

/// Address in shared memory, in the form that its instructions take: 32 bits on the GPU, half of
/// the registers and of the arithmetic of a pointer.
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
  /// The next multiple of `bytes`, a power of two.
  __device__ SharedAddress aligned_to(unsigned bytes) const {
#ifdef __CUDACC__
    const unsigned past = value_ % bytes;
#else
    const auto past = static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(value_) % bytes);
#endif
    return *this + static_cast<int>((bytes - past) % bytes);
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
