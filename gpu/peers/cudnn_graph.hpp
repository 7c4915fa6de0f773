#pragma once

// Graphs as text or as JSON: nobody here asks for them, and they cost a fifth of the compile time.
#define CUDNN_FRONTEND_SKIP_JSON_LIB
#include <cudnn_frontend.h>
#include <fmt/format.h>

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "core/attention/layout.hpp"
#include "core/attention/problem.hpp"
#include "core/base/error.hpp"
#include "core/run/kernel.hpp"

// What the graphs of cuDNN's attention share. It includes the whole of the frontend, which costs
// half a minute to compile: for cudnn_sdpa*.cpp alone, which are compiled together.

namespace attest {

namespace fe = cudnn_frontend;

/// Tensors of any graph.
enum CudnnTensorId : std::int64_t {
  q_id = 1,
  k_id,
  v_id,
  o_id,
  lse_id,
  do_id,
  dq_id,
  dk_id,
  dv_id,
  table_id,
  query_lengths_id,
  key_lengths_id
};

using CudnnTensor = std::shared_ptr<fe::graph::Tensor_attributes>;
using CudnnAddresses = std::unordered_map<fe::graph::Tensor_attributes::uid_t, void*>;

/// Throws KernelError with cuDNN's words unless the step succeeded.
inline void check_cudnn(const fe::error_t& error, const char* step) {
  if (!error.is_good()) {
    throw KernelError(fmt::format("cuDNN, {}: {}", step, error.err_msg));
  }
}

/// One a host thread: a handle is not for several.
class CudnnHandle {
 public:
  CudnnHandle() {
    const cudnnStatus_t status = cudnnCreate(&handle_);
    if (status != CUDNN_STATUS_SUCCESS) {
      throw MachineError(fmt::format("cudnnCreate failed: {}", cudnnGetErrorString(status)));
    }
  }
  CudnnHandle(const CudnnHandle&) = delete;
  CudnnHandle& operator=(const CudnnHandle&) = delete;
  ~CudnnHandle() { (void)cudnnDestroy(handle_); }

  [[nodiscard]] cudnnHandle_t get() const { return handle_; }
  void use(void* stream) const {
    const cudnnStatus_t status = cudnnSetStream(handle_, static_cast<cudaStream_t>(stream));
    if (status != CUDNN_STATUS_SUCCESS) {
      throw MachineError(fmt::format("cudnnSetStream failed: {}", cudnnGetErrorString(status)));
    }
  }

 private:
  cudnnHandle_t handle_ = nullptr;
};

inline fe::DataType_t cudnn_type(ElementType type) {
  switch (type) {
    case ElementType::fp16:
      return fe::DataType_t::HALF;
    case ElementType::bf16:
      return fe::DataType_t::BFLOAT16;
    default:
      break;
  }
  no_version_for(type);
}

inline std::vector<std::int64_t> cudnn_dims(const Shape& shape) {
  return {shape.begin(), shape.end()};
}
inline std::vector<std::int64_t> cudnn_dims(const Strides& strides) {
  return {strides.batch, strides.head, strides.row, 1};
}
/// Dimensions of LSE, [batch, query_heads, query_len, 1], contiguous.
inline std::vector<std::int64_t> cudnn_lse_dims(const Problem& p) {
  return {p.batch, p.query_heads, p.query_len, 1};
}
inline std::vector<std::int64_t> cudnn_lse_strides(const Problem& p) {
  return {p.query_heads * p.query_len, p.query_len, 1, 1};
}

/// Element type, and fp32 for all between.
inline void set_cudnn_types(fe::graph::Graph& graph, ElementType type) {
  graph.set_io_data_type(cudnn_type(type))
      .set_intermediate_data_type(fe::DataType_t::FLOAT)
      .set_compute_data_type(fe::DataType_t::FLOAT);
}

inline CudnnTensor cudnn_input(fe::graph::Graph& graph, const char* name, std::int64_t id,
                               const Shape& shape, const Strides& strides) {
  return graph.tensor(fe::graph::Tensor_attributes()
                          .set_name(name)
                          .set_uid(id)
                          .set_dim(cudnn_dims(shape))
                          .set_stride(cudnn_dims(strides)));
}

/// Sets the mask in the attributes of a forward or a backward pass.
template <typename Attributes>
void set_cudnn_mask(Attributes& options, Mask mask) {
  if (mask == Mask::none) return;
  options
      .set_diagonal_alignment(mask == Mask::causal_top_left ? fe::DiagonalAlignment_t::TOP_LEFT
                                                            : fe::DiagonalAlignment_t::BOTTOM_RIGHT)
      .set_diagonal_band_right_bound(0);
}

/// A random campaign hardly ever comes back to an old plan, its laws come back to the last few.
inline constexpr std::size_t kept_cudnn_plans = 32;

}  // namespace attest
