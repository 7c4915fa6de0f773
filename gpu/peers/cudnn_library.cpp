#include <cudnn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include "core/base/error.hpp"
#include "gpu/peers/cudnn_sdpa.hpp"
#include "gpu/runtime/shared_library.hpp"

// cuDNN is opened at run time, so that the program starts where it is missing. The frontend's
// headers call the C functions below as if they were linked; each forwards to the opened library.

namespace attest {
namespace {

const SharedLibrary& library() {
  static const SharedLibrary opened("libcudnn.so.9", "ATTEST_CUDNN",
                                    cuda_library_folders({"cudnn"}));
  return opened;
}

template <typename Function>
Function* function_of(Function* /*declared*/, const char* name) {
  void* const symbol = library().function(name);
  if (symbol == nullptr) {
    throw MachineError(why_no_cudnn().empty()
                           ? fmt::format("{} has no function {}", library().path(), name)
                           : why_no_cudnn());
  }
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

const std::string& why_no_cudnn() {
  return library().why_missing();
}

const std::string& cudnn_version() {
  static const std::string text = [] {
    const std::size_t version = cudnnGetVersion();
    return fmt::format("cuDNN {}.{}.{}", version / 10000, version / 100 % 100, version % 100);
  }();
  return text;
}

}  // namespace attest

// A function looks its symbol up once.
#define ATTEST_FORWARD(name, ...)                                      \
  static auto* const function = ::attest::function_of(&::name, #name); \
  return function(__VA_ARGS__)

extern "C" {

size_t cudnnGetVersion() {
  ATTEST_FORWARD(cudnnGetVersion);
}
const char* cudnnGetErrorString(cudnnStatus_t status) {
  ATTEST_FORWARD(cudnnGetErrorString, status);
}
void cudnnGetLastErrorString(char* message, size_t max_size) {
  ATTEST_FORWARD(cudnnGetLastErrorString, message, max_size);
}
cudnnStatus_t cudnnCreate(cudnnHandle_t* handle) {
  ATTEST_FORWARD(cudnnCreate, handle);
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t handle) {
  ATTEST_FORWARD(cudnnDestroy, handle);
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t handle, cudaStream_t stream) {
  ATTEST_FORWARD(cudnnSetStream, handle, stream);
}
cudnnStatus_t cudnnGetStream(cudnnHandle_t handle, cudaStream_t* stream) {
  ATTEST_FORWARD(cudnnGetStream, handle, stream);
}
cudnnStatus_t cudnnBackendCreateDescriptor(cudnnBackendDescriptorType_t type,
                                           cudnnBackendDescriptor_t* descriptor) {
  ATTEST_FORWARD(cudnnBackendCreateDescriptor, type, descriptor);
}
cudnnStatus_t cudnnBackendDestroyDescriptor(cudnnBackendDescriptor_t descriptor) {
  ATTEST_FORWARD(cudnnBackendDestroyDescriptor, descriptor);
}
cudnnStatus_t cudnnBackendFinalize(cudnnBackendDescriptor_t descriptor) {
  ATTEST_FORWARD(cudnnBackendFinalize, descriptor);
}
cudnnStatus_t cudnnBackendSetAttribute(cudnnBackendDescriptor_t descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t count,
                                       const void* elements) {
  ATTEST_FORWARD(cudnnBackendSetAttribute, descriptor, name, type, count, elements);
}
cudnnStatus_t cudnnBackendGetAttribute(cudnnBackendDescriptor_t const descriptor,
                                       cudnnBackendAttributeName_t name,
                                       cudnnBackendAttributeType_t type, int64_t requested,
                                       int64_t* count, void* elements) {
  ATTEST_FORWARD(cudnnBackendGetAttribute, descriptor, name, type, requested, count, elements);
}
cudnnStatus_t cudnnBackendExecute(cudnnHandle_t handle, cudnnBackendDescriptor_t plan,
                                  cudnnBackendDescriptor_t arguments) {
  ATTEST_FORWARD(cudnnBackendExecute, handle, plan, arguments);
}

// One engine of the frontend compiles its own source with NVRTC: a normalisation, never attention.
// These say no, so that the program needs no NVRTC.
nvrtcResult nvrtcCreateProgram(nvrtcProgram*, const char*, const char*, int, const char* const*,
                               const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcCompileProgram(nvrtcProgram, int, const char* const*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetProgramLog(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcDestroyProgram(nvrtcProgram*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBINSize(nvrtcProgram, size_t*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}
nvrtcResult nvrtcGetCUBIN(nvrtcProgram, char*) {
  return NVRTC_ERROR_INTERNAL_ERROR;
}

}  // extern "C"
