#include "gpu/runtime/cuda_error.hpp"

#include <gtest/gtest.h>

#include <string>

#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

template <typename Work>
std::string message_of(const Work& work) {
  try {
    work();
  } catch (const CudaError& error) {
    return error.what();
  }
  return "nothing was thrown";
}

TEST(CudaErrorTest, FailedCallBecomesAnErrorWithItsTextCodeAndPlace) {
  // No machine has device -1, so the call fails with a GPU and without.
  const int line = __LINE__ + 1;
  const std::string message = message_of([] { ATTEST_CUDA_CHECK(cudaSetDevice(-1)); });
  EXPECT_NE(message.find("cudaSetDevice(-1) failed: cudaError"), std::string::npos) << message;
  EXPECT_NE(message.find(", cuda_error_test.cpp:" + std::to_string(line)), std::string::npos)
      << message;
  EXPECT_EQ(message.find('\n'), std::string::npos) << message;
}

TEST(CudaErrorTest, SuccessThrowsNothing) {
  EXPECT_NO_THROW(ATTEST_CUDA_CHECK(cudaSuccess));
}

TEST(CudaErrorTest, IsAMachineErrorSoThatTheProgramExitsWithItsCode) {
  EXPECT_THROW(ATTEST_CUDA_CHECK(cudaErrorInvalidValue), MachineError);
}

TEST(CudaErrorTest, OnlyErrorsThatDestroyTheContextAreSticky) {
  EXPECT_TRUE(CudaError(cudaErrorIllegalAddress, "call", "file", 1).is_sticky());
  EXPECT_TRUE(CudaError(cudaErrorLaunchFailure, "call", "file", 1).is_sticky());
  EXPECT_FALSE(CudaError(cudaErrorInvalidValue, "call", "file", 1).is_sticky());
  EXPECT_FALSE(CudaError(cudaErrorMemoryAllocation, "call", "file", 1).is_sticky());
}

TEST(CudaErrorTest, DestructorsLogOneLineInsteadOfThrowing) {
  testing::internal::CaptureStderr();
  log_cuda_failure(cudaErrorIllegalAddress, "cudaFree");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "attest: cudaFree failed: cudaErrorIllegalAddress\n");
}

TEST(CudaErrorTest, DestructorsAreSilentOnSuccessAndWhileTheDriverShutsDown) {
  testing::internal::CaptureStderr();
  log_cuda_failure(cudaSuccess, "cudaFree");
  log_cuda_failure(cudaErrorCudartUnloading, "cudaFree");
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

// Without a driver every call fails anew, cudaGetLastError() too.
using GpuCudaErrorTest = OnGpu;

TEST_F(GpuCudaErrorTest, ReportedErrorIsNotSeenAgainByTheNextCheck) {
  EXPECT_NE(message_of([] { ATTEST_CUDA_CHECK(cudaSetDevice(-1)); }), "nothing was thrown");
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

}  // namespace
}  // namespace attest
