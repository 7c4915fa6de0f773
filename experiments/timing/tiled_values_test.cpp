#include "experiments/timing/tiled_values.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <span>
#include <string>

#include "core/attention/quantiser.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

TEST(TiledValues, TensorsAndRowsRepeatTheSameNumbers) {
  const TiledValues values(ElementType::fp32, {1, 2, 3, 4, 5});
  std::vector<float> tensor(23);
  const auto device = make_device(Executor::cpu);
  std::byte* const buffer = device->upload_values(std::as_bytes(std::span(tensor)));
  device->fill(buffer, 4 * tensor.size(), values.bytes());
  device->download(buffer, std::as_writable_bytes(std::span(tensor)));
  device->release(buffer);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    EXPECT_EQ(tensor[i], static_cast<float>(i % 5 + 1));
  }
  for (const std::size_t length : {0U, 1U, 5U, 12U}) {
    for (std::size_t first = 0; first + length <= tensor.size(); ++first) {
      std::vector<float> row(length);
      values.copy(static_cast<std::int64_t>(first), row);
      EXPECT_TRUE(
          std::equal(row.begin(), row.end(), tensor.begin() + static_cast<std::ptrdiff_t>(first)))
          << first << " " << length;
    }
  }
}

TEST(TiledValues, OfFourBitsLieTwoAByteAndRepeatThoughTheyAreOdd) {
  const TiledValues values(ElementType::int4, {1, 2, 3});
  const std::vector<std::byte> want{std::byte{0x21}, std::byte{0x13}, std::byte{0x32}};
  EXPECT_TRUE(std::ranges::equal(values.bytes(), want));
  std::vector<float> row(4);
  values.copy(1, row);  // from the second byte on
  EXPECT_EQ(row, (std::vector<float>{3, 1, 2, 3}));
  values.copy(5, row);
  EXPECT_EQ(row, (std::vector<float>{2, 3, 1, 2}));
}

TEST(TiledInputs, OfAFamilyGiveEveryHeadTheSameValues) {
  const Problem problem = problem_from_string("b2 h4/2 q3 k7 d8 fp16");
  const TiledInputs inputs =
      tiled_inputs(problem, {.family = "outliers", .seed = 3, .magnitude = 2});
  constexpr std::size_t of_a_kv_head = 7 * 8, of_its_queries = 2 * 3 * 8;
  std::vector<float> first(of_a_kv_head), third(of_a_kv_head);
  inputs[forward::k.number]->copy(0, first);
  inputs[forward::k.number]->copy(2 * of_a_kv_head, third);
  EXPECT_EQ(first, third);
  std::vector<float> queries(of_its_queries), others(of_its_queries);
  inputs[forward::q.number]->copy(0, queries);
  inputs[forward::q.number]->copy(of_its_queries, others);
  EXPECT_EQ(queries, others);
  EXPECT_NE(std::vector<float>(queries.begin(), queries.begin() + 24),
            std::vector<float>(queries.begin() + 24, queries.end()))
      << "heads of a group differ";
}

TEST(TiledInputs, DependOnSeedAndMagnitude) {
  const Problem problem = problem_from_string("n4 d8");
  const auto first_query = [&](const InputSpec& spec) {
    std::vector<float> values(8);
    tiled_inputs(problem, spec)[forward::q.number]->copy(0, values);
    return values;
  };
  EXPECT_EQ(first_query({.seed = 1}), first_query({.seed = 1}));
  EXPECT_NE(first_query({.seed = 1}), first_query({.seed = 2}));
  EXPECT_NE(first_query({.seed = 1}), first_query({.seed = 1, .magnitude = 4}));
}

TEST(TiledInputs, LogitsOfCodesAreThoseOfUsualDataWhicheverHaveScales) {
  for (const std::string scales :
       {"", " qscales_head", " kscales_none", " qscales_row kscales_block"}) {
    const Problem problem =
        problem_from_string("n256 d128 bf16 quantised qcode_e4m3" + scales + " vscales_none");
    const TiledInputs tiled = tiled_inputs(problem, {});
    const auto numbers = [&](InputIndex of, InputIndex scale, Scales kind) {
      Tensor<float> codes({1, 1, 256, 128});
      tiled[of.number]->copy(0, codes.values());
      Tensor<float> factors(scales_shape(codes.shape(), kind));
      tiled[scale.number]->copy(0, factors.values());
      return dequantise(codes, factors, kind);
    };
    const Tensor<double> q = numbers(quantised::q, quantised::q_scale, problem.codes.q_scales);
    const Tensor<double> k = numbers(quantised::k, quantised::k_scale, problem.codes.k_scales);
    double squares = 0;
    for (int row = 0; row < 256; ++row) {
      double logit = 0;
      for (int d = 0; d < 128; ++d) logit += q.at(0, 0, row, d) * k.at(0, 0, row, d);
      squares += std::pow(problem.scale * logit, 2) / 256;
    }
    EXPECT_LT(std::abs(std::log2(std::sqrt(squares))), 1) << scales << ": a factor of 2 from 1";
  }
}

}  // namespace
}  // namespace attest
