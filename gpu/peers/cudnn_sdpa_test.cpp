#include "gpu/peers/cudnn_sdpa.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

const KernelInfo& kernel() {
  return *find_kernel("cudnn_sdpa", Executor::gpu);
}

TEST(CudnnSdpa, says_what_it_cannot_run_in_a_sentence) {
  Problem problem{.head_dim = 64, .element_type = ElementType::fp16, .scale = 0.125F};
  EXPECT_EQ(kernel().unsupported(problem, {}), std::nullopt);
  for (const std::int64_t head_dim : {4, 63, 65, 264}) {
    Problem odd = problem;
    odd.head_dim = head_dim;
    EXPECT_TRUE(kernel().unsupported(odd, {})) << head_dim;
  }
  for (const float scale : {0.0F, -0.0F, -0.125F, 1e-40F, NAN}) {
    Problem odd = problem;
    odd.scale = scale;
    EXPECT_TRUE(kernel().unsupported(odd, {})) << scale;
  }
  Problem no_keys = problem;
  no_keys.key_len = 0;
  EXPECT_TRUE(kernel().unsupported(no_keys, {}));
  Problem empty_rows = problem;
  empty_rows.mask = Mask::causal_bottom_right;
  empty_rows.query_len = 2;
  EXPECT_TRUE(kernel().unsupported(empty_rows, {}));
}

TEST(CudnnSdpa, takes_dense_tables_of_pages_whose_size_is_a_power_of_two) {
  Case c;
  c.problem = {.batch = 3, .key_len = 40, .head_dim = 64, .element_type = ElementType::fp16};
  const auto why = [&](const std::string& paging) {
    c.layouts.paging = paging_from_string(paging);
    return why_unsupported(kernel(), c).value_or("");
  };
  for (const char* const text : {"paged1", "paged16/columns2/shuffled7/infinity", "paged256"}) {
    EXPECT_EQ(why(text), "") << text;
  }
  EXPECT_NE(why("paged48").find("pages of 48 keys"), std::string::npos) << why("paged48");
  EXPECT_NE(why("paged16/csr").find("dense form"), std::string::npos) << why("paged16/csr");
}

TEST(CudnnSdpaDeathTest, a_missing_library_makes_it_unavailable_and_the_reason_names_the_variable) {
  // In a process of its own: the library is opened once.
  EXPECT_EXIT(
      {
        setenv("ATTEST_CUDNN", "/nowhere/libcudnn.so.9", 1);
        std::fputs(kernel().unavailable().c_str(), stderr);
        std::exit(0);
      },
      ::testing::ExitedWithCode(0), "ATTEST_CUDNN");
}

/// O of one launch of [1, 2, 3, 64] on values that the scale matters for.
Outputs launch(float scale, Device& device) {
  Case c;
  c.problem = {.query_heads = 2,
               .kv_heads = 1,
               .query_len = 3,
               .key_len = 5,
               .head_dim = 64,
               .element_type = ElementType::bf16,
               .scale = scale};
  Session session(kernel(), c, make_inputs(c.problem, c.inputs), device);
  session.launch();
  return session.read_outputs();
}

TEST(GpuCudnnSdpa, a_cached_plan_is_not_used_for_another_scale) {
  for (const std::string& reason : {why_unavailable(Executor::gpu), kernel().unavailable()}) {
    if (!reason.empty()) GTEST_SKIP() << reason;
  }
  const auto device = make_device(Executor::gpu);
  const Outputs small = launch(0.125F, *device);
  const Outputs large = launch(0.5F, *device);
  const Outputs again = launch(0.125F, *device);
  bool differs = false;
  for (std::size_t i = 0; i < small[forward::lse].values().size(); ++i) {
    EXPECT_EQ(small[forward::lse].values()[i], again[forward::lse].values()[i]);
    differs = differs || small[forward::lse].values()[i] != large[forward::lse].values()[i];
  }
  EXPECT_TRUE(differs) << "the same LSE for two scales";
}

}  // namespace
}  // namespace attest
