#include "gpu/simt/hardware_exp2.hpp"

#include <cmath>

namespace attest::simt {

float hardware_exp2(float x) noexcept {
  return std::exp2(x);
}

}  // namespace attest::simt
