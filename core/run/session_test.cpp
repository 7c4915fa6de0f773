#include "core/run/session.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cmath>
#include <functional>
#include <limits>

#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/host_memory_device.hpp"

namespace attest {
namespace {

Case strided_case(ElementType type) {
  return {
      .kernel = "test",
      .problem = {.batch = 2,
                  .query_heads = 4,
                  .kv_heads = 2,
                  .query_len = 3,
                  .key_len = 5,
                  .head_dim = 7,
                  .element_type = type},
      .layouts = ForwardLayouts{
          .q = {DimOrder::bnhd, 3, 1}, .k = {DimOrder::bhnd, 1, 2}, .o = {DimOrder::bnhd, 5, 3}}};
}

std::int64_t place(const Strides& strides, std::int64_t b, std::int64_t h, std::int64_t n) {
  return strides.offset(b, h, n);
}

/// A "kernel" that copies Q to O and the first element of each row to LSE: enough to see every
/// element move.
void copy_q(const ForwardArguments& a) {
  const Problem& p = a.problem;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const std::int64_t from = place(a.q_strides, b, h, n);
        const std::int64_t to = place(a.o_strides, b, h, n);
        const std::int64_t row = (b * p.query_heads + h) * p.query_len + n;
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          if (p.element_type == ElementType::fp32) {
            static_cast<float*>(a.o)[to + d] = static_cast<const float*>(a.q)[from + d];
          } else {
            static_cast<std::uint16_t*>(a.o)[to + d] =
                static_cast<const std::uint16_t*>(a.q)[from + d];
          }
        }
        a.lse[row] = static_cast<float>(row);
      }
    }
  }
}

/// Runs `body` as the kernel's launch and returns what the session saw.
MemoryReport report_of(const Case& c, const std::function<void(const ForwardArguments&)>& body,
                       Outputs* outputs = nullptr) {
  KernelInfo kernel;
  kernel.name = "test";
  kernel.workspace_bytes = [](const Problem&, const Plan&) { return std::size_t{64}; };
  kernel.launch = [&](const ForwardArguments& a, Device&) { body(a); };
  HostMemoryDevice device;
  const Inputs inputs = make_inputs(c.problem, {.seed = 4});
  Session session(kernel, c, inputs, device);
  session.launch();
  Outputs read = session.read_outputs();
  if (outputs != nullptr) *outputs = std::move(read);
  return session.memory_report();
}

TEST(Session, ACorrectKernelLeavesACleanReportAndItsValuesComeBack) {
  for (const ElementType type : all_element_types()) {
    const Case c = strided_case(type);
    Outputs outputs;
    const MemoryReport report = report_of(c, copy_q, &outputs);
    EXPECT_TRUE(report.damaged_guards.empty() && report.unwritten_outputs.empty() &&
                report.modified_inputs.empty());
    const Inputs inputs = make_inputs(c.problem, {.seed = 4});
    EXPECT_TRUE(std::ranges::equal(outputs[forward::o].values(), inputs[forward::q].values()));
    EXPECT_EQ(outputs[forward::lse].at(1, 3, 2, 0), 23.0F);
  }
}

TEST(Session, AKernelWithoutAnLseGetsNoAddressForOne) {
  const Case c = strided_case(ElementType::fp32);
  KernelInfo kernel;
  kernel.name = "test";
  kernel.missing_outputs = {"lse"};
  std::vector<float> own(static_cast<std::size_t>(c.problem.rows()));
  kernel.launch = [&](const ForwardArguments& a, Device&) {
    EXPECT_EQ(a.lse, nullptr);
    ForwardArguments with_lse = a;
    with_lse.lse = own.data();
    copy_q(with_lse);
  };
  HostMemoryDevice device;
  const Inputs inputs = make_inputs(c.problem, {.seed = 4});
  Session session(kernel, c, inputs, device);
  session.launch();
  const Outputs outputs = session.read_outputs();
  EXPECT_TRUE(session.memory_report().unwritten_outputs.empty());
  EXPECT_EQ(outputs[forward::lse].size(), c.problem.rows());
  EXPECT_TRUE(
      std::ranges::all_of(outputs[forward::lse].values(), [](float x) { return std::isnan(x); }));
}

