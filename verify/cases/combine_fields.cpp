// Parts of a merge: few as splits of a GPU's keys are, one, and more than a warp has lanes.
#include <rapidcheck.h>

#include "core/operations/combine.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

void draw_parts(const KernelInfo& /*kernel*/, Problem& problem) {
  problem.parts = *gen::element<std::int64_t>(1, 2, 2, 3, 4, 5, 7, 8, 16, 31, 32, 33, 64, 100);
  problem.partial_type = *gen::element(ElementType::fp32, ElementType::fp16, ElementType::bf16);
  // A merge knows neither keys nor groups of heads.
  problem.kv_heads = problem.query_heads;
  problem.key_len = 1;
}

const OwnFieldsRegistration registration{combine_operation, draw_parts};

}  // namespace
}  // namespace attest
