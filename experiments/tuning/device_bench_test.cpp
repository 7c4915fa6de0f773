// The bench on the executor, where every kernel runs.
#include "experiments/tuning/device_bench.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"

namespace attest {
namespace {

const KernelInfo& k3() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

struct OnExecutor {
  std::unique_ptr<Device> device = make_device(Executor::simt);
  InProcessRunner runner;
  SmallCases small_cases{runner};
  Problem problem = problem_from_string("b2 h4/2 q17 k33 d24 causal_bottom_right fp32");

  /// Of the first Plan.
  std::string why_wrong(const KernelInfo& kernel) {
    DeviceBench bench(kernel, problem, *device, small_cases);
    return bench.why_wrong(kernel.plans(problem).front()).value_or("");
  }
};

/// K3 with something else in the place of its launch when there is more than one batch: what small
/// cases, which have one, do not show.
KernelInfo wrong_in_batches(void (*launch)(const KernelInfo&, ForwardArguments, Device&)) {
  KernelInfo kernel = k3();
  kernel.launch = [launch](const ForwardArguments& a, Device& device) {
    a.problem.batch > 1 ? launch(k3(), a, device) : k3().launch(a, device);
  };
  return kernel;
}

TEST(DeviceBench, FindsEveryPlanOfARightKernelRight) {
  OnExecutor here;
  DeviceBench bench(k3(), here.problem, *here.device, here.small_cases);
  for (const Plan& plan : k3().plans(here.problem)) {
    EXPECT_EQ(bench.why_wrong(plan), std::nullopt) << to_string(plan);
  }
  EXPECT_GT(bench.time_ms(k3().plans(here.problem).front()), 0);
}

TEST(DeviceBench, NamesTheLawThatAPlantedBugBreaks) {
  for (const char* mutant :
       {"mutant/c05_tail_lanes_in_denominator", "mutant/c17_key_row_out_of_bounds",
        "mutant/c03_tile_pointer_not_advanced"}) {
    OnExecutor here;
    const KernelInfo* const kernel = find_kernel(mutant, Executor::simt);
    ASSERT_NE(kernel, nullptr) << mutant;
    EXPECT_NE(here.why_wrong(*kernel).find(kernel->killed_by), std::string::npos)
        << mutant << ": " << here.why_wrong(*kernel);
  }
}

TEST(DeviceBench, FindsWhatIsWrongWithTheWholeProblemAlone) {
  OnExecutor here;
  const KernelInfo silent = wrong_in_batches([](const KernelInfo&, ForwardArguments, Device&) {});
  EXPECT_NE(here.why_wrong(silent).find("was not written"), std::string::npos);
  const KernelInfo warm =
      wrong_in_batches([](const KernelInfo& right, ForwardArguments a, Device& d) {
        a.problem.scale *= 1.01F;
        right.launch(a, d);
      });
  EXPECT_NE(here.why_wrong(warm).find("within"), std::string::npos);
  const KernelInfo shy =
      wrong_in_batches([](const KernelInfo& right, ForwardArguments a, Device& d) {
        std::byte* const elsewhere =
            d.allocate(static_cast<std::size_t>(a.problem.rows() * 24 * 4));
        a.o = elsewhere;  // LSE is written, O is not
        right.launch(a, d);
        d.synchronize();
        d.release(elsewhere);
      });
  EXPECT_NE(here.why_wrong(shy).find("O at"), std::string::npos) << here.why_wrong(shy);
}

/// Attention as it is defined, in double, on host memory; wrong by 1 % for the entry `wrong`.
KernelInfo by_definition(std::int64_t wrong = -1) {
  KernelInfo kernel;
  kernel.name = "by_definition";
  kernel.precision = [](const Problem&, const Plan&) { return PrecisionPlan{}; };
  kernel.plans = [](const Problem&) { return std::vector<Plan>{{}}; };
  kernel.launch = [wrong](const ForwardArguments& a, Device&) {
    const Problem& p = a.problem;
    const auto read = [](const void* data, std::int64_t element) {
      return static_cast<double>(static_cast<const float*>(data)[element]);
    };
    const auto first = [](const std::int32_t* starts, std::int64_t entry) {
      return starts == nullptr ? 0 : std::int64_t{starts[entry]};
    };
    const std::int64_t all_queries =
        a.query_starts == nullptr ? p.query_len : std::int64_t{a.query_starts[p.batch]};
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t slot = a.query_starts == nullptr ? b : 0;
      const double scale = static_cast<double>(p.scale) * (b == wrong ? 1.01 : 1.0);
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.query_len_of(b); ++i) {
          const std::int64_t row = first(a.query_starts, b) + i;
          double sum = 0;
          std::vector<double> o(static_cast<std::size_t>(p.output_dim()));
          for (std::int64_t j = 0; j < p.key_len_of(b); ++j) {
            const bool is_hidden = a.key_mask != nullptr && a.key_mask[b * p.key_len + j] == 0;
            if (!p.visible_range(b, i).holds(j) || is_hidden) continue;
            const std::int64_t key = first(a.key_starts, b) + j, head = p.kv_head_of(h);
            double dot = 0;
            for (std::int64_t d = 0; d < p.head_dim; ++d) {
              dot += read(a.q, a.q_strides.offset(slot, h, row) + d) *
                     read(a.k, a.k_strides.offset(slot, head, key) + d);
            }
            const auto cap = static_cast<double>(p.softcap);
            const double score = cap > 0 ? cap * std::tanh(scale * dot / cap) : scale * dot;
            const double weight = std::exp(score);
            sum += weight;
            for (std::size_t d = 0; d < o.size(); ++d) {
              o[d] += weight *
                      read(a.v, a.v_strides.offset(slot, head, key) + static_cast<std::int64_t>(d));
            }
          }
          for (std::size_t d = 0; d < o.size(); ++d) {
            static_cast<float*>(
                a.o)[a.o_strides.offset(slot, h, row) + static_cast<std::int64_t>(d)] =
                static_cast<float>(sum > 0 ? o[d] / sum : 0.0);
          }
          a.lse[(slot * p.query_heads + h) * all_queries + row] = static_cast<float>(std::log(sum));
        }
      }
    }
  };
  return kernel;
}

