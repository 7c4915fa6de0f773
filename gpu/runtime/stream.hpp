#pragma once

#include <cuda_runtime_api.h>

#include <utility>

#include "gpu/runtime/cuda_error.hpp"

namespace attest {

/// Owns a CUDA stream that does not wait for the default stream. Moved from: owns nothing.
class Stream {
 public:
  Stream() { ATTEST_CUDA_CHECK(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking)); }
  Stream(Stream&& other) noexcept : stream_(std::exchange(other.stream_, nullptr)) {}
  Stream& operator=(Stream&& other) noexcept {
    std::swap(stream_, other.stream_);
    return *this;
  }
  ~Stream() {
    if (stream_) log_cuda_failure(cudaStreamDestroy(stream_), "cudaStreamDestroy");
  }

  [[nodiscard]] cudaStream_t get() const { return stream_; }
  /// Waits for all work in the stream; throws the error of a kernel that failed.
  void synchronize() const { ATTEST_CUDA_CHECK(cudaStreamSynchronize(stream_)); }

 private:
  cudaStream_t stream_ = nullptr;
};

/// Owns a timing event. Moved from: owns nothing.
class Event {
 public:
  Event() { ATTEST_CUDA_CHECK(cudaEventCreate(&event_)); }
  Event(Event&& other) noexcept : event_(std::exchange(other.event_, nullptr)) {}
  Event& operator=(Event&& other) noexcept {
    std::swap(event_, other.event_);
    return *this;
  }
  ~Event() {
    if (event_) log_cuda_failure(cudaEventDestroy(event_), "cudaEventDestroy");
  }

  void record(const Stream& stream) { ATTEST_CUDA_CHECK(cudaEventRecord(event_, stream.get())); }
  void synchronize() const { ATTEST_CUDA_CHECK(cudaEventSynchronize(event_)); }
  /// Milliseconds from `start` to this event; both must have completed. Resolution about 0.5
  /// microseconds.
  [[nodiscard]] double ms_since(const Event& start) const {
    float ms = 0;
    ATTEST_CUDA_CHECK(cudaEventElapsedTime(&ms, start.event_, event_));
    return static_cast<double>(ms);
  }

 private:
  cudaEvent_t event_ = nullptr;
};

}  // namespace attest