TEST(Session, AnElementLeftOutIsNamed) {
  const MemoryReport report =
      report_of(strided_case(ElementType::fp32), [](const ForwardArguments& a) {
        copy_q(a);
        // What poisoned memory holds before the launch.
        const float poison = decode(ElementType::fp32, poison_bits(ElementType::fp32));
        static_cast<float*>(a.o)[place(a.o_strides, 1, 2, 0) + 6] = poison;
      });
  ASSERT_EQ(report.unwritten_outputs.size(), 1U);
  EXPECT_EQ(report.unwritten_outputs[0],
            "1 elements of O were not written, the first is O[1, 2, 0, 6]");
}

TEST(Session, AKernelThatWritesNothingIsSeenInBothOutputs) {
  Outputs outputs;
  const MemoryReport report = report_of(
      strided_case(ElementType::bf16), [](const ForwardArguments&) {}, &outputs);
  EXPECT_EQ(report.unwritten_outputs.size(), 2U);
  for (const float value : outputs[forward::o].values()) EXPECT_TRUE(std::isnan(value));
}

TEST(Session, AWriteBeforeTheTensorAfterItOrIntoAGapIsSeen) {
  const Case c = strided_case(ElementType::fp32);
  const auto damages = [&](std::int64_t offset) {
    const MemoryReport report = report_of(c, [&](const ForwardArguments& a) {
      copy_q(a);
      static_cast<float*>(a.o)[offset] = 1.0F;
    });
    return report.damaged_guards.size();
  };
  const Shape shape = query_shape(c.problem);
  EXPECT_EQ(damages(-1), 1U);
  EXPECT_EQ(damages(span_of(shape, c.layouts[forward::o])), 1U);
  EXPECT_EQ(damages(c.problem.head_dim), 1U) << "the gap after the first row";
  EXPECT_EQ(damages(0), 0U) << "an element is not a guard";
}

/// Batch entries of Q and O 2^31 elements apart, and a stride of 2^33 that nothing may multiply.
Case far_case() {
  Case c = strided_case(ElementType::fp32);
  c.layouts[forward::q].outer_gap = std::int64_t{1} << 31;
  c.layouts[forward::q].order = DimOrder::bhnd;
  c.layouts[forward::o] = {
      .order = DimOrder::bnhd, .row_gap = 1, .outer_gap = std::int64_t{1} << 31};
  c.layouts[forward::k].lone_stride = std::int64_t{1} << 33;
  return c;
}

TEST(Session, ElementsBeyond2To31AreReachedWithoutTouchingTheGigabytesBetweenThem) {
  const Case c = far_case();
  Outputs outputs;
  std::int64_t farthest = 0;
  const auto launch = [&](const ForwardArguments& a) {
    farthest = place(a.o_strides, 1, 3, 2);
    copy_q(a);
  };
  const MemoryReport report = report_of(c, launch, &outputs);
  EXPECT_GT(farthest, std::int64_t{1} << 31);
  EXPECT_TRUE(report.damaged_guards.empty() && report.unwritten_outputs.empty() &&
              report.modified_inputs.empty());
  const Inputs inputs = make_inputs(c.problem, {.seed = 4});
  EXPECT_TRUE(std::ranges::equal(outputs[forward::o].values(), inputs[forward::q].values()));
}

