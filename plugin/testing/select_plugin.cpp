// Choices of keys: honest about what they round and what they do not write, and their twins, as
// those of claims_plugin.cpp are.
#include <attest/plugin.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "plugin/testing/attention_ways.hpp"
#include "plugin/testing/host_kernel.hpp"

namespace {

using host_kernel::row;

constexpr int bits_of_products = 13;

struct SelectWays {
  bool rounds_products = false;  ///< each q.k, to bits_of_products
  bool writes_no_scores = false;
};

float score_of(const AttestRun& run, bool rounds_products, std::int64_t b, std::int64_t n,
               std::int64_t key) {
  const AttestProblem& p = *run.problem;
  float score = 0;
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    const float *q = row(run, "q", b, h, n),
                *k = row(run, "k", b, h / (p.query_heads / p.kv_heads), key);
    float dot = std::inner_product(q, q + p.head_dim, k, 0.0F);
    if (rounds_products) dot = ways::rounded(dot, 23 - bits_of_products);
    const float scaled = p.scale * dot;
    score += *row(run, "weights", b, h, n) * (scaled < 0 ? 0 : scaled);
  }
  return score;
}

void choose(const AttestRun& run, const SelectWays& ways, std::int64_t b, std::int64_t n) {
  const AttestProblem& p = *run.problem;
  std::vector<float> scores;
  std::vector<std::int32_t> keys(static_cast<std::size_t>(p.key_len));
  std::iota(keys.begin(), keys.end(), 0);
  for (const std::int32_t key : keys) {
    scores.push_back(score_of(run, ways.rounds_products, b, n, key));
  }
  const auto rank = [&](std::int32_t key) {
    const float score = scores[static_cast<std::size_t>(key)];
    return std::isnan(score) ? std::numeric_limits<float>::infinity() : score;
  };
  std::ranges::stable_sort(keys, std::greater<>(), rank);
  const std::int64_t list = b * p.query_len + n, count = std::min(p.top_k, p.key_len);
  static_cast<std::int32_t*>(attest_tensor(&run, "counts")->data)[list] =
      static_cast<std::int32_t>(count);
  if (p.top_k == 0) return;
  auto* const to_keys = static_cast<std::int32_t*>(attest_tensor(&run, "keys")->data);
  auto* const to_scores = static_cast<float*>(attest_tensor(&run, "scores")->data);
  for (std::int64_t i = 0; i < p.top_k; ++i) {
    const std::int32_t key = i < count ? keys[static_cast<std::size_t>(i)] : -1;
    to_keys[list * p.top_k + i] = key;
    if (ways.writes_no_scores) continue;
    to_scores[list * p.top_k + i] =
        i < count ? scores[static_cast<std::size_t>(key)] : -std::numeric_limits<float>::infinity();
  }
}

const char* run(const AttestRun* run) {
  const AttestProblem& p = *run->problem;
  const auto& ways = *static_cast<const SelectWays*>(p.user_data);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t n = 0; n < p.query_len; ++n) choose(*run, ways, b, n);
  }
  return nullptr;
}

AttestKernel described(const char* name, const SelectWays& ways) {
  AttestKernel kernel = host_kernel::described("select", name, run);
  kernel.features = ATTEST_NO_QUERIES;
  kernel.user_data = const_cast<SelectWays*>(&ways);
  return kernel;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const SelectWays inexact{.rounds_products = true}, silent{.writes_no_scores = true};
  static const AttestPrecision declared = [] {
    AttestPrecision precision{};
    precision.size = sizeof precision;
    precision.score_fused_terms = 1;
    precision.score_fraction_bits = bits_of_products;
    return precision;
  }();
  static const char* const scores[] = {"scores"};
  static AttestKernel kernels[] = {described("honest/select", inexact),
                                   described("twin/select", inexact),
                                   described("honest/select_without_scores", silent),
                                   described("twin/select_without_scores", silent)};
  kernels[0].precision = &declared;
  kernels[2].missing_outputs = scores;
  kernels[2].missing_output_count = 1;
  static const AttestKernel* const all[] = {&kernels[0], &kernels[1], &kernels[2], &kernels[3]};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, all, 4};
  return &plugin;
}
