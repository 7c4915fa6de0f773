#include "gpu/peers/cudnn_library.hpp"

#include <cudnn.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <nvrtc.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <vector>

#include "core/error.hpp"

// cuDNN is opened at run time, so that the program starts where it is missing. The frontend's
// headers call the C functions below as if they were linked; each forwards to the opened library.

namespace attest {
namespace {

namespace fs = std::filesystem;

constexpr const char* library_name = "libcudnn.so.9";

/// Directories that match `root/*`, newest name first; none when the root is not there.
std::vector<fs::path> folders_of(const fs::path& root) {
  std::vector<fs::path> folders;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(root, ignored)) folders.push_back(entry.path());
  std::ranges::sort(folders, std::greater<>());
  return folders;
}

std::vector<std::string> candidates() {
  if (const char* file = std::getenv("ATTEST_CUDNN"); file != nullptr && *file != '\0') {
    return {file};
  }
  std::vector<std::string> files{library_name};
  for (const char* folder : {"/usr/local/cuda/lib64", "/usr/lib/x86_64-linux-gnu"}) {
    files.push_back(fmt::format("{}/{}", folder, library_name));
  }
  std::vector<fs::path> prefixes{"/usr/local", "/usr", "/opt/conda"};
  if (const char* active = std::getenv("VIRTUAL_ENV")) prefixes.insert(prefixes.begin(), active);
  if (const char* home = std::getenv("HOME")) {
    prefixes.emplace_back(fs::path(home) / ".local");
    for (const fs::path& version : folders_of(fs::path(home) / ".pyenv/versions")) {
      prefixes.push_back(version);
    }
  }
  for (const fs::path& prefix : prefixes) {
    for (const fs::path& python : folders_of(prefix / "lib")) {
      if (!python.filename().string().starts_with("python3")) continue;
      for (const char* packages : {"site-packages", "dist-packages"}) {
        files.push_back((python / packages / "nvidia/cudnn/lib" / library_name).string());
      }
    }
  }
  return files;
}

struct Library {
  void* handle = nullptr;
  std::string path;
  std::string problem;
};

Library open_library() {
  Library library;
  std::string first_error;
  for (const std::string& file : candidates()) {
    if (file.find('/') != std::string::npos && !fs::exists(file)) continue;
    // The library loads its parts by name: RTLD_GLOBAL lets them find each other.
    library.handle = dlopen(file.c_str(), RTLD_NOW | RTLD_GLOBAL);
    if (library.handle != nullptr) {
      library.path = file;
      return library;
    }
    if (const char* error = dlerror(); error != nullptr && first_error.empty()) first_error = error;
  }
  library.problem = fmt::format("{} was not found ({}); set ATTEST_CUDNN to its file", library_name,
                                first_error.empty() ? "ATTEST_CUDNN names no file" : first_error);
  return library;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

template <typename Function>
Function* function_of(Function* /*declared*/, const char* name) {
  void* const symbol = library().handle == nullptr ? nullptr : dlsym(library().handle, name);
  if (symbol == nullptr) {
    throw MachineError(library().handle == nullptr
                           ? library().problem
                           : fmt::format("{} has no function {}", library().path, name));
  }
  return reinterpret_cast<Function*>(symbol);
}

}  // namespace

const std::string& why_no_cudnn() {
  return library().problem;
}

std::string describe_cudnn() {
  if (!why_no_cudnn().empty()) return why_no_cudnn();
  const std::size_t version = cudnnGetVersion();
  return fmt::format("cuDNN {}.{}.{} from {}", version / 10000, version / 100 % 100, version % 100,
                     library().path);
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
