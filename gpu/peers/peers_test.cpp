#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/attention/backward_roundings.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "gpu/peers/torch_peer.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

/// Names of peers in this build: cuBLAS's need its headers.
std::vector<std::string> peers_among(std::vector<std::string> names) {
  std::erase_if(
      names, [](const std::string& name) { return find_kernel(name, Executor::gpu) == nullptr; });
  return names;
}
/// Asked when all have registered themselves.
const std::vector<std::string>& names() {
  static const std::vector<std::string> all = peers_among(
      {"cublas_standard", "cublas_standard_tf32", "torch_flash", "torch_efficient", "torch_cudnn",
       "torch_math", "triton_flash", "flash_attention_3", "flash_attention_4"});
  return all;
}

const KernelInfo& kernel(const std::string& name) {
  return *find_kernel(name, Executor::gpu);
}

Problem small(ElementType type = ElementType::fp16) {
  return {.query_heads = 2,
          .kv_heads = 2,
          .query_len = 65,
          .key_len = 65,
          .head_dim = 64,
          .element_type = type,
          .scale = 0.125F};
}

bool is_supported(const std::string& name, const Problem& problem) {
  const KernelInfo& info = kernel(name);
  return !why_unsupported(info, problem, info.plans(problem).front());
}

TEST(Peers, say_what_is_missing_in_one_line_or_nothing) {
  std::vector<std::string> all = names();
  all.insert(all.end(), {"flash_attention_3_kvcache", "flash_attention_3_fp8", "flashinfer_decode",
                         "flashinfer_prefill"});
  for (const std::string& name : all) {
    EXPECT_EQ(kernel(name).unavailable().find('\n'), std::string::npos) << name;
  }
}

TEST(Peers, support_exactly_the_element_types_that_their_backends_have) {
  for (const std::string& name : names()) {
    for (const ElementType type : all_element_types()) {
      const bool is_wide = type == ElementType::fp32;
      const bool has_both =
          name == "cublas_standard" || name == "torch_efficient" || name == "torch_math";
      const bool want = name == "flash_attention_3"
                            ? type == ElementType::bf16
                            : has_both || is_wide == (name == "cublas_standard_tf32");
      EXPECT_EQ(is_supported(name, small(type)), want) << name << " " << format_of(type).name;
    }
  }
}

TEST(Peers, refuse_what_their_backends_do_not_claim) {
  Problem odd_dim = small();
  odd_dim.head_dim = 60;
  Problem no_keys = small();
  no_keys.key_len = 0;
  Problem negative = small();
  negative.scale = -0.125F;
  Problem grouped = small();
  grouped.kv_heads = 1;
  Problem oblong = small();
  oblong.mask = Mask::causal_top_left;
  oblong.key_len = 66;
  Problem empty_rows = small();
  empty_rows.mask = Mask::causal_bottom_right;
  empty_rows.query_len = 66;
  for (const char* const name : {"torch_flash", "torch_efficient", "torch_cudnn"}) {
    for (const Problem& problem : {odd_dim, no_keys, empty_rows}) {
      EXPECT_FALSE(is_supported(name, problem)) << name << " " << to_string(problem);
    }
  }
  for (const char* const name : {"torch_flash", "torch_cudnn"}) {
    for (const float scale : {0.0F, -0.125F, 1e-40F, NAN}) {
      Problem problem = small();
      problem.scale = scale;
      EXPECT_FALSE(is_supported(name, problem)) << name << " " << scale;
    }
  }
  EXPECT_TRUE(is_supported("torch_efficient", negative));
  EXPECT_FALSE(is_supported("torch_flash", oblong));
  EXPECT_FALSE(is_supported("torch_efficient", grouped));
  for (const char* const name : {"torch_flash", "torch_cudnn", "torch_math", "triton_flash"}) {
    EXPECT_TRUE(is_supported(name, grouped)) << name;
  }
  for (const char* const name : {"torch_efficient", "torch_cudnn", "torch_math", "triton_flash"}) {
    EXPECT_TRUE(is_supported(name, oblong)) << name;
  }
  for (const std::string& name : peers_among({"torch_math", "triton_flash", "cublas_standard"})) {
    EXPECT_TRUE(is_supported(name, empty_rows)) << name;
  }
}

