// Codes and scales that a quantiser makes: any that the kernel takes. It knows neither queries nor
// groups of heads, and what it reads is K's shape.
#include <rapidcheck.h>

#include "core/operations/quantise.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

void draw_made_codes(const KernelInfo& kernel, Problem& problem) {
  problem.codes = {};
  problem.codes.k = *gen::elementOf(kernel.codes.k);
  problem.codes.k_scales = *gen::elementOf(kernel.codes.k_scales);
  if (kernel.features.ue8m0_scales) {
    problem.codes.scale_format = *gen::element(ScaleFormat::fp32, ScaleFormat::ue8m0);
  }
  problem.query_heads = problem.kv_heads;
  problem.query_len = 1;
}

const OwnFieldsRegistration fields_of_quantise{quantise_operation, draw_made_codes};

}  // namespace
}  // namespace attest
