#include "experiments/timing/timed_problem.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <memory>

#include "core/operations/backward_arguments.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/rounding/chain_error.hpp"
#include "experiments/timing/gate.hpp"
#include "experiments/timing/sampled_rows.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

const KernelInfo& k3() {
  return *find_kernel("k3_sequence_parallel", Executor::simt);
}

/// On the executor, where every kernel runs.
struct OnExecutor {
  std::unique_ptr<Device> device = make_device(Executor::simt);
  Gate gate{[] { return std::make_unique<InProcessRunner>(); }};
  Problem problem = problem_from_string("b2 h4/2 q17 k33 d24 causal_bottom_right fp32");

  /// Of the first Plan.
  std::string why_wrong(const KernelInfo& kernel) {
    return why_wrong(kernel, kernel.plans(problem).front());
  }
  std::string why_wrong(const KernelInfo& kernel, const Plan& plan) {
    if (auto why = gate.why_wrong({&kernel, problem, plan})) return *why;
    ResidentProblem resident(problem, {}, *device);
    return launch_and_sample(resident, kernel, plan).why_wrong().value_or("");
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

TEST(VerifiedBeforeTimed, every_plan_of_a_right_kernel_is_found_right) {
  OnExecutor here;
  for (const Plan& plan : k3().plans(here.problem)) {
    EXPECT_EQ(here.why_wrong(k3(), plan), "") << to_string(plan);
  }
}

TEST(VerifiedBeforeTimed, a_planted_bug_is_named_by_the_law_that_it_breaks) {
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

TEST(VerifiedBeforeTimed, what_is_wrong_with_the_whole_problem_alone_is_found) {
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
    const auto key_offset = [&](const Strides& strides, std::int64_t b, std::int64_t head,
                                std::int64_t j) {
      const std::int64_t size = a.page_table.page_size;
      if (size > 0) return strides.offset(a.page_table.of(b)[j / size], head, j % size);
      return strides.offset(a.key_starts == nullptr ? b : 0, head, first(a.key_starts, b) + j);
    };
    const std::int64_t all_queries =
        a.query_starts == nullptr ? p.query_len : std::int64_t{a.query_starts[p.batch]};
    for (std::int64_t b = 0; b < p.batch; ++b) {
      const std::int64_t slot = a.query_starts == nullptr ? b : 0;
      const double scale = static_cast<double>(p.scale) * (b == wrong ? 1.01 : 1.0);
      for (std::int64_t h = 0; h < p.query_heads; ++h) {
        for (std::int64_t i = 0; i < p.query_len_of(b); ++i) {
          const std::int64_t row = first(a.query_starts, b) + i;
          double sum = a.sinks == nullptr ? 0 : std::exp(read(a.sinks, h));
          std::vector<double> o(static_cast<std::size_t>(p.output_dim()));
          for (std::int64_t j = 0; j < p.key_len_of(b); ++j) {
            const bool is_hidden = a.key_mask != nullptr && a.key_mask[b * p.key_len + j] == 0;
            if (!p.visible_range(b, i).holds(j) || is_hidden || !p.is_listed(b, i, j)) continue;
            const std::int64_t head = p.kv_head_of(h);
            double dot = 0;
            for (std::int64_t d = 0; d < p.head_dim; ++d) {
              dot += read(a.q, a.q_strides.offset(slot, h, row) + d) *
                     read(a.k, key_offset(a.k_strides, b, head, j) + d);
            }
            const auto cap = static_cast<double>(p.softcap);
            double score = cap > 0 ? cap * std::tanh(scale * dot / cap) : scale * dot;
            if (a.slopes != nullptr) {
              score -=
                  read(a.slopes, h) *
                  std::abs(static_cast<double>(key_distance(p.mask, p.query_len, p.key_len, i, j)));
            }
            if (a.bias != nullptr) score += read(a.bias, a.bias_strides.offset(b, h, i) + j);
            const double weight = std::exp(score);
            sum += weight;
            for (std::size_t d = 0; d < o.size(); ++d) {
              o[d] += weight *
                      read(a.v, key_offset(a.v_strides, b, head, j) + static_cast<std::int64_t>(d));
            }
          }
          for (std::size_t d = 0; d < o.size(); ++d) {
            const auto column = static_cast<std::int64_t>(d);
            double x = sum > 0 ? o[d] / sum : 0.0;
            if (a.gate != nullptr) x *= read(a.gate, a.gate_strides.offset(slot, h, row) + column);
            if (a.residual != nullptr) {
              x += read(a.residual, a.residual_strides.offset(slot, h, row) + column);
            }
            static_cast<float*>(a.o)[a.o_strides.offset(slot, h, row) + column] =
                static_cast<float>(x);
          }
          a.lse[(slot * p.query_heads + h) * all_queries + row] = static_cast<float>(std::log(sum));
        }
      }
    }
  };
  return kernel;
}

TEST(ResidentProblem, knows_where_rows_are_and_which_keys_they_see) {
  const auto device = make_device(Executor::cpu);
  const KernelInfo right_kernel = by_definition();
  for (const std::string problem : {"b3 h4/2 q19 k33 d24",
                                    "b3 h4/2 q33 k19 d24 causal_bottom_right",
                                    "b3 h4/2 q19 k33 d24 window_bottom_right left5 right2",
                                    "b3 h4/2 q19 k33 d24 padding3",
                                    "b9 h4/2 q19 k33 d24 lengths6",
                                    "b9 h4/2 n33 d24 causal_top_left lengths7 padding3",
                                    "b3 h4/2 q19 k33 d24 lists4 listrows4 listkeys8",
                                    "b3 h4/2 n33 d24 documents3",
                                    "b3 h4/2 n33 d24 causal_top_left prefix5",
                                    "b3 h4/2 n33 d24 softcap2",
                                    "b3 h4/2 q19 k33 d24 sinks_given",
                                    "b3 h4/2 q19 k33 d24 gate_given",
                                    "b3 h4/2 q19 k33 d24 bias_full",
                                    "b3 h4/2 q19 k33 d24 causal_bottom_right bias_heads",
                                    "b3 h4/2 q19 k33 d24 padding3 bias_shared",
                                    "b9 h4/2 q19 k33 d24 dv7 lengths6 gate_given residual_given",
                                    "b3 h4/2 n33 d24 causal_top_left sinks_given slopes_given",
                                    "b3 h4/2 n33 d24 window_top_left left5 right0 slopes_given",
                                    "b3 h4/2 n33 d24 dv40",
                                    "b9 h4/2 n33 d24 dv8 lengths6",
                                    "b1 h2/2 q0 k9 d24"}) {
    const Problem p = problem_from_string(problem);
    ResidentProblem right(p, {}, *device);
    // Of one row in double the definition is within the bound of any plan that rounds to fp32.
    EXPECT_EQ(launch_and_sample(right, right_kernel, {}).why_wrong(), std::nullopt) << problem;
  }
  int found = 0;
  const Problem p = problem_from_string("b9 h4/2 q19 k33 d24 lengths6");
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    const KernelInfo wrong_kernel = by_definition(entry);
    ResidentProblem wrong(p, {}, *device);
    found += launch_and_sample(wrong, wrong_kernel, {}).why_wrong().has_value();
  }
  EXPECT_GE(found, 2);  // four rows of several entries are looked at
}

TEST(ResidentProblem, refuses_scores_that_a_row_alone_has_not) {
  const auto device = make_device(Executor::cpu);
  for (const std::string problem :
       {"n9 d8 slopes_given", "q9 k12 d8 causal_bottom_right slopes_given",
        "n9 d8 window_top_left left3 right1 slopes_given", "n9 d8 dropout0.5",
        "n9 d8 bias_full backward", "n9 d8 causal_top_left slopes_given backward"}) {
    EXPECT_THROW(ResidentProblem(problem_from_string(problem), {}, *device), InvalidInput)
        << problem;
  }
}

Problem gradients_of(const std::string& text) {
  Problem problem = problem_from_string(text);
  problem.operation = &backward_operation;
  return problem;
}

TEST(ResidentProblem, compares_rows_of_keys_where_outputs_have_them) {
  const auto device = make_device(Executor::cpu);
  const KernelInfo& right = *find_kernel("backward_tiled", Executor::cpu);
  for (const std::string text :
       {"b3 h4/2 q19 k33 d24", "b3 h4/2 q33 k19 d24 causal_bottom_right bf16",
        "b3 h4/2 q19 k33 d24 window_bottom_right left5 right2 dv40", "b3 h4/2 q19 k33 d24 padding3",
        "b9 h4/2 q19 k33 d24 lengths6", "b9 h4/2 n33 d24 causal_top_left lengths7 padding3 fp16",
        "b3 h4/2 q19 k33 d24 sinks_given", "b3 h4/2 n33 d24 causal_top_left documents3 sinks_given",
        "b1 h2/2 q0 k9 d24", "b1 h2/2 q9 k0 d24"}) {
    ResidentProblem resident(gradients_of(text), {}, *device);
    const Plan plan = right.plans(resident.problem()).front();
    EXPECT_EQ(launch_and_sample(resident, right, plan, 12).why_wrong(), std::nullopt) << text;
  }
  ResidentProblem resident(gradients_of("b2 h4/2 q19 k33 d24"), {}, *device);
  for (const auto& [mutant, output] :
       {std::pair("b01_delta_missing", "dQ"), std::pair("b04_dv_from_ds", "dV"),
        std::pair("b09_dk_scaled_twice", "dK")}) {
    const KernelInfo& wrong = *find_kernel(std::string("mutant/") + mutant, Executor::cpu);
    const auto why =
        launch_and_sample(resident, wrong, wrong.plans(resident.problem()).front()).why_wrong();
    EXPECT_TRUE(why && why->find(output) == 0) << mutant << ": " << why.value_or("found right");
  }
}

/// First row of what a backward pass is given, which sees the first key alone, of 8 columns.
struct FirstRow {
  const float *o, *v;
  float lse;
  const float* sinks;
  double score = 0, score_error = 0;  ///< error of the dot product and the scale
};

/// Looks at it with three draws of the inputs, the first one twice.
void look_at_first_rows(const Problem& problem, const std::function<void(const FirstRow&)>& look) {
  const auto device = make_device(Executor::cpu);
  ResidentProblem resident(problem, {}, *device);
  KernelInfo reader = *find_kernel("backward_tiled", Executor::cpu);
  int looked = 0;
  reader.launch = [&](const BackwardArguments& a, Device&) {
    const auto* const q = static_cast<const float*>(a.q);
    const auto* const k = static_cast<const float*>(a.k);
    FirstRow row{.o = static_cast<const float*>(a.o),
                 .v = static_cast<const float*>(a.v),
                 .lse = a.lse[0],
                 .sinks = a.sinks};
    double absolute = 0;
    for (int c = 0; c < 8; ++c) {
      row.score += problem.scale * double{q[c]} * double{k[c]};
      absolute += std::abs(double{q[c]} * double{k[c]});
    }
    // With the maximum's addition of the logarithm.
    row.score_error = chain_error(8 + 2, 0x1p-24) * problem.scale * absolute;
    look(row);
    ++looked;
  };
  for (const std::size_t draw : {0, 1, 0}) {
    resident.put_values(draw);
    resident.launch(reader, reader.plans(problem).front());
  }
  EXPECT_EQ(looked, 3);
}

TEST(ResidentProblem, gives_a_backward_pass_what_a_forward_pass_gave) {
  look_at_first_rows(gradients_of("b1 h1 n7 d8 causal_top_left"), [](const FirstRow& row) {
    for (int c = 0; c < 8; ++c) EXPECT_EQ(row.o[c], row.v[c]);
    EXPECT_LE(std::abs(row.lse - row.score), row.score_error);
  });
}

TEST(ResidentProblem, gives_a_backward_pass_the_sinks_of_the_forward_pass_too) {
  const auto problem = gradients_of("b1 h1 n7 d8 causal_top_left sinks_given");
  look_at_first_rows(problem, [](const FirstRow& row) {
    const double sink = row.sinks[0], largest = std::max(row.score, sink);
    const double sum = std::exp(row.score - largest) + std::exp(sink - largest);
    const double weight = std::exp(row.score - largest) / sum;
    // Both exponentials and their sum, as errors of the sum, of 2 u each for expf and of u for the
    // difference in it, which is below 2^4; the logarithm, and the maximum that is added to it.
    const double sum_error = row.score_error + chain_error(3 + 16, 0x1p-24);
    EXPECT_LE(std::abs(row.lse - (largest + std::log(sum))),
              sum_error + chain_error(2 + 1, 0x1p-24) * (std::abs(largest) + 1));
    // O has these twice, in the weight and in the sum, and is divided.
    for (int c = 0; c < 8; ++c) {
      const double want = weight * double{row.v[c]};
      EXPECT_LE(std::abs(row.o[c] - want),
                (2 * sum_error + chain_error(2, 0x1p-24)) * std::abs(want))
          << "column " << c;
    }
  });
}

TEST(ResidentProblem, knows_where_keys_in_pages_are) {
  const auto device = make_device(Executor::cpu);
  const KernelInfo right_kernel = by_definition();
  // Every page is taken for the one behind it.
  KernelInfo wrong_kernel = right_kernel;
  wrong_kernel.launch = [right_kernel](ForwardArguments a, Device& d) {
    std::vector<std::int32_t> pages(a.page_table.pages,
                                    a.page_table.pages + a.page_table.table_size);
    for (std::int32_t& page : pages) {
      page = static_cast<std::int32_t>((page + 1) % a.page_table.pool_pages);
    }
    a.page_table.pages = pages.data();
    right_kernel.launch(a, d);
  };
  for (const char* paging :
       {"paged1", "paged3/csr/shuffled7", "paged16/shared/large", "paged64/spare2/large"}) {
    for (const char* problem : {"b3 h4/2 q19 k33 d24 shared20", "b3 h4/2 q1 k97 d24 shared70 dv40",
                                "b9 h4/2 q19 k33 d24 lengths6"}) {
      const Problem p = problem_from_string(problem);
      ResidentProblem resident(p, {}, *device, paging_from_string(paging));
      EXPECT_EQ(launch_and_sample(resident, right_kernel, {}, 12).why_wrong(), std::nullopt)
          << problem << " " << paging;
      EXPECT_TRUE(launch_and_sample(resident, wrong_kernel, {}, 12).why_wrong())
          << problem << " " << paging;
    }
  }
}

TEST(ResidentProblem, every_row_of_keys_in_pages_is_compared) {
  const KernelInfo& kernel = *find_kernel("decode_mma", Executor::simt);
  const auto device = make_device(Executor::simt);
  const Problem p = problem_from_string("b2 h4/2 q17 k33 d64 causal_bottom_right bf16");
  KernelInfo wrong = kernel;
  wrong.launch = [&kernel](const ForwardArguments& a, Device& d) {
    kernel.launch(a, d);
    d.synchronize();
    a.lse[a.problem.rows() - 10] += 1;
  };
  TimedProblem timed(p, {}, *device, {.paging = paging_from_string("paged16/shuffled3")});
  const Plan plan = kernel.plans(p).front();
  EXPECT_EQ(launch_and_sample(timed.resident(), wrong, plan, 2).why_wrong(), std::nullopt)
      << "two rows do not show it";
  EXPECT_EQ(timed.why_timed_answers_wrong(kernel, plan), std::nullopt);
  const auto why = timed.why_timed_answers_wrong(wrong, plan);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("LSE at"), std::string::npos) << *why;
}

