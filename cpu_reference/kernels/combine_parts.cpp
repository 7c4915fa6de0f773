// Merge of partial results on the CPU, as it is written down: the largest LSE, the weights, their
// sum, one division.
#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "core/attention/merge_roundings.hpp"
#include "core/operations/combine_arguments.hpp"
#include "core/run/kernel.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

float load(const void* data, std::int64_t at, ElementType type) {
  const std::size_t size = format_of(type).size_bytes;
  std::uint32_t bits = 0;  // little-endian: the low bytes come first
  std::memcpy(&bits, static_cast<const std::byte*>(data) + static_cast<std::size_t>(at) * size,
              size);
  return decode(type, bits);
}

void store(float value, void* data, std::int64_t at, ElementType type) {
  const std::size_t size = format_of(type).size_bytes;
  const std::uint32_t bits = encode(type, static_cast<float>(round_to(type, value)));
  std::memcpy(static_cast<std::byte*>(data) + static_cast<std::size_t>(at) * size, &bits, size);
}

/// Row (b, h, n).
void merge_row(const CombineArguments& a, std::int64_t b, std::int64_t h, std::int64_t n) {
  const Problem& p = a.problem;
  constexpr float nothing = -std::numeric_limits<float>::infinity();
  const std::int64_t row = (b * p.query_heads + h) * p.query_len + n;
  const float* const lse = a.partial_lse + (row - n) * p.parts + n;
  std::vector<std::int64_t> parts;  // that weigh something
  float maximum = nothing;
  for (std::int64_t part = 0; part < p.parts; ++part) {
    const float one = lse[part * p.query_len];
    if (one == nothing) continue;
    parts.push_back(part);
    // A NaN stays: what is compared with it is never larger.
    maximum = one > maximum || std::isnan(one) ? one : maximum;
  }
  std::vector<float> weights;
  float sum = 0;
  for (const std::int64_t part : parts) {
    weights.push_back(std::exp(lse[part * p.query_len] - maximum));
    sum += weights.back();
  }
  for (std::int64_t c = 0; c < p.head_dim; ++c) {
    float merged = 0;
    for (std::size_t i = 0; i < parts.size(); ++i) {
      const std::int64_t at = a.partial_strides.offset(b, h, parts[i] * p.query_len + n) + c;
      merged += weights[i] * load(a.partial_o, at, p.partial_type);
    }
    const float o = parts.empty() ? 0.0F : merged / sum;
    store(o, a.o, a.o_strides.offset(b, h, n) + c, p.element_type);
  }
  a.lse[row] = parts.empty() ? nothing : maximum + std::log(sum);
}

void run(const CombineArguments& a, Device& /*device*/) {
  const Problem& p = a.problem;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) merge_row(a, b, h, n);
    }
  }
}

const KernelRegistration registration{
    {.operation = &combine_operation,
     .name = "combine_parts",
     .summary = "merges partial results: largest LSE, weights, sums, one division",
     .source = "FA2; Blanchard-Higham-Higham",
     .executor = Executor::cpu,
     .element_types = {ElementType::fp32, ElementType::fp16, ElementType::bf16},
     .masks = {Mask::none},
     .features = {.no_queries = true},
     .precision =
         [](const Problem& problem, const Plan&) {
           return MergeRoundings{.exp = library_expf(),
                                 .division_error = 0x1p-24,
                                 .log_error = 0x1p-23,
                                 .output = problem.element_type};
         },
     .plans = [](const Problem&) { return std::vector<Plan>{{}}; },
     .launch = run}};

}  // namespace
}  // namespace attest
