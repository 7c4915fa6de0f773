#include "core/records/case.hpp"
#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"

namespace attest {

/// What is read can be written, and read again as the same case.
void fuzz_case(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const Case c = case_from_json(text_of(bytes), "fuzz");
    require(case_from_json(to_json(c), "fuzz") == c, "a case survives writing and reading");
    require(!to_string(c).empty() && !file_key(c).empty(), "a case has a name");
  });
}

}  // namespace attest