// What it is compared with is read from the device, where the kernel could write.
TEST(ResidentProblem, a_kernel_that_changes_its_inputs_is_not_believed) {
  const KernelInfo& kernel = k3();
  const auto device = make_device(Executor::simt);
  const Problem p = problem_from_string("b1 h2/1 q17 k33 d24 fp32");
  KernelInfo wrong = kernel;
  wrong.launch = [&kernel](const ForwardArguments& a, Device& d) {
    auto* const v = static_cast<float*>(const_cast<void*>(a.v));
    std::fill_n(v + 7 * 24, 24, 0.0F);  // one key of many: sampled rows may see it, all rows must
    kernel.launch(a, d);
  };
  TimedProblem timed(p, {}, *device, {});
  const Plan plan = kernel.plans(p).front();
  timed.resident().put_values(1);
  (void)launch_and_sample(timed.resident(), wrong, plan, 0);
  const auto why = why_any_row_wrong(timed.resident(), wrong, plan);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("O at"), std::string::npos) << *why;
}

TEST(TimedProblem, a_timing_has_as_many_launches_as_fill_it) {
  int launched = 0;
  KernelInfo kernel = by_definition();
  kernel.timed_launch = [&](const ForwardArguments&, Device&, LaunchesInRow launches) {
    launched += launches.count;
    return 0.5;
  };
  const auto device = make_device(Executor::cpu);
  TimedProblem timed(problem_from_string("n9 d8"), {}, *device, {.shortest_ms = 2});
  EXPECT_EQ(timed.launches(kernel, {}), 4);
  EXPECT_EQ(timed.launches(kernel, {}), 4);
  EXPECT_EQ(launched, 2) << "it is found out once";
  EXPECT_EQ(timed.time_ms(kernel, {}), 0.5);
  EXPECT_EQ(launched, 2 + 4);
}

