// Merges of partial results: honest about what they do, and their twins, as those of
// claims_plugin.cpp are.
#include <attest/plugin.h>

#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include "plugin/testing/host_kernel.hpp"

namespace {

constexpr float infinity = std::numeric_limits<float>::infinity();

/// Element (b, h, n, d) of a tensor in fp32.
float& at(const AttestTensor& t, std::int64_t b, std::int64_t h, std::int64_t n, std::int64_t d) {
  return static_cast<float*>(t.data)[attest_offset(&t, b, h, n) + d];
}

struct Ways {
  float quotient_error = 0;  ///< relative, of O
  bool writes_no_lse = false;
};

/// Query n of head h of entry b.
void merge_row(const AttestRun& run, const Ways& ways, std::int64_t b, std::int64_t h,
               std::int64_t n) {
  const AttestProblem& p = *run.problem;
  const AttestTensor& partial_o = *attest_tensor(&run, "partial_o");
  const AttestTensor& partial_lse = *attest_tensor(&run, "partial_lse");
  const AttestTensor &o = *attest_tensor(&run, "o"), &lse = *attest_tensor(&run, "lse");
  std::vector<std::int64_t> rows;  // of parts that weigh something
  float largest = -infinity;
  for (std::int64_t part = 0; part < p.parts; ++part) {
    const std::int64_t row = part * p.query_len + n;
    const float one = at(partial_lse, b, h, row, 0);
    if (one == -infinity) continue;
    rows.push_back(row);
    largest = std::isnan(one) || one > largest ? one : largest;
  }
  float sum = 0;
  for (const std::int64_t row : rows) sum += std::exp(at(partial_lse, b, h, row, 0) - largest);
  for (std::int64_t d = 0; d < p.head_dim; ++d) {
    float merged = 0;
    for (const std::int64_t row : rows) {
      merged += std::exp(at(partial_lse, b, h, row, 0) - largest) * at(partial_o, b, h, row, d);
    }
    at(o, b, h, n, d) = rows.empty() ? 0 : merged / sum * (1 + ways.quotient_error);
  }
  if (ways.writes_no_lse) return;
  at(lse, b, h, n, 0) = rows.empty() ? -infinity : largest + std::log(sum);
}

const char* run(const AttestRun* run) {
  const AttestProblem& p = *run->problem;
  const Ways& ways = *static_cast<const Ways*>(p.user_data);
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) merge_row(*run, ways, b, h, n);
    }
  }
  return nullptr;
}

AttestKernel described(const char* name, const Ways& ways) {
  AttestKernel kernel = host_kernel::described("combine", name, run);
  kernel.features = ATTEST_NO_QUERIES;
  kernel.partial_types = kernel.element_types;
  kernel.partial_type_count = kernel.element_type_count;
  kernel.user_data = const_cast<Ways*>(&ways);
  return kernel;
}

}  // namespace

extern "C" const AttestPlugin* attest_plugin(std::uint32_t) {
  static const Ways inexact{.quotient_error = 2e-6F}, silent{.writes_no_lse = true};
  static const AttestPrecision declared = [] {
    AttestPrecision precision{};
    precision.size = sizeof precision;
    precision.division_error = 2.5e-6;
    return precision;
  }();
  static const char* const lse[] = {"lse"};
  static AttestKernel kernels[] = {
      described("honest/merge", inexact), described("twin/merge", inexact),
      described("honest/merge_without_lse", silent), described("twin/merge_without_lse", silent)};
  kernels[0].precision = &declared;
  kernels[2].missing_outputs = lse;
  kernels[2].missing_output_count = 1;
  static const AttestKernel* const all[] = {&kernels[0], &kernels[1], &kernels[2], &kernels[3]};
  static const AttestPlugin plugin{sizeof plugin, ATTEST_PLUGIN_VERSION, all, 4};
  return &plugin;
}