TEST(Session, GuardsAroundFarElementsAreChecked) {
  for (const std::int64_t beside : {-1, 7 /* the gap after the first row */}) {
    const MemoryReport report = report_of(far_case(), [&](const ForwardArguments& a) {
      copy_q(a);
      static_cast<float*>(a.o)[place(a.o_strides, 1, 0, 0) + beside] = 1.0F;
    });
    EXPECT_EQ(report.damaged_guards.size(), 1U) << beside;
  }
  const MemoryReport unwritten = report_of(far_case(), [](const ForwardArguments& a) {
    ForwardArguments first_batch = a;
    first_batch.problem.batch = 1;
    copy_q(first_batch);
  });
  ASSERT_FALSE(unwritten.unwritten_outputs.empty());
  EXPECT_EQ(unwritten.unwritten_outputs[0],
            "84 elements of O were not written, the first is O[1, 0, 0, 0]");
}

/// Lifts the protection of an input, as a wrong kernel might.
void make_writable(const void* address) {
  const auto page = reinterpret_cast<std::uintptr_t>(address) / 4096 * 4096;
  ASSERT_EQ(mprotect(reinterpret_cast<void*>(page), 4096, PROT_READ | PROT_WRITE), 0);
}

TEST(Session, AWriteIntoAnInputThatAKernelUnprotectedIsNamed) {
  const MemoryReport report =
      report_of(strided_case(ElementType::fp32), [](const ForwardArguments& a) {
        copy_q(a);
        auto* const k =
            const_cast<float*>(static_cast<const float*>(a.k)) + place(a.k_strides, 1, 1, 4) + 6;
        make_writable(k);
        *k += 1.0F;
      });
  ASSERT_EQ(report.modified_inputs.size(), 1U);
  EXPECT_EQ(report.modified_inputs[0], "1 elements of K were changed, the first is K[1, 1, 4, 6]");
}

TEST(Session, EverythingAroundTheInputsIsNaN) {
  (void)report_of(strided_case(ElementType::fp32), [](const ForwardArguments& a) {
    copy_q(a);
    const auto* q = static_cast<const float*>(a.q);
    EXPECT_TRUE(std::isnan(q[-1]));
    EXPECT_TRUE(std::isnan(q[a.problem.head_dim])) << "gap";
    for (int i = 0; i < 16; ++i) EXPECT_TRUE(std::isnan(static_cast<const float*>(a.workspace)[i]));
  });
}

/// Copies rows of Q to O entry by entry, as a kernel that follows cu_seqlens.
void copy_packed(const ForwardArguments& a) {
  const Problem& p = a.problem;
  const std::int64_t total = a.query_starts[p.batch];
  for (std::int64_t h = 0; h < p.query_heads; ++h) {
    for (std::int64_t n = 0; n < total; ++n) {
      for (std::int64_t d = 0; d < p.head_dim; ++d) {
        static_cast<float*>(a.o)[place(a.o_strides, 0, h, n) + d] =
            static_cast<const float*>(a.q)[place(a.q_strides, 0, h, n) + d];
      }
      a.lse[h * total + n] = 1;
    }
  }
}

Case packed_case() {
  Case c = strided_case(ElementType::fp32);
  c.problem.batch = 12;
  c.problem.length_seed = 5;
  c.problem.padding_seed = 3;
  return c;
}

TEST(Session, EntriesWithLengthsOfTheirOwnLiePackedAndComeBackInPlace) {
  const Case c = packed_case();
  const Inputs inputs = make_inputs(c.problem, {.seed = 4});
  Outputs outputs;
  const MemoryReport report = report_of(
      c,
      [&](const ForwardArguments& a) {
        EXPECT_EQ(std::vector(a.query_starts, a.query_starts + 13), query_starts(c.problem));
        EXPECT_EQ(std::vector(a.key_starts, a.key_starts + 13), key_starts(c.problem));
        for (std::int64_t b = 0; b < c.problem.batch; ++b) {
          for (std::int64_t j = 0; j < c.problem.key_len_of(b); ++j) {
            EXPECT_EQ(a.key_mask[b * c.problem.key_len + j], c.problem.is_padded(b, j) ? 0 : 1);
            EXPECT_EQ(
                static_cast<const float*>(a.k)[place(a.k_strides, 0, 1, a.key_starts[b] + j) + 2],
                inputs[forward::k].at(b, 1, j, 2));
          }
        }
        copy_packed(a);
      },
      &outputs);
  EXPECT_TRUE(report.damaged_guards.empty());
  EXPECT_TRUE(report.unwritten_outputs.empty());
  EXPECT_TRUE(report.modified_inputs.empty());
  for (std::int64_t b = 0; b < c.problem.batch; ++b) {
    for (std::int64_t n = 0; n < c.problem.query_len; ++n) {
      const bool exists = n < c.problem.query_len_of(b);
      EXPECT_EQ(outputs[forward::o].at(b, 3, n, 6),
                exists ? inputs[forward::q].at(b, 3, n, 6) : 0.0F);
      EXPECT_EQ(outputs[forward::lse].at(b, 3, n, 0),
                exists ? 1 : -std::numeric_limits<float>::infinity());
    }
  }
}