/// What a kernel could do so that it is fast when it is timed.
struct Cheat {
  const char* name;
  KernelInfo kernel;
};

/// By definition, but each launch after the first on the same addresses gives what the first gave.
KernelInfo remembering_by_address() {
  const KernelInfo right = by_definition();
  KernelInfo kernel = right;
  struct Memory {
    std::map<const void*, std::pair<std::vector<float>, std::vector<float>>> answers;
  };
  kernel.launch = [right, memory = std::make_shared<Memory>()](const ForwardArguments& a,
                                                               Device& device) {
    const auto rows = static_cast<std::size_t>(a.problem.rows());
    const std::size_t elements = rows * static_cast<std::size_t>(a.problem.output_dim());
    float* const o = static_cast<float*>(a.o);
    const auto known = memory->answers.find(a.q);
    if (known == memory->answers.end()) {
      right.launch(a, device);
      memory->answers[a.q] = {{o, o + elements}, {a.lse, a.lse + rows}};
    } else {
      std::ranges::copy(known->second.first, o);
      std::ranges::copy(known->second.second, a.lse);
    }
  };
  return kernel;
}

/// By definition, but only the first `honest` launches do anything.
KernelInfo idle_after(int honest) {
  const KernelInfo right = by_definition();
  KernelInfo kernel = right;
  kernel.launch = [right, honest, launched = std::make_shared<int>(0)](const ForwardArguments& a,
                                                                       Device& device) {
    if ((*launched)++ < honest) right.launch(a, device);
  };
  return kernel;
}

