#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"
#include "verify/campaign/counterexample.hpp"

namespace attest {

void fuzz_counterexample(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] { (void)counterexample_from_json(text_of(bytes), "fuzz"); });
}

}  // namespace attest
