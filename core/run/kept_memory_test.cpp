#include "core/run/kept_memory.hpp"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/session.hpp"

namespace attest {
namespace {

BufferImage image_of(const std::string& name, std::size_t size, unsigned char value) {
  return {.name = name,
          .pieces = {{.bytes = std::vector<std::byte>(size, std::byte{value}),
                      .accessible = {0, size}}},
          .is_input = true};
}

std::byte first_of(Device& device, const std::byte* buffer) {
  std::array<std::byte, 1> got{};
  device.download(buffer, got);
  return got[0];
}

TEST(KeptMemory, TheNextSessionFindsItsBuffersWhereTheyWereWithItsOwnContents) {
  HostMemoryDevice device;
  KeptMemory memory(device, "workspace");
  std::byte* const q = memory.upload(image_of("Q", 64, 1));
  std::byte* const workspace = memory.upload(image_of("workspace", 64, 2));
  memory.release(q);
  memory.release(workspace);
  EXPECT_EQ(memory.upload(image_of("Q", 64, 3)), q);
  EXPECT_EQ(first_of(memory, q), std::byte{3});
  EXPECT_EQ(memory.upload(image_of("workspace", 64, 4)), workspace);
  EXPECT_EQ(first_of(memory, workspace), std::byte{2}) << "what the session before left";
  EXPECT_FALSE(memory.has_moved());
}

TEST(KeptMemory, ABufferOfAnotherSizeLiesElsewhereAndThatIsSaid) {
  HostMemoryDevice device;
  KeptMemory memory(device);
  memory.release(memory.upload(image_of("Q", 64, 1)));
  std::byte* const larger = memory.upload(image_of("Q", 65, 5));
  EXPECT_EQ(first_of(memory, larger), std::byte{5});
  EXPECT_TRUE(memory.has_moved());
}

/// Runs `look` as the kernel of a session of the problem with the options.
MemoryReport looked_at(const Problem& problem, const Inputs& inputs, const SessionOptions& options,
                       const std::function<void(const ForwardArguments&)>& look) {
  KernelInfo kernel;
  kernel.name = "looks";
  kernel.launch = [&](const ForwardArguments& a, Device&) { look(a); };
  HostMemoryDevice device;
  Session session(kernel, {.problem = problem}, inputs, device, options);
  session.launch();
  (void)session.read_outputs();
  return session.memory_report();
}

Inputs numbered_inputs(const Problem& problem) {
  Inputs inputs;
  for (std::size_t i = 0; i < problem.operation->inputs().size(); ++i) {
    const InputIndex index{i};
    inputs[index] = Tensor<float>(problem.operation->inputs()[i].shape(problem));
    float value = 1;
    for (float& x : inputs[index].values()) x = value++;
  }
  return inputs;
}

TEST(SessionOptions, GapsBetweenEntriesHoldNaNAndLengthsLieBesideTheStarts) {
  const Problem p = problem_from_string("b4 h2 q7 k9 d3 lengths4");
  const Inputs inputs = numbered_inputs(p);
  const MemoryReport report =
      looked_at(p, inputs, {.entry_gap = 5}, [&](const ForwardArguments& a) {
        for (std::int64_t b = 0; b < p.batch; ++b) {
          EXPECT_EQ(a.key_lengths[b], p.key_len_of(b));
          EXPECT_EQ(a.query_starts[b + 1] - a.query_starts[b], p.query_len_of(b) + 5);
          const auto* const k = static_cast<const float*>(a.k);
          for (std::int64_t n = 0; n < p.key_len_of(b) + 5; ++n) {
            const float got = k[a.k_strides.offset(0, 1, a.key_starts[b] + n)];
            if (n < p.key_len_of(b)) {
              EXPECT_EQ(got, inputs[forward::k].at(b, 1, n, 0));
            } else {
              EXPECT_TRUE(std::isnan(got));
            }
          }
          if (b > 0) continue;
          a.lse[p.query_len_of(0)] = 0;  // of nobody
        }
      });
  EXPECT_EQ(report.damaged_guards.size(), 1U) << "a write into a gap of LSE";
}

TEST(SessionOptions, AnInputWhoseStepsAreTheSameLiesInMemoryOnceAndOthersAreRefused) {
  const Problem p = problem_from_string("b3 h2 q2 k4 d3");
  Inputs inputs = numbered_inputs(p);
  EXPECT_THROW((void)looked_at(p, inputs, {.broadcast = 0}, [](const ForwardArguments&) {}),
               std::logic_error);
  for (std::size_t i = 0; i < 3; ++i) {
    Tensor<float>& tensor = inputs[InputIndex{i}];
    for (float& x : tensor.values()) x = 7;
  }
  (void)looked_at(p, inputs, {.broadcast = 0}, [](const ForwardArguments& a) {
    EXPECT_EQ(a.k_strides.batch, 0);
    EXPECT_GT(a.k_strides.head, 0);
    EXPECT_GT(a.o_strides.batch, 0) << "outputs never share";
  });
  (void)looked_at(p, inputs, {.broadcast = 1}, [](const ForwardArguments& a) {
    EXPECT_EQ(a.q_strides.head, 0);
    EXPECT_GT(a.q_strides.batch, 0);
  });
}

}  // namespace
}  // namespace attest
