#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/run/device.hpp"
#include "gpu/arithmetic/mma_operands.hpp"

namespace attest {

/// Results of mma.sync for mma_operands(type, kind, blocks).
struct ProductRecord {
  ElementType type = ElementType::fp16;
  OperandKind kind = OperandKind::ordinary;
  std::vector<std::uint64_t> hashes{};   ///< of the 128 outputs of each block, hash_of()
  std::vector<std::uint32_t> samples{};  ///< outputs of the last blocks in full, as bits

  friend bool operator==(const ProductRecord&, const ProductRecord&) = default;
};

/// Inputs of ex2 whose sign and exponent are the 9 bits `part`: the sum of exp2_mark() over all
/// 2^23 of them, modulo 2^64.
struct Exp2Record {
  unsigned part = 0;
  std::uint64_t sum = 0;

  friend bool operator==(const Exp2Record&, const Exp2Record&) = default;
};

struct ArithmeticRecord {
  std::vector<ProductRecord> products;
  std::vector<Exp2Record> exponentials;
};

inline constexpr std::size_t block_outputs = 128;
inline constexpr int recorded_blocks = 256;  ///< of each type and kind: 32,768 products
inline constexpr unsigned exp2_parts = 512;

/// Depends on every bit and on the order: a chain of Philox.
[[nodiscard]] std::uint64_t hash_of(std::span<const std::uint32_t> words);
/// Asks a device of the executor.
[[nodiscard]] ProductRecord record_products(Executor executor, Device& device, ElementType type,
                                            OperandKind kind, std::size_t sample_blocks);
[[nodiscard]] Exp2Record record_exponentials(Executor executor, Device& device, unsigned part);

/// Reads a file of records of kind `arithmetic`; throws InvalidInput naming the file and what is
/// wrong.
[[nodiscard]] ArithmeticRecord read_arithmetic_record(const std::filesystem::path& path);
/// Appends to a file, with the provenance of this program on that device.
void write_arithmetic_record(const ArithmeticRecord& record, const Device& device,
                             const std::filesystem::path& path);

}  // namespace attest
