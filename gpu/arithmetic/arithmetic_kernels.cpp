#include "gpu/arithmetic/arithmetic_kernels.hpp"

#include <fmt/format.h>

#include <vector>

#include "core/base/error.hpp"

namespace attest {
namespace {

std::vector<ArithmeticKernels>& registered() {
  static std::vector<ArithmeticKernels> kernels;
  return kernels;
}

}  // namespace

ArithmeticKernelsRegistration::ArithmeticKernelsRegistration(const ArithmeticKernels& kernels) {
  registered().push_back(kernels);
}

const ArithmeticKernels& arithmetic_kernels(Executor executor) {
  for (const ArithmeticKernels& kernels : registered()) {
    if (kernels.executor == executor) return kernels;
  }
  throw MachineError(
      fmt::format("this program has no arithmetic kernels for executor {}", name_of(executor)));
}

}  // namespace attest