/// Gradients by others: those in this build.
std::vector<std::string> backward_names() {
  return peers_among({"torch_flash_backward", "torch_efficient_backward", "torch_cudnn_backward",
                      "torch_math_backward", "flash_attention_4_backward", "cudnn_sdpa_backward",
                      "cudnn_sdpa_backward_deterministic"});
}

bool takes_gradient(const std::string& name, const std::string& problem) {
  return is_supported(name, problem_from_string("backward " + problem));
}

TEST(Peers, backward_passes_take_what_their_libraries_claim_and_nothing_else) {
  for (const std::string& name : backward_names()) {
    EXPECT_EQ(kernel(name).operation, &backward_operation) << name;
    EXPECT_EQ(kernel(name).unavailable().find('\n'), std::string::npos) << name;
    const bool is_math = name == "torch_math_backward";
    EXPECT_TRUE(takes_gradient(name, "b2 h4/4 q65 k70 d64 none bf16")) << name;
    EXPECT_TRUE(takes_gradient(name, "b2 h4/4 q65 k65 d64 causal_top_left fp16")) << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q65 k65 d64 none fp32"), is_math) << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q65 k65 d60 none bf16"), is_math) << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q9 k9 d64 none bf16 scale-1"), is_math) << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q66 k65 d64 causal_bottom_right bf16"), is_math)
        << name;
    EXPECT_FALSE(takes_gradient(name, "b1 h1/1 q9 k9 d64 none bf16 softcap2")) << name;
    EXPECT_FALSE(takes_gradient(name, "b1 h1/1 q9 k0 d64 none bf16")) << name;
    EXPECT_EQ(takes_gradient(name, "b2 h8/2 q65 k65 d64 none bf16"),
              name != "torch_efficient_backward")
        << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q65 k70 d64 causal_top_left bf16"),
              name != "torch_flash_backward" && name != "flash_attention_4_backward")
        << name;
    EXPECT_EQ(takes_gradient(name, "b1 h1/1 q65 k70 d64 causal_bottom_right bf16"),
              name != "torch_cudnn_backward")
        << name;
    EXPECT_EQ(takes_gradient(name, "b2 h1/1 q1 k1 d64 none bf16"),
              name.find("cudnn") == std::string::npos)
        << name;
  }
}

TEST(Peers, backward_passes_of_groups_declare_that_each_heads_part_is_stored) {
  const Problem grouped = problem_from_string("backward b1 h8/2 q65 k65 d64 none bf16");
  const Problem alone = problem_from_string("backward b1 h8/8 q65 k65 d64 none bf16");
  for (const std::string& name : backward_names()) {
    const auto format = [&](const Problem& problem) {
      return kernel(name).precision(problem, {}).as<BackwardRoundings>().kv_part_format;
    };
    const bool stores = name != "torch_math_backward";
    EXPECT_EQ(format(grouped), stores ? ElementType::bf16 : ElementType::fp32) << name;
    EXPECT_EQ(format(alone), ElementType::fp32) << name;
  }
}

TEST(Peers, flash_attention_3_decodes_few_queries_of_entries_that_have_keys) {
  const std::string name = "flash_attention_3_kvcache";
  const auto takes = [&](const std::string& text) {
    return is_supported(name, problem_from_string(text));
  };
  EXPECT_TRUE(takes("b3 h8/2 q1 k500 d128 none bf16"));
  EXPECT_TRUE(takes("b3 h8/2 q16 k500 d128 causal_bottom_right bf16"));
  EXPECT_FALSE(takes("b3 h8/2 q17 k500 d128 none bf16"));
  EXPECT_FALSE(takes("b3 h8/2 q1 k500 d128 none fp16"));
  EXPECT_FALSE(takes("b1 h8/2 q3 k2 d128 causal_bottom_right bf16"));
  int taken = 0, refused = 0;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    Problem p = problem_from_string("b2 h8/2 q3 k9 d128 causal_bottom_right bf16");
    p.length_seed = seed;
    bool has_empty_row = false;
    for (std::int64_t b = 0; b < p.batch; ++b) {
      for (std::int64_t n = 0; n < p.query_len_of(b); ++n) {
        has_empty_row = has_empty_row || visible_key_count(p, b, n) == 0;
      }
    }
    EXPECT_EQ(is_supported(name, p), !has_empty_row) << to_string(p);
    ++(has_empty_row ? refused : taken);
  }
  EXPECT_GT(std::min(taken, refused), 0);
}

