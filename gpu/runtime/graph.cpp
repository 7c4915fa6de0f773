#include "gpu/runtime/graph.hpp"

namespace attest {
namespace {

/// Owns what was recorded, until it has become an executable.
struct Recorded {
  cudaGraph_t graph = nullptr;

  Recorded() = default;
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  ~Recorded() {
    if (graph != nullptr) log_cuda_failure(cudaGraphDestroy(graph), "cudaGraphDestroy");
  }
};

}  // namespace

Graph::Graph(const Stream& stream, const std::function<void()>& work) {
  Recorded recorded;
  // Other threads may go on with other streams.
  ATTEST_CUDA_CHECK(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal));
  try {
    work();
  } catch (...) {
    (void)cudaStreamEndCapture(stream.get(), &recorded.graph);  // the stream is usable again
    (void)cudaGetLastError();
    throw;
  }
  ATTEST_CUDA_CHECK(cudaStreamEndCapture(stream.get(), &recorded.graph));
  ATTEST_CUDA_CHECK(cudaGraphInstantiate(&executable_, recorded.graph, 0));
  if (const cudaError_t code = cudaGraphUpload(executable_, stream.get()); code != cudaSuccess) {
    (void)cudaGraphExecDestroy(executable_);  // a constructor that throws has no destructor
    ATTEST_CUDA_CHECK(code);
  }
}

Graph::~Graph() {
  log_cuda_failure(cudaGraphExecDestroy(executable_), "cudaGraphExecDestroy");
}

}  // namespace attest