TEST(DeviceBench, KnowsWhereRowsAreAndWhichKeysTheySee) {
  struct Trusting final : CaseRunner {
    CaseAnswer run(const KernelInfo&, const CaseTask&) override { return {}; }
  } runner;
  SmallCases small_cases(runner);
  const auto device = make_device(Executor::cpu);
  const KernelInfo right_kernel = by_definition();
  for (const std::string problem :
       {"b3 h4/2 q19 k33 d24", "b3 h4/2 q33 k19 d24 causal_bottom_right",
        "b3 h4/2 q19 k33 d24 window_bottom_right left5 right2", "b3 h4/2 q19 k33 d24 padding3",
        "b9 h4/2 q19 k33 d24 lengths6", "b9 h4/2 n33 d24 causal_top_left lengths7 padding3",
        "b3 h4/2 n33 d24 softcap2", "b3 h4/2 n33 d24 dv40", "b9 h4/2 n33 d24 dv8 lengths6",
        "b1 h2/2 q0 k9 d24"}) {
    const Problem p = problem_from_string(problem);
    DeviceBench right(right_kernel, p, *device, small_cases);
    // Of one row in double the definition is within the bound of any plan that rounds to fp32.
    EXPECT_EQ(right.why_wrong({}), std::nullopt) << problem;
  }
  int found = 0;
  const Problem p = problem_from_string("b9 h4/2 q19 k33 d24 lengths6");
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    const KernelInfo wrong_kernel = by_definition(entry);
    DeviceBench wrong(wrong_kernel, p, *device, small_cases);
    found += wrong.why_wrong({}).has_value();
  }
  EXPECT_GE(found, 2);  // four rows of several entries are looked at
}

TEST(SmallCases, AreOfTheSameKindAndJudgedOnceForAllLengths) {
  struct CountingRunner final : CaseRunner {
    int calls = 0;
    CaseAnswer run(const KernelInfo&, const CaseTask& task) override {
      ++calls;
      EXPECT_LE(task.the_case.problem.key_len, 4 * 16 + 1);
      return {};
    }
  } runner;
  SmallCases cases(runner);
  const Plan plan{.query_tile = 16, .key_tile = 16};
  for (const char* text : {"b4 h8/8 n4096 d64", "b2 h8/8 n8192 d64", "b1 h2/2 n70 d64"}) {
    EXPECT_EQ(cases.why_wrong(k3(), problem_from_string(text), plan), std::nullopt);
  }
  EXPECT_EQ(runner.calls, 1);
  for (const char* text : {"h8/8 n4096 d64 causal_top_left", "h8/8 n4096 d32", "h8/4 n4096 d64",
                           "h8/8 q1 k4096 d64", "h8/8 n4096 d64 scale2"}) {
    EXPECT_EQ(cases.why_wrong(k3(), problem_from_string(text), plan), std::nullopt);
  }
  EXPECT_EQ(runner.calls, 6);
}

}  // namespace
}  // namespace attest
