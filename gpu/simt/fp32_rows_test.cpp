// How much of fp32_wgmma's second pass, of bf16 parts, runs: what its blocks read says it.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "core/run/session.hpp"
#include "gpu/simt/simt_device.hpp"

namespace attest {
namespace {

struct Element {
  std::int64_t row, column;
  float value;
};

/// Inputs of one head that nothing sends to bf16 parts: a full mask, more than 128 keys.
struct Head {
  Problem problem;
  Inputs inputs;

  explicit Head(std::string_view shape)
      : problem(problem_from_string(shape)),
        inputs(make_inputs(problem, {.family = "normal", .seed = 1})) {}

  void set(Tensor<float>& tensor, const Element& e) {
    tensor.values()[static_cast<std::size_t>(e.row * problem.head_dim + e.column)] = e.value;
  }
  /// Lets the row of Q weigh one key alone.
  void fix_on_a_key(std::int64_t row) {
    for (std::int64_t d = 0; d < problem.head_dim; ++d)
      set(inputs[forward::q],
          {row, d, 64 * inputs[forward::k].values()[static_cast<std::size_t>(d)]});
  }

  /// Bytes that the blocks of the last launch, which multiplies bf16 parts, read.
  [[nodiscard]] std::int64_t read_by_second_pass() const {
    const KernelInfo& kernel = *find_kernel("fp32_wgmma", Executor::simt);
    const Case c{.kernel = kernel.name, .problem = problem, .plan = kernel.plans(problem).front()};
    simt::SimtDevice device(simt::TraceOptions{});
    Session session(kernel, c, inputs, device);
    session.launch();
    return device.tracer()->traces().back().total(MemorySpace::global, AccessKind::read).bytes;
  }
};

/// Bytes that one more tile of 128 rows reads: three parts of Q, K and V, 2 bytes each.
std::int64_t least_of_a_tile(const Problem& problem) {
  return 3 * 2 * problem.head_dim * (128 + 2 * problem.key_len);
}

TEST(Fp32Rows, RowsForBf16PartsCostTheTilesThatTheyFillWhereverTheyAre) {
  const auto bytes = [](const std::vector<std::int64_t>& rows) {
    Head head("q384 k192 d64 fp32");
    for (const std::int64_t row : rows) head.fix_on_a_key(row);
    return head.read_by_second_pass();
  };
  const std::int64_t none = bytes({}), near = bytes({4, 5, 6});
  EXPECT_GE(near, none + least_of_a_tile(Head("q384 k192 d64 fp32").problem));
  EXPECT_EQ(near, bytes({5, 131, 383}));
}

TEST(Fp32Rows, AnElementOfThirtyDeviationsLeavesAllRowsToFp16Parts) {
  for (const std::string_view shape : {"q256 k192 d64 fp32", "q256 k192 d128 fp32"}) {
    Head head(shape);
    const std::int64_t none = head.read_by_second_pass();
    // No query meets the large element of K: none weighs that key alone.
    for (std::int64_t row = 0; row < head.problem.query_len; ++row)
      head.set(head.inputs[forward::q], {row, 5, 0});
    head.set(head.inputs[forward::q], {17, 3, 30});
    head.set(head.inputs[forward::k], {70, 5, 30});
    head.set(head.inputs[forward::v], {90, 7, 30});
    EXPECT_EQ(head.read_by_second_pass(), none) << shape;
  }
}

TEST(Fp32Rows, AKeyThatIsTooLargeSendsAllThatSeeItToBf16Parts) {
  Head head("q256 k192 d64 fp32");
  const std::int64_t none = head.read_by_second_pass();
  head.set(head.inputs[forward::v], {90, 7, 3000});
  EXPECT_GE(head.read_by_second_pass(), none + 2 * least_of_a_tile(head.problem));
}

}  // namespace
}  // namespace attest
