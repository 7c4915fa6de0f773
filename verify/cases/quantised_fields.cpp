// Codes and scales: any that the kernel takes, independently of each other.
#include <rapidcheck.h>

#include "core/operations/quantised.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

void draw_tensor(const std::vector<Code>& codes, const std::vector<Scales>& kinds, Code& code,
                 Scales& scales) {
  if (!codes.empty()) code = *gen::elementOf(codes);
  const Scales drawn = kinds.empty() ? scales : *gen::elementOf(kinds);
  scales = code == Code::none ? Scales::none : drawn;
}

void draw_codes(const KernelInfo& kernel, Problem& problem) {
  Codes& codes = problem.codes;
  draw_tensor(kernel.codes.q, kernel.codes.q_scales, codes.q, codes.q_scales);
  draw_tensor(kernel.codes.k, kernel.codes.k_scales, codes.k, codes.k_scales);
  draw_tensor(kernel.codes.v, kernel.codes.v_scales, codes.v, codes.v_scales);
  if (kernel.features.ue8m0_scales) {
    codes.scale_format = *gen::element(ScaleFormat::fp32, ScaleFormat::ue8m0);
  }
}

const OwnFieldsRegistration registration{quantised_operation, draw_codes};

}  // namespace
}  // namespace attest
