// The laws about what a kernel keeps from one call to the next, each against a kernel that keeps
// it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <vector>

#include "core/operations/backward_arguments.hpp"
#include "core/operations/combine_arguments.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

Case case_of(const std::string& kernel, const std::string& problem,
             const std::string& operation = "forward") {
  Case c{.kernel = kernel, .inputs = {.seed = 11}};
  c.problem = problem_from_string(operation == "forward" ? problem : problem + ' ' + operation);
  c.plan = find_kernel(kernel, Executor::cpu)->plans(c.problem).front();
  return c;
}

using Keeps = std::function<bool(const Arguments&)>;

/// One element of the first output that the case has, however it is packed.
void spoil(const Arguments& a) {
  auto* const first = static_cast<float*>(a.outputs.front().data);
  *first += 0.5F + *first;
}

/// `is_stale`, asked at every launch, says whether the kernel answers with what it kept.
CaseVerdict judged(const std::string& law, const Case& c, const Keeps& is_stale, Device& device,
                   const std::function<void(KernelInfo&)>& change = {}) {
  const KernelInfo* correct = find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = *correct;
  kernel.launch = [&](const Arguments& a, Device& given) {
    correct->launch(a, given);
    if (is_stale(a)) spoil(a);
  };
  if (change) change(kernel);
  attest::Run run(kernel, c, device);
  return verify_case(run, {.glob = law, .every_law = true});
}

bool never(const Arguments& /*arguments*/) {
  return false;
}

/// The law is asked, holds for the kernel as it is and fails for one that keeps something.
void expect_caught(const std::string& law, const Case& c, const Keeps& is_stale,
                   const std::function<void(KernelInfo&)>& change = {}) {
  HostMemoryDevice device;
  const CaseVerdict honest = judged(law, c, never, device, change);
  EXPECT_EQ(honest.verdict, Verdict::passed) << to_string(c) << honest.reason;
  EXPECT_EQ(honest.checked_laws, std::vector<std::string>{law}) << to_string(c);
  EXPECT_EQ(judged(law, c, is_stale, device, change).verdict, Verdict::failed) << to_string(c);
}

/// Copy of what an array held when the kernel was first called with sizes like these.
template <typename T>
class Kept {
 public:
  /// True if that is something else than now.
  bool is_stale(const Problem& p, const T* now, std::int64_t count) {
    if (now == nullptr) return false;
    const std::vector<T> values(now, now + count);
    return by_sizes_.try_emplace({p.batch, p.query_len, p.key_len}, values).first->second != values;
  }

 private:
  std::map<std::array<std::int64_t, 3>, std::vector<T>> by_sizes_;
};

TEST(StateLaws, LengthsKeptByTheSizesOfTheBatchAreCaughtInEveryOperation) {
  for (const Case& c : {case_of("m6_every_shape", "b3 h4/2 q17 k23 d16 lengths4"),
                        case_of("m6_every_shape", "b4 h2/1 n21 d16 lengths7 causal_bottom_right"),
                        case_of("backward_standard", "b3 h2/1 q9 k12 d8 lengths4", "backward"),
                        case_of("quantised_rows", "b3 h2/1 q9 k12 d16 lengths4", "quantised")}) {
    Kept<std::int32_t> queries, keys;
    expect_caught("indices_may_change", c, [&](const Arguments& a) {
      const std::int64_t count = a.problem.batch + 1;
      const bool has_other_queries = queries.is_stale(a.problem, a.query_starts, count);
      return keys.is_stale(a.problem, a.key_starts, count) || has_other_queries;
    });
  }
}

TEST(StateLaws, AKeyMaskOrAPageTableThatIsKeptIsCaught) {
  for (const Case& c : {case_of("m6_every_shape", "b2 h2/2 q9 k20 d16 padding6"),
                        case_of("m6_every_shape", "b5 h2/2 q9 k20 d16 padding9 lengths4"),
                        case_of("backward_standard", "b2 h2/2 q9 k20 d8 padding6", "backward")}) {
    Kept<std::uint8_t> mask;
    expect_caught("indices_may_change", c, [&](const Arguments& a) {
      return mask.is_stale(a.problem, a.key_mask, a.problem.batch * a.problem.key_len);
    });
  }
  Case paged = case_of("o5_deferred", "b3 h4/2 q2 k21 d16");
  paged.layouts.paging = {.page_size = 8, .shuffle_seed = 5};
  Kept<std::int32_t> pages;
  expect_caught("indices_may_change", paged, [&](const Arguments& a) {
    return pages.is_stale(a.problem, a.page_table.pages, a.page_table.table_size);
  });
}

