#include "gpu/runtime/stream_values.hpp"

#include <cuda_runtime_api.h>

#include "gpu/runtime/stream.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

using GpuStreamValues = OnGpu;

bool is_done(const Stream& stream) {
  const cudaError_t state = cudaStreamQuery(stream.get());
  if (state != cudaErrorNotReady) ATTEST_CUDA_CHECK(state);
  return state == cudaSuccess;
}

TEST_F(GpuStreamValues, a_stream_goes_on_when_another_has_written_the_value_and_not_before) {
  const Stream waiting, writing;
  const auto count = on_device(std::vector<std::uint32_t>{0});
  wait_for_value(waiting.get(), count.data(), 3);
  for (const std::uint32_t value : {1U, 2U}) {
    write_value(writing.get(), count.data(), value);
    writing.synchronize();
    EXPECT_FALSE(is_done(waiting)) << value;
  }
  write_value(writing.get(), count.data(), 4);  // past it
  waiting.synchronize();
  EXPECT_TRUE(is_done(waiting));
}

TEST_F(GpuStreamValues, counts_go_on_past_the_largest_number) {
  const Stream stream;
  const auto count = on_device(std::vector<std::uint32_t>{1});
  wait_for_value(stream.get(), count.data(), 0xffffffffU);
  stream.synchronize();
  EXPECT_TRUE(is_done(stream));
}

}  // namespace
}  // namespace attest
