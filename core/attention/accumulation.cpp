#include "core/attention/accumulation.hpp"

namespace attest {
namespace {

Accumulation tensor_core(int fused_terms, int fraction_bits) {
  return {.kind = Accumulation::Kind::tensor_core,
          .fused_terms = fused_terms,
          .fraction_bits = fraction_bits};
}

}  // namespace

Accumulation volta() {
  return tensor_core(4, 23);
}
Accumulation turing() {
  return tensor_core(4, 24);
}
Accumulation ampere() {
  return tensor_core(8, 24);
}
Accumulation ada() {
  return tensor_core(8, 24);
}
Accumulation hopper() {
  return tensor_core(16, 25);
}
Accumulation blackwell() {
  return tensor_core(16, 25);
}

Accumulation hopper_tf32() {
  return tensor_core(8, 25);
}

Accumulation hopper_fp8() {
  Accumulation of = tensor_core(32, 13);
  of.sum_bits = 13;
  return of;
}

}  // namespace attest