TEST(TimedProblem, a_kernel_that_is_right_once_and_remembers_is_caught_by_its_timed_answers) {
  // Of one_hot_v, V hangs on no seed.
  for (const char* family : {"normal", "one_hot_v"}) {
    for (const Cheat& cheat :
         {Cheat{"remembers what it gave for an address", remembering_by_address()},
          Cheat{"idles after two launches", idle_after(2)}}) {
      const auto device = make_device(Executor::cpu);
      TimedProblem timed(problem_from_string("b2 h2 n19 d24"), {.family = family}, *device);
      EXPECT_EQ(launch_and_sample(timed.resident(), cheat.kernel, {}).why_wrong(), std::nullopt)
          << "verification alone does not see that it " << cheat.name;
      timed.change_values();
      (void)timed.time_ms(cheat.kernel, {});
      timed.change_values();
      (void)timed.time_ms(cheat.kernel, {});
      EXPECT_TRUE(timed.why_timed_answers_wrong(cheat.kernel, {})) << cheat.name << ", " << family;
    }
    const auto device = make_device(Executor::cpu);
    TimedProblem timed(problem_from_string("b2 h2 n19 d24"), {.family = family}, *device);
    timed.change_values();
    EXPECT_EQ(timed.why_timed_answers_wrong(by_definition(), {}), std::nullopt) << family;
  }
}