TEST(Session, RowsOfEntriesThatAreNotWrittenAreReported) {
  const MemoryReport report = report_of(packed_case(), [](const ForwardArguments&) {});
  EXPECT_EQ(report.unwritten_outputs.size(), 2U);
}

TEST(Session, AChangedStartOrMaskIsAModifiedInput) {
  const MemoryReport report = report_of(packed_case(), [](const ForwardArguments& a) {
    copy_packed(a);
    make_writable(a.key_starts);
    make_writable(a.key_mask);
    const_cast<std::int32_t*>(a.key_starts)[1] = 77;
    const_cast<std::uint8_t*>(a.key_mask)[0] ^= 1;
  });
  EXPECT_EQ(report.modified_inputs.size(), 2U);
  const MemoryReport beyond = report_of(packed_case(), [](const ForwardArguments& a) {
    copy_packed(a);
    make_writable(a.query_starts);
    const_cast<std::int32_t*>(a.query_starts)[13] = 0;
  });
  EXPECT_EQ(beyond.damaged_guards.size(), 1U);
}

TEST(SessionDeathTest, AWriteIntoAnInputEndsTheProcessEvenIfItIsUndone) {
  const auto double_and_halve = [](const float* input) {
    auto* const value = const_cast<volatile float*>(input);
    *value = *value * 2;
    *value = *value / 2;
  };
  const std::array<std::function<void(const ForwardArguments&)>, 4> writes{
      [&](const ForwardArguments& a) { double_and_halve(static_cast<const float*>(a.q)); },
      [&](const ForwardArguments& a) { double_and_halve(static_cast<const float*>(a.k)); },
      [&](const ForwardArguments& a) { double_and_halve(static_cast<const float*>(a.v)); },
      [](const ForwardArguments& a) {
        auto* const start = const_cast<volatile std::int32_t*>(a.key_starts);
        *start = *start + 0;
      }};
  for (const auto& write : writes) {
    EXPECT_DEATH((void)report_of(packed_case(), write), "");
  }
}

/// A case whose schedule seed makes memory end where Q does (`ends`), or go on.
Case case_with_page_end(ElementType type, bool ends) {
  Case c = strided_case(type);
  for (c.schedule_seed = 1;; ++c.schedule_seed) {
    bool is_found = false;
    (void)report_of(c, [&](const ForwardArguments& a) {
      const std::int64_t bytes = span_of(query_shape(c.problem), c.layouts[forward::q]) *
                                 static_cast<std::int64_t>(format_of(type).size_bytes);
      const auto end = reinterpret_cast<std::uintptr_t>(a.q) + static_cast<std::uintptr_t>(bytes);
      // With the next page an unreadable one, fewer than 16 bytes lie between.
      is_found = ((4096 - end % 4096) % 4096 < 16) == ends;
    });
    if (is_found) return c;
  }
}