TEST(Peers, newer_libraries_take_what_their_hopper_kernels_have) {
  const auto takes = [](const std::string& name, const std::string& text) {
    return is_supported(name, problem_from_string(text));
  };
  for (const char* const name : {"flash_attention_4", "flashinfer_prefill"}) {
    for (const int dim : {64, 128, 256}) {
      EXPECT_TRUE(takes(name, fmt::format("b3 h8/2 q5 k500 d{} none bf16", dim))) << name << dim;
    }
    EXPECT_TRUE(takes(name, "b3 h8/2 q5 k500 d64 causal_bottom_right bf16")) << name;
    EXPECT_TRUE(takes(name, "b3 h8/2 q5 k5 d64 causal_top_left bf16")) << name;
    EXPECT_FALSE(takes(name, "b3 h8/2 q5 k6 d64 causal_top_left bf16")) << name;
    EXPECT_FALSE(takes(name, "b3 h8/2 q5 k500 d72 none bf16")) << name;
    EXPECT_FALSE(takes(name, "b3 h8/2 q5 k500 d64 none bf16 scale-1")) << name;
    const bool is_flash = std::string_view(name) == "flash_attention_4";
    EXPECT_EQ(takes(name, "b3 h8/2 q5 k500 d96 none bf16"), is_flash) << name;
    EXPECT_EQ(takes(name, "b3 h8/2 q5 k500 d64 none fp16"), is_flash) << name;
    EXPECT_EQ(takes(name, "b1 h1/1 q6 k5 d64 causal_bottom_right bf16"), is_flash) << name;
  }
}

TEST(Peers, flashinfer_decodes_one_query_over_pages) {
  const KernelInfo& info = kernel("flashinfer_decode");
  const auto takes = [&](const std::string& problem, const std::string& paging) {
    Case c{.problem = problem_from_string(problem)};
    if (!paging.empty()) c.layouts.paging = paging_from_string(paging);
    return !why_unsupported(info, c);
  };
  const std::string one = "b3 h8/2 q1 k500 d128 none bf16";
  EXPECT_TRUE(takes(one, "paged16"));
  EXPECT_TRUE(takes(one, "paged3/spare4/columns2/shuffled7/infinity"));
  EXPECT_FALSE(takes(one, ""));
  EXPECT_FALSE(takes(one, "paged16/csr"));
  EXPECT_FALSE(takes(one, "paged16/joined")) << "K and V have other strides than the page's";
  EXPECT_FALSE(takes("b3 h8/2 q2 k500 d128 none bf16", "paged16"));
  EXPECT_FALSE(takes("b3 h8/2 q1 k500 d64 none bf16", "paged16"));
  EXPECT_FALSE(takes("b3 h8/2 q1 k500 d128 none bf16 scale-1", "paged16"));
}

TEST(Peers, triton_runs_its_own_plans_only) {
  const KernelInfo& triton = kernel("triton_flash");
  for (const Plan& plan : triton.plans(small())) EXPECT_FALSE(triton.unsupported(small(), plan));
  EXPECT_TRUE(triton.unsupported(small(), Plan{.query_tile = 48, .key_tile = 64}));
}

TEST(Peers, triton_has_the_head_dims_that_fit_and_no_other) {
  const KernelInfo& triton = kernel("triton_flash");
  Problem problem = small();
  for (const std::int64_t dim : {64, 128}) {
    problem.head_dim = dim;
    EXPECT_FALSE(why_unsupported(triton, problem, triton.plans(problem).front())) << dim;
  }
  problem.head_dim = 256;  // 256 KiB of shared memory
  EXPECT_EQ(why_unsupported(triton, problem, triton.plans(problem).front()),
            "triton_flash has no head_dim 256; allowed: 64, 128");
}

TEST(Peers, a_sum_in_tf32_is_declared_coarser_than_one_in_fp32) {
  if (peers_among({"cublas_standard"}).empty()) GTEST_SKIP() << "built without cuBLAS's headers";
  const Problem problem = small(ElementType::fp32);
  const auto parts = [&](const char* name) {
    return kernel(name).precision(problem, {}).as<PrecisionPlan>().score_parts;
  };
  EXPECT_EQ(parts("cublas_standard").format, Parts::Format::whole);
  EXPECT_GT(rest_of(parts("cublas_standard_tf32"), 1), 0x1p-11);
}