TEST(TimedProblem, one_wrong_row_is_found_where_a_reference_looks_at_every_row) {
  OnExecutor here;
  KernelInfo kernel = k3();
  kernel.launch = [](const ForwardArguments& a, Device& device) {
    k3().launch(a, device);
    device.synchronize();
    const Problem& p = a.problem;
    static_cast<float*>(a.o)[a.o_strides.offset(p.batch - 1, p.query_heads - 1, 7)] *= 2;
  };
  TimedProblem timed(here.problem, {}, *here.device);
  const Plan plan = kernel.plans(here.problem).front();
  EXPECT_EQ(launch_and_sample(timed.resident(), kernel, plan, 2).why_wrong(), std::nullopt)
      << "two rows do not show it";
  const auto why = timed.why_timed_answers_wrong(kernel, plan);
  ASSERT_TRUE(why);
  EXPECT_NE(why->find("O at [1, 3, 7, 0]"), std::string::npos) << *why;
  EXPECT_EQ(timed.why_timed_answers_wrong(k3(), plan), std::nullopt);
}

TEST(TimedProblem, one_wrong_gradient_is_found_where_a_reference_looks_at_every_element) {
  const KernelInfo& right = *find_kernel("bwd_simple", Executor::simt);
  const auto device = make_device(Executor::simt);
  for (const char* const text :
       {"b2 h4/2 q17 k33 d24 causal_bottom_right fp16",
        "b3 h2/1 n19 d16 window_top_left left7 right2 dv8 lengths3 bf16"}) {
    const Problem p = gradients_of(text);
    TimedProblem timed(p, {}, *device);
    const Plan plan = right.plans(p).front();
    EXPECT_EQ(timed.why_timed_answers_wrong(right, plan), std::nullopt) << text;
    const auto starts = key_starts(p);
    const std::int64_t entry = p.batch - 1;
    const std::int64_t key = p.key_len_of(entry) / 2;
    KernelInfo wrong = right;
    wrong.launch = [&](const Arguments& all, Device& d) {
      right.launch(all, d);
      d.synchronize();
      const BackwardArguments a = all;
      const bool is_packed = p.length_seed != 0;
      const std::int64_t row = is_packed ? starts[static_cast<std::size_t>(entry)] + key : key;
      // The sign of one element, whose gradient is not 0.
      auto& element = static_cast<std::uint16_t*>(
          a.dv)[a.dv_strides.offset(is_packed ? 0 : entry, p.kv_heads - 1, row)];
      element = static_cast<std::uint16_t>(element ^ 0x8000U);
    };
    EXPECT_EQ(launch_and_sample(timed.resident(), wrong, plan, 2).why_wrong(), std::nullopt)
        << "two rows do not show it";
    const auto why = timed.why_timed_answers_wrong(wrong, plan);
    const Shape at{entry, p.kv_heads - 1, key, 0};
    ASSERT_TRUE(why) << text;
    EXPECT_NE(why->find("dV at " + to_string(at)), std::string::npos) << *why;
  }
}

