// Gates and residuals of O by steps that store it, in bf16: honest about these roundings, and a
// twin that claims to round once, as those of claims_plugin.cpp are. Gates and residuals in fp32
// are there.
#include <attest/plugin.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugin/testing/attention_ways.hpp"
#include "plugin/testing/host_kernel.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

float from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16U);
}

std::uint16_t to_bf16(float x) {
  if (std::isnan(x)) return 0x7fc0;
  return static_cast<std::uint16_t>(std::bit_cast<std::uint32_t>(ways::rounded(x, 16)) >> 16U);
}

/// A row of a tensor in bf16; null where the call has no such tensor.
std::uint16_t* row(const AttestRun& run, const char* name, std::int64_t b, std::int64_t h,
                   std::int64_t n) {
  const AttestTensor* const t = attest_tensor(&run, name);
  return t == nullptr ? nullptr : static_cast<std::uint16_t*>(t->data) + attest_offset(t, b, h, n);
}

/// Sums of a row's weighted values, [head_dim], divided; LSE.
float attend(const AttestRun& run, std::int64_t b, std::int64_t h, std::int64_t n,
             std::vector<float>& o) {
  const AttestProblem& p = *run.problem;
  const std::int64_t kv = h / (p.query_heads / p.kv_heads);
  const std::uint16_t* const q = row(run, "q", b, h, n);
  std::vector<float> scores;
  float m = -infinity, l = 0;
  for (std::int64_t j = 0; j < p.key_len; ++j) {
    const std::uint16_t* const k = row(run, "k", b, kv, j);
    float dot = 0;
    for (std::int64_t d = 0; d < p.head_dim; ++d) dot += from_bf16(q[d]) * from_bf16(k[d]);
    scores.push_back(p.scale * dot);
    m = std::fmax(m, scores.back());
  }
  o.assign(o.size(), 0);
  if (p.key_len == 0) return -infinity;
  for (std::int64_t j = 0; j < p.key_len; ++j) {
    const std::uint16_t* const v = row(run, "v", b, kv, j);
    const float weight = std::exp(scores[static_cast<std::size_t>(j)] - m);
    l += weight;
    for (std::size_t d = 0; d < o.size(); ++d) o[d] += weight * from_bf16(v[d]);
  }
  for (float& x : o) x /= l;
  return m + std::log(l);
}

const char* run(const AttestRun* run) {
  const AttestProblem& p = *run->problem;
  std::vector<float> o(static_cast<std::size_t>(p.head_dim));
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        *host_kernel::row(*run, "lse", b, h, n) = attend(*run, b, h, n, o);
        std::uint16_t* const to = row(*run, "o", b, h, n);
        const std::uint16_t* const gate = row(*run, "gate", b, h, n);
        const std::uint16_t* const residual = row(*run, "residual", b, h, n);
        for (std::size_t d = 0; d < o.size(); ++d) {
          to[d] = to_bf16(o[d]);
          if (gate != nullptr) to[d] = to_bf16(from_bf16(to[d]) * from_bf16(gate[d]));
          if (residual != nullptr) to[d] = to_bf16(from_bf16(to[d]) + from_bf16(residual[d]));
        }
      }
    }
  }
  return nullptr;
}

AttestPrecision precision(std::uint32_t rounds_before_epilogue) {
  AttestPrecision result{};
  result.size = sizeof result;
  result.weight_format = ATTEST_FP32;
  result.rounds_before_epilogue = rounds_before_epilogue;
  return result;
}

AttestKernel described(const char* name, const AttestPrecision& how) {
  static const AttestFormat types[] = {ATTEST_BF16};
  AttestKernel kernel = host_kernel::described("forward", name, run);
  kernel.element_types = types;
  kernel.features = ATTEST_GATE | ATTEST_RESIDUAL;
  kernel.precision = &how;
  return kernel;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const AttestPrecision stored = precision(1), fused = precision(0);
  static const AttestKernel kernels[] = {described("honest/unfused", stored),
                                         described("twin/unfused", fused)};
  static const AttestKernel* const all[] = {&kernels[0], &kernels[1]};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, all, 2};
  return &plugin;
}
