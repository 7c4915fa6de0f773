#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

namespace attest {

/// Memory operations of a stream: its GPU's front end makes them, no multiprocessor does. Throw
/// MachineError, with a sentence where the GPU or its driver has none.

/// Writes `value` into memory of any GPU that this one reaches, behind all earlier work of the
/// stream.
void write_value(cudaStream_t stream, std::uint32_t* at, std::uint32_t value);
/// Holds back later work of the stream until *at is `value` or was counted past it, modulo 2^32.
/// `at`: memory of the current GPU, whose stream it is. What another GPU wrote before the value is
/// seen then, too, where this one can be told to flush such writes; where it cannot, the order is
/// that in which the link delivers them [CUDA driver API, CU_STREAM_WAIT_VALUE_FLUSH].
void wait_for_value(cudaStream_t stream, const std::uint32_t* at, std::uint32_t value);

}  // namespace attest
