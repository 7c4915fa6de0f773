#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <string>

#include "core/attention/precision_plan.hpp"
#include "core/base/error.hpp"
#include "core/run/registry.hpp"
#include "gpu/arithmetic/arithmetic_record.hpp"
#include "gpu/simt/warp_matrix.hpp"

namespace attest {
namespace {

const ArithmeticRecord& recorded_on_an_h200() {
  static const ArithmeticRecord record = read_arithmetic_record(
      std::string(ATTEST_SOURCE_DIR) + "/experiments/results/h200/arithmetic.jsonl");
  return record;
}

ProductRecord on_the_executor(const ProductRecord& like) {
  const auto device = make_device(Executor::simt);
  ProductRecord made = record_products(Executor::simt, *device, like.type, like.kind,
                                       like.samples.size() / block_outputs);
  EXPECT_TRUE(device->take_findings().empty());
  return made;
}

std::string words_for(const ProductRecord& record) {
  return std::string(format_of(record.type).name) + " " + std::string(name_of(record.kind));
}

TEST(Products, OfTheExecutorAreTheH200sBitForBit) {
  std::size_t products = 0;
  for (const ProductRecord& want : recorded_on_an_h200().products) {
    const ProductRecord got = on_the_executor(want);
    for (std::size_t i = 0; i < want.samples.size(); ++i) {
      ASSERT_EQ(got.samples[i], want.samples[i]) << words_for(want) << ", sample " << i;
    }
    ASSERT_EQ(got.hashes, want.hashes) << words_for(want);
    products += want.hashes.size() * block_outputs;
  }
  EXPECT_EQ(products, 3U * operand_kinds * recorded_blocks * block_outputs);
}

TEST(Products, TellTensorCoresApart) {
  for (const ProductRecord& want : recorded_on_an_h200().products) {
    if (want.kind != OperandKind::straddling) continue;
    for (Accumulation other : {ampere(), hopper()}) {
      if (other.fraction_bits == hopper().fraction_bits) --other.fused_terms;
      simt::use_tensor_core(other);
      EXPECT_NE(on_the_executor(want).hashes, want.hashes) << words_for(want);
      simt::use_tensor_core(hopper());
    }
  }
}

TEST(Exp2, OfTheExecutorIsTheH200sBitForBitOnEveryInputFromAQuarterTo128) {
  const auto device = make_device(Executor::simt);
  const auto& recorded = recorded_on_an_h200().exponentials;
  ASSERT_EQ(recorded.size(), exp2_parts);
  for (const unsigned sign : {0U, 256U}) {
    for (unsigned exponent = 127 - 2; exponent <= 127 + 7; ++exponent) {
      const Exp2Record& want = recorded[sign | exponent];
      ASSERT_EQ(record_exponentials(Executor::simt, *device, want.part), want)
          << (sign != 0 ? '-' : '+') << "2^" << static_cast<int>(exponent) - 127;
    }
  }
}

TEST(Exp2, OfTheExecutorIsTheH200sBitForBitOnSubnormalsInfinitiesAndNaN) {
  const auto device = make_device(Executor::simt);
  for (const unsigned part : {0U, 255U, 256U, 511U}) {
    ASSERT_EQ(record_exponentials(Executor::simt, *device, part),
              recorded_on_an_h200().exponentials[part]);
  }
}

TEST(ArithmeticRecord, ABrokenOneIsRefusedByName) {
  try {
    (void)read_arithmetic_record(std::string(ATTEST_SOURCE_DIR) +
                                 "/experiments/results/h200/calibrate.jsonl");
    FAIL();
  } catch (const InvalidInput& error) {
    EXPECT_NE(std::string(error.what()).find("not 'arithmetic'"), std::string::npos);
  }
}

}  // namespace
}  // namespace attest