class GpuPeers : public OnGpu {
 protected:
  void SetUp() override {
    OnGpu::SetUp();
    if (!IsSkipped()) device_ = make_device(Executor::gpu);
  }

  /// O and LSE of one launch, and the milliseconds of one that is timed.
  struct Ran {
    Outputs outputs;
    double ms;
  };
  Ran run(const std::string& name, const Problem& problem) {
    const KernelInfo& info = kernel(name);
    const Case c{.problem = problem, .plan = info.plans(problem).front()};
    Session session(info, c, make_inputs(problem, c.inputs), *device_);
    session.launch();
    Outputs outputs = session.read_outputs();
    EXPECT_TRUE(session.memory_report().unwritten_outputs.empty()) << name;
    return {std::move(outputs), session.timed_launch(3)};
  }

  std::unique_ptr<Device> device_;
};

/// Whatever backend is asked for, another must not run: Q1.4 and Q3.2 are about benches that did
/// not look.
TEST_F(GpuPeers, each_backend_runs_its_own_gpu_kernels) {
  const std::array<std::pair<const char*, const char*>, 4> parts{
      std::pair{"torch_flash", "flash_fwd"}, std::pair{"torch_efficient", "fmha"},
      std::pair{"torch_cudnn", "cudnn"}, std::pair{"triton_flash", "triton_flash_forward"}};
  if (const std::string reason = why_no_triton(); !reason.empty()) GTEST_SKIP() << reason;
  for (const auto& [name, part] : parts) {
    EXPECT_GT(run(name, small()).ms, 0) << name;
    EXPECT_NE(last_torch_kernels().find(part), std::string::npos)
        << name << " ran " << last_torch_kernels();
  }
}

/// The copies that a timed launch finds in place must not be those of an earlier problem.
TEST_F(GpuPeers, timed_launches_do_not_disturb_later_answers) {
  for (const std::string& name : names()) {
    if (const std::string reason = kernel(name).unavailable(); !reason.empty()) continue;
    const bool is_wide = name == "cublas_standard_tf32";
    const Problem problem = small(is_wide ? ElementType::fp32 : ElementType::bf16);
    Problem scaled = problem;
    scaled.scale = 0.5F;
    const Ran first = run(name, problem);
    const Ran other = run(name, scaled);
    const Ran again = run(name, problem);
    EXPECT_GT(first.ms, 0);
    bool differs = false;
    for (std::size_t i = 0; i < first.outputs[forward::o].values().size(); ++i) {
      EXPECT_EQ(first.outputs[forward::o].values()[i], again.outputs[forward::o].values()[i])
          << name;
    }
    for (std::size_t i = 0; i < first.outputs[forward::lse].values().size(); ++i) {
      EXPECT_EQ(first.outputs[forward::lse].values()[i], again.outputs[forward::lse].values()[i])
          << name;
      differs = differs ||
                first.outputs[forward::lse].values()[i] != other.outputs[forward::lse].values()[i];
    }
    EXPECT_TRUE(differs) << name << " gave the same LSE for two scales";
  }
}

/// Gradients of one launch, and that a timed one ran the backend's own kernels.
TEST_F(GpuPeers, each_backward_pass_runs_its_own_gpu_kernels) {
  if (const std::string reason = why_no_torch(); !reason.empty()) GTEST_SKIP() << reason;
  const std::array<std::pair<const char*, const char*>, 3> parts{
      std::pair{"torch_flash_backward", "flash_bwd"}, std::pair{"torch_efficient_backward", "fmha"},
      std::pair{"torch_cudnn_backward", "cudnn"}};
  const Problem problem = problem_from_string("backward b1 h2/2 q65 k65 d64 none bf16");
  for (const auto& [name, part] : parts) {
    const Ran ran = run(name, problem);
    EXPECT_GT(ran.ms, 0) << name;
    EXPECT_NE(last_torch_kernels().find(part), std::string::npos)
        << name << " ran " << last_torch_kernels();
    for (const Tensor<float>& gradient : ran.outputs) {
      for (const float x : gradient.values()) EXPECT_TRUE(std::isfinite(x)) << name;
    }
  }
}

}  // namespace
}  // namespace attest
