#include <vector>

#include "core/inputs/captured_layers.hpp"
#include "core/inputs/safetensors.hpp"
#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"

namespace attest {

/// A file that is accepted has values for each of its tensors; then its layers are taken out.
void fuzz_safetensors(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const auto raw = std::as_bytes(bytes);
    const Safetensors file = Safetensors::from_bytes({raw.begin(), raw.end()}, "fuzz");
    for (const SafetensorsEntry& entry : file.entries()) {
      require(std::ssize(file.values(entry)) == entry.size(), "a tensor has all of its values");
    }
    for (const CapturedLayer& layer : captured_layers(file)) {
      require(layer.q.size() > 0 && layer.k.size() == layer.v.size(), "layers are whole");
    }
  });
}

}  // namespace attest
