#include "gpu/model/product_rate.hpp"

namespace attest {
namespace {

double rate(const GpuModel& gpu, ElementType type, const Accumulation& sum, const Parts& parts) {
  if (sum.kind == Accumulation::Kind::fp32_fma) return gpu.fp32_flops;
  const int products = parts.count * (parts.count + 1) / 2;
  switch (parts.format) {
    case Parts::Format::whole:
      return gpu.peak_flops(type);
    case Parts::Format::tf32:
      return gpu.tf32_flops / products;
    case Parts::Format::fp16:
    case Parts::Format::bf16:
      return gpu.fp16_flops / products;
  }
  return 0;
}

}  // namespace

double product_flops_per_s(const GpuModel& gpu, ElementType type, const PrecisionPlan& precision) {
  const double scores = rate(gpu, type, precision.score, precision.score_parts);
  const double values = rate(gpu, type, precision.value, precision.value_parts);
  // Half of the FLOP each; a rate of 0 takes for ever.
  return 2 / (1 / scores + 1 / values);
}

}  // namespace attest
