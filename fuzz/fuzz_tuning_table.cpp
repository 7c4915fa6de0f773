#include "core/run/tuning_table.hpp"
#include "fuzz/contract.hpp"
#include "fuzz/targets.hpp"

namespace attest {

/// What is read can be written, and read again as the same table.
void fuzz_tuning_table(std::span<const std::uint8_t> bytes) {
  returns_or_complains([&] {
    const TuningTable table = tuning_table_from_json(text_of(bytes), "fuzz");
    require(tuning_table_from_json(to_json(table), "fuzz") == table,
            "a table survives writing and reading");
  });
}

}  // namespace attest
