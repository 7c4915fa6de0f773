#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace attest {

/// Every place where bytes from outside come in, as a function of any bytes. Each returns, or lets
/// out what the parser must not throw; a crash, a hang or unbounded memory is a defect as well.
void fuzz_case(std::span<const std::uint8_t> bytes);
void fuzz_counterexample(std::span<const std::uint8_t> bytes);
void fuzz_safetensors(std::span<const std::uint8_t> bytes);
void fuzz_tuning_table(std::span<const std::uint8_t> bytes);
void fuzz_study(std::span<const std::uint8_t> bytes);
void fuzz_plugin(std::span<const std::uint8_t> bytes);

}  // namespace attest