TEST(StateLaws, LengthsKeptByTheAddressOfTheirArrayAreCaught) {
  std::map<const std::int32_t*, std::vector<std::int32_t>> kept;
  expect_caught("indices_may_change", case_of("m6_every_shape", "b3 h4/2 q17 k23 d16 lengths4"),
                [&](const Arguments& a) {
                  const std::vector<std::int32_t> now(a.query_starts, a.query_starts + 4);
                  return kept.try_emplace(a.query_starts, now).first->second != now;
                });
}

TEST(StateLaws, APlanKeptByTooSmallAKeyIsCaughtInEveryOperation) {
  struct Row {
    Case the_case;
    std::int64_t Problem::*size;
  };
  // Each differs in one size of the call between; the case's seed draws which.
  for (const Row& row :
       {Row{case_of("m6_every_shape", "b2 h4/2 q9 k23 d16"), &Problem::key_len},
        Row{case_of("m6_every_shape", "b2 h4/2 q9 k23 d16"), &Problem::batch},
        Row{case_of("backward_tiled", "b2 h2/1 q9 k12 d8", "backward"), &Problem::query_len},
        Row{case_of("quantised_rows", "b3 h2/1 q9 k12 d16", "quantised"), &Problem::key_len},
        Row{case_of("combine_parts", "b2 h3/3 q5 d7 parts3", "combine"), &Problem::parts}}) {
    int caught = 0;
    for (std::uint64_t seed = 0; seed < 40; ++seed) {
      Case c = row.the_case;
      c.inputs.seed = seed;
      if (c.problem.operation->name == "combine") c.inputs.family = "partial_normal";
      HostMemoryDevice device;
      EXPECT_EQ(judged("other_problem_between", c, never, device).verdict, Verdict::passed);
      std::optional<std::int64_t> first;
      const CaseVerdict verdict = judged(
          "other_problem_between", c,
          [&](const Arguments& a) {
            if (!first) first = a.problem.*row.size;
            return a.problem.*row.size != *first;
          },
          device);
      if (verdict.verdict == Verdict::failed) ++caught;
    }
    EXPECT_GT(caught, 1) << to_string(row.the_case);
    EXPECT_LT(caught, 40) << "of calls that differ elsewhere it keeps nothing";
  }
}

TEST(StateLaws, ACallThatChangesWhatComesAfterItIsCaught) {
  std::optional<Problem> last;
  bool has_changed = false;
  expect_caught("other_problem_between", case_of("m6_every_shape", "b2 h4/2 q9 k23 d16"),
                [&](const Arguments& a) {
                  if (!last) last = a.problem;
                  has_changed = has_changed || a.problem != *last;
                  return has_changed && a.problem == *last;
                });
}

TEST(StateLaws, AWorkspaceTakenAsItWasLeftIsCaught) {
  // A flag of the launch before says that a sum is there already. NaN is no such flag.
  for (const Case& c : {case_of("o5_deferred", "b2 h4/2 q9 k23 d16"),
                        case_of("backward_standard", "b2 h2/1 q9 k12 d8", "backward")}) {
    static constexpr float is_done = 1;
    expect_caught(
        "leftovers_irrelevant", c,
        [](const Arguments& a) {
          return std::exchange(static_cast<float*>(a.workspace)[5], is_done) == is_done;
        },
        [](KernelInfo& kernel) {
          kernel.workspace_bytes = [](const Problem&, const Plan&) { return std::size_t{64}; };
        });
  }
  HostMemoryDevice device;
  const Case c = case_of("o5_deferred", "b2 h4/2 q9 k23 d16");
  EXPECT_TRUE(judged("leftovers_irrelevant", c, never, device).checked_laws.empty())
      << "it has no workspace";
}

/// Host memory that records launches: what a kernel's host side does at a launch is done once, what
/// its device side does at every replay.
class RecordingHost final : public Device {
 public:
  enum class Side { both, host, device };
  Side side = Side::both;  ///< of a launch that does its work now
  std::string refusal{};   ///< why nothing can be recorded

  [[nodiscard]] bool records() const override { return true; }
  [[nodiscard]] std::unique_ptr<Recording> record(const std::function<void()>& work) override {
    if (!refusal.empty()) throw MachineError(refusal);
    side = Side::host;
    work();
    side = Side::both;
    return std::make_unique<Work>(*this, work);
  }
  [[nodiscard]] std::byte* upload(const BufferImage& image) override {
    return memory_.upload(image);
  }
  void download(const std::byte* from, std::span<std::byte> to) override {
    memory_.download(from, to);
  }
  void release(std::byte* buffer) noexcept override { memory_.release(buffer); }
  void synchronize() override {}
  [[nodiscard]] double time_ms(const std::function<void()>& work) override {
    return memory_.time_ms(work);
  }
  [[nodiscard]] std::string description() const override { return "host that records"; }