TEST(Gate, small_cases_are_of_the_same_kind_and_judged_once_for_all_lengths) {
  struct CountingRunner final : CaseRunner {
    explicit CountingRunner(int& count) : calls(count) {}
    int& calls;
    CaseAnswer run(const KernelInfo&, const CaseTask& task) override {
      ++calls;
      EXPECT_LE(task.the_case.problem.key_len, 4 * 16 + 1);
      return {};
    }
  };
  int calls = 0;
  Gate gate([&] { return std::make_unique<CountingRunner>(calls); });
  const Plan plan{.query_tile = 16, .key_tile = 16};
  for (const char* text : {"b4 h8/8 n4096 d64", "b2 h8/8 n8192 d64", "b1 h2/2 n70 d64"}) {
    EXPECT_EQ(gate.why_wrong({&k3(), problem_from_string(text), plan}), std::nullopt);
  }
  EXPECT_EQ(calls, 1);
  for (const char* text : {"h8/8 n4096 d64 causal_top_left", "h8/8 n4096 d32", "h8/4 n4096 d64",
                           "h8/8 q1 k4096 d64", "h8/8 n4096 d64 scale2"}) {
    EXPECT_EQ(gate.why_wrong({&k3(), problem_from_string(text), plan}), std::nullopt);
  }
  EXPECT_EQ(calls, 6);
}

TEST(Gate, small_cases_lie_in_pages_where_the_problem_does) {
  const Problem p = problem_from_string("b4 h8/2 q1 k4096 d64 bf16 shared2048");
  const Gate::Candidate candidate{find_kernel("decode_mma", Executor::simt), p, Plan{},
                                  paging_from_string("paged16/shared")};
  const Case c = small_case(candidate);
  EXPECT_EQ(to_string(c.layouts.paging), "paged16/shared");
  EXPECT_LE(c.problem.shared_keys, c.problem.key_len);
}

}  // namespace
}  // namespace attest