TEST(SessionDeathTest, ReadingPastABufferThatEndsAtAPageEndsTheProcess) {
  const auto read_past_q = [](const Case& c, std::int64_t elements) {
    (void)report_of(c, [&](const ForwardArguments& a) {
      const auto* const q = static_cast<const volatile float*>(a.q);
      (void)q[span_of(query_shape(c.problem), c.layouts[forward::q]) + elements];
    });
  };
  EXPECT_DEATH(read_past_q(case_with_page_end(ElementType::fp32, true), 4), "");
  read_past_q(case_with_page_end(ElementType::fp32, false), 4);
  Case plain = strided_case(ElementType::fp32);
  plain.schedule_seed = 0;
  read_past_q(plain, 4);
}

TEST(Session, EveryBufferEndsAtAPageInAboutHalfOfTheCasesAndKeepsItsAlignment) {
  for (const ElementType type : all_element_types()) {
    Case c = strided_case(type);
    c.layouts[forward::v].base_offset = 0;
    const std::size_t size = format_of(type).size_bytes;
    int at_page = 0;
    constexpr int cases = 64;
    for (c.schedule_seed = 1; c.schedule_seed <= cases; ++c.schedule_seed) {
      Outputs outputs;
      const MemoryReport report = report_of(
          c,
          [&](const ForwardArguments& a) {
            copy_q(a);
            const auto address_of = [](const void* pointer) {
              return reinterpret_cast<std::uintptr_t>(pointer);
            };
            // Bits of the address up to the one that the base offset sets.
            EXPECT_EQ(address_of(a.q) % (2 * size), size);      // offset 1
            EXPECT_EQ(address_of(a.k) % (4 * size), 2 * size);  // offset 2
            EXPECT_EQ(address_of(a.o) % (2 * size), size);      // offset 3
            EXPECT_EQ(address_of(a.v) % 16, 0U);
            EXPECT_EQ(address_of(a.lse) % 64, 0U);
            EXPECT_EQ(address_of(a.workspace) % 256, 0U);
            const auto bytes =
                static_cast<std::uintptr_t>(span_of(key_shape(c.problem), {})) * size;
            if ((address_of(a.v) + bytes + 15) % 4096 < 16) ++at_page;
          },
          &outputs);
      EXPECT_TRUE(report.damaged_guards.empty() && report.unwritten_outputs.empty() &&
                  report.modified_inputs.empty());
      const Inputs inputs = make_inputs(c.problem, {.seed = 4});
      EXPECT_TRUE(std::ranges::equal(outputs[forward::o].values(), inputs[forward::q].values()));
    }
    EXPECT_GT(at_page, cases / 4);
    EXPECT_LT(at_page, cases * 3 / 4);
  }
}

TEST(Session, FarElementsMayEndAtAPage) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Case c = far_case();
    c.schedule_seed = seed;
    Outputs outputs;
    const MemoryReport report = report_of(c, copy_q, &outputs);
    EXPECT_TRUE(report.damaged_guards.empty() && report.unwritten_outputs.empty());
    const Inputs inputs = make_inputs(c.problem, {.seed = 4});
    EXPECT_TRUE(std::ranges::equal(outputs[forward::o].values(), inputs[forward::q].values()));
  }
}

// A worker finds each tensor by the buffer that holds its address.
TEST(Session, TensorsOfAPoolWithoutPagesLieInItsBuffer) {
  Case c;
  c.kernel = "test";
  c.problem = {.query_len = 1, .key_len = 0, .head_dim = 1024};
  c.layouts = ForwardLayouts{.k = {DimOrder::bhnd, 3, 16}};
  c.layouts.paging = {.page_size = 16, .joins_kv = true};
  KernelInfo kernel;
  kernel.launch = [](const ForwardArguments& a, Device&) { copy_q(a); };
  HostMemoryDevice device;
  const Session session(kernel, c, make_inputs(c.problem, c.inputs), device);
  for (const InputIndex input : {forward::q, forward::k, forward::v}) {
    EXPECT_NE(device.buffer_at(session.arguments()[input].data), nullptr) << input.number;
  }
}

}  // namespace
}  // namespace attest
