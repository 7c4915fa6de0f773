#pragma once

#include <functional>
#include <utility>

#include "gpu/runtime/stream.hpp"

namespace attest {

/// Work of a stream, recorded once and ready to be replayed by one call of the host.
class Graph {
 public:
  /// Records what `work` puts into the stream; nothing of it runs. `work` must not wait for the
  /// device. Throws CudaError where something cannot be recorded, and whatever `work` throws.
  Graph(const Stream& stream, const std::function<void()>& work);
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;
  ~Graph();

  void replay(const Stream& stream) const {
    ATTEST_CUDA_CHECK(cudaGraphLaunch(executable_, stream.get()));
  }

 private:
  cudaGraphExec_t executable_ = nullptr;
};

}  // namespace attest