 private:
  struct Work final : Recording {
    Work(RecordingHost& host, std::function<void()> recorded)
        : host_(host), work(std::move(recorded)) {}
    void replay() override {
      host_.side = Side::device;
      work();
      host_.side = Side::both;
    }
    RecordingHost& host_;
    std::function<void()> work;
  };
  HostMemoryDevice memory_;
};

/// A kernel whose host side reads an array and hands it to its device side.
template <typename T>
CaseVerdict verdict_of_graph(const Case& c, bool reads_on_host, bool reads_lengths,
                             const std::function<std::vector<T>(const Arguments&)>& array_of,
                             RecordingHost& device) {
  const KernelInfo* correct = find_kernel(c.kernel, Executor::cpu);
  std::vector<T> handed_over;
  return judged("graph_may_be_replayed", c, never, device, [&](KernelInfo& kernel) {
    kernel.reads_lengths = reads_lengths;
    kernel.launch = [&, correct, reads_on_host](const Arguments& a, Device& given) {
      using Side = RecordingHost::Side;
      if (device.side != Side::device) handed_over = array_of(a);
      if (device.side == Side::host) return;
      correct->launch(a, given);
      if (reads_on_host && handed_over != array_of(a)) spoil(a);
    };
  });
}

TEST(StateLaws, AGraphThatHoldsLengthsPagesAMaskOrValuesIsCaught) {
  Case paged = case_of("o5_deferred", "b3 h4/2 q2 k21 d16");
  paged.layouts.paging = {.page_size = 8, .shuffle_seed = 5};
  const auto bytes_of = [](const void* data, std::int64_t count) {
    const auto* const first = static_cast<const std::uint8_t*>(data);
    return std::vector<std::uint8_t>(first, first + count);
  };
  using Array = std::function<std::vector<std::uint8_t>(const Arguments&)>;
  const std::vector<std::pair<Case, Array>> rows{
      {case_of("m6_every_shape", "b3 h4/2 q17 k23 d16 lengths4"),
       [&](const Arguments& a) { return bytes_of(a.query_starts, 16); }},
      {case_of("m6_every_shape", "b2 h2/2 q9 k20 d16 padding6"),
       [&](const Arguments& a) { return bytes_of(a.key_mask, 40); }},
      {paged,
       [&](const Arguments& a) {
         return bytes_of(a.page_table.pages, 4 * a.page_table.table_size);
       }},
      {case_of("backward_standard", "b2 h2/1 q9 k12 d8", "backward"),
       [&](const Arguments& a) { return bytes_of(a[backward::d_o].data, 32); }}};
  for (const auto& [c, array_of] : rows) {
    for (const bool reads_on_host : {false, true}) {
      RecordingHost device;
      const CaseVerdict verdict =
          verdict_of_graph<std::uint8_t>(c, reads_on_host, true, array_of, device);
      EXPECT_EQ(verdict.verdict, reads_on_host ? Verdict::failed : Verdict::passed) << to_string(c);
      EXPECT_EQ(verdict.checked_laws, std::vector<std::string>{"graph_may_be_replayed"});
    }
  }
}

TEST(StateLaws, AGraphKeepsItsLengthsWhereAKernelDoesNotSayThatItReadsThem) {
  const Case c = case_of("m6_every_shape", "b3 h4/2 q17 k23 d16 lengths4");
  RecordingHost device;
  const CaseVerdict verdict = verdict_of_graph<std::int32_t>(
      c, true, false,
      [](const Arguments& a) {
        return std::vector<std::int32_t>(a.query_starts, a.query_starts + 4);
      },
      device);
  EXPECT_EQ(verdict.verdict, Verdict::passed);
}

TEST(StateLaws, WhatCannotBeCapturedIsDeclinedAndSaidAndElsewhereNotAsked) {
  const Case c = case_of("o5_deferred", "b2 h4/2 q9 k23 d16");
  RecordingHost device;
  device.refusal = "cudaMalloc while a stream is captured";
  const CaseVerdict verdict = judged("graph_may_be_replayed", c, never, device);
  EXPECT_EQ(verdict.verdict, Verdict::passed);
  EXPECT_TRUE(verdict.checked_laws.empty()) << "nothing was checked";
  EXPECT_EQ(verdict.declined,
            std::vector<std::string>{"graph_may_be_replayed: cannot be captured: cudaMalloc while "
                                     "a stream is captured"});
  HostMemoryDevice host;
  const CaseVerdict elsewhere = judged("graph_may_be_replayed", c, never, host);
  EXPECT_TRUE(elsewhere.checked_laws.empty());
  EXPECT_TRUE(elsewhere.declined.empty());
}

}  // namespace
}  // namespace attest
