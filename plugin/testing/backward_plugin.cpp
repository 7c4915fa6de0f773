// Backward passes: one that is honest about what it rounds, and its twin, as those of
// claims_plugin.cpp are.
#include <attest/plugin.h>

#include <cmath>
#include <cstdint>

#include "plugin/testing/attention_ways.hpp"
#include "plugin/testing/host_kernel.hpp"

namespace {

using host_kernel::row;

float dot(const float* x, const float* y, std::int64_t n) {
  float sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += x[i] * y[i];
  return sum;
}

void for_each_row(const AttestTensor& t, auto visit) {
  for (std::int64_t b = 0; b < t.shape[0]; ++b) {
    for (std::int64_t h = 0; h < t.shape[1]; ++h) {
      for (std::int64_t n = 0; n < t.shape[2]; ++n) {
        visit(static_cast<float*>(t.data) + attest_offset(&t, b, h, n));
      }
    }
  }
}

/// No mask; dS is stored in bf16, and everything else is fp32.
const char* run(const AttestRun* given) {
  const AttestRun& run = *given;
  const AttestProblem& p = *run.problem;
  const std::int64_t dim = p.head_dim;
  for (const char* const name : {"dq", "dk", "dv"}) {
    for_each_row(*attest_tensor(given, name), [&](float* x) { std::fill_n(x, dim, 0.0F); });
  }
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      const std::int64_t kv_head = h / (p.query_heads / p.kv_heads);
      for (std::int64_t i = 0; i < p.query_len; ++i) {
        const float *q = row(run, "q", b, h, i), *d_o = row(run, "do", b, h, i);
        const float delta = dot(d_o, row(run, "o", b, h, i), dim);
        float* const dq = row(run, "dq", b, h, i);
        for (std::int64_t j = 0; j < p.key_len; ++j) {
          const float* const k = row(run, "k", b, kv_head, j);
          const float weight = std::exp(p.scale * dot(q, k, dim) - *row(run, "lse", b, h, i));
          const float of_v = dot(d_o, row(run, "v", b, kv_head, j), dim);
          const float ds = ways::rounded(weight * (of_v - delta), ways::bf16_drops);
          for (std::int64_t d = 0; d < dim; ++d) {
            row(run, "dv", b, kv_head, j)[d] += weight * d_o[d];
            row(run, "dk", b, kv_head, j)[d] += ds * q[d];
            dq[d] += ds * k[d];
          }
        }
      }
    }
  }
  for (const char* const name : {"dq", "dk"}) {
    for_each_row(*attest_tensor(given, name), [&](float* x) {
      for (std::int64_t d = 0; d < dim; ++d) x[d] *= p.scale;
    });
  }
  return nullptr;
}

AttestKernel described(const char* name) {
  return host_kernel::described("backward", name, run);
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const AttestPrecision declared = [] {
    AttestPrecision precision{};
    precision.size = sizeof precision;
    precision.dscore_format = ATTEST_BF16;
    return precision;
  }();
  static AttestKernel kernels[] = {described("honest/gradient"), described("twin/gradient")};
  kernels[0].precision = &declared;
  static const AttestKernel* const all[] = {&kernels[0], &kernels[1]};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, all, 2};
  return &plugin;
}
