// An operation that Attest does not know, added from here by registration alone: its tensors, its
// exact answer, inputs, a right kernel and wrong ones. What judges, draws, shrinks, writes and
// replays cases must take it as it takes attention.
#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "core/attention/operation.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/run/registry.hpp"
#include "cpu_reference/reference.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/cases/generators.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace {

/// Y = X + B row by row, where B has one column for each row: two inputs of different shapes.
ElementType of_problem(const Problem& problem) {
  return problem.element_type;
}

constexpr std::array<TensorSpec, 4> tensors{
    {{.name = "x", .label = "X", .shape = query_shape, .format = of_problem},
     {.name = "b", .label = "B", .shape = lse_shape, .format = of_problem},
     {.name = "y",
      .label = "Y",
      .role = TensorRole::output,
      .shape = query_shape,
      .format = of_problem},
     {.name = "total",
      .label = "total",
      .role = TensorRole::output,
      .shape = lse_shape,
      .format = [](const Problem&) { return ElementType::fp32; },
      .is_strided = false}}};

constinit const Operation shifted{.name = "shifted_rows",
                                  .summary = "rows plus a number each, and that number",
                                  .tensors = tensors,
                                  .flops = nullptr,
                                  .bytes = tensor_bytes};
constexpr InputIndex x{0}, b{1};
constexpr OutputIndex y{0}, total{1};

/// The roundings of a kernel of it: of Y, relative.
struct ShiftRoundings {
  double of_sum = 0;
};

/// A sum of two numbers of at most 24 bits is exact in long double but for exponents far apart,
/// where double's roundoff is what is claimed.
Answer exact(const Problem& problem, const Inputs& inputs, const Roundings& roundings) {
  const double u = roundings.as<ShiftRoundings>().of_sum;
  const Tensor<double> rows(query_shape(problem)), numbers(lse_shape(problem));
  Answer answer{OutputAnswer{rows, rows, rows}, OutputAnswer{numbers, numbers, numbers}};
  for (std::int64_t e = 0; e < problem.batch; ++e) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      for (std::int64_t n = 0; n < problem.query_len; ++n) {
        const double shift = inputs[b].at(e, h, n, 0);
        answer[total].value.at(e, h, n, 0) = shift;
        for (std::int64_t d = 0; d < problem.head_dim; ++d) {
          const double sum = inputs[x].at(e, h, n, d) + shift;
          answer[y].value.at(e, h, n, d) = sum;
          answer[y].own_error.at(e, h, n, d) = 0x1p-53 * std::abs(sum);
          answer[y].bound.at(e, h, n, d) =
              (u + 0x1p-52) * std::abs(sum) + format_of(problem.element_type).min_subnormal;
        }
      }
    }
  }
  return answer;
}

Certificate certify(const Problem& problem, const Inputs& inputs, const Answer& answer,
                    std::uint64_t seed, int rows) {
  Certificate certificate;
  for (int i = 0; i < rows && problem.rows() > 0; ++i, ++certificate.rows) {
    const std::int64_t row = random_below(seed, 1, static_cast<std::uint64_t>(i), problem.rows());
    const std::int64_t n = row % problem.query_len;
    const std::int64_t h = row / problem.query_len % problem.query_heads;
    const std::int64_t e = row / problem.query_len / problem.query_heads;
    const long double want = static_cast<long double>(inputs[x].at(e, h, n, 0)) +
                             static_cast<long double>(inputs[b].at(e, h, n, 0));
    const long double error = std::abs(answer[y].value.at(e, h, n, 0) - want);
    if (error > answer[y].own_error.at(e, h, n, 0)) certificate.worst_ratio = 2;
  }
  return certificate;
}

const OperationRegistration operation_registration{shifted};
const ReferenceRegistration reference{{.operation = &shifted, .exact = exact, .certify = certify}};

float load(const void* data, std::int64_t at, ElementType type) {
  const std::size_t size = format_of(type).size_bytes;
  std::uint32_t bits = 0;
  std::memcpy(&bits, static_cast<const std::byte*>(data) + static_cast<std::size_t>(at) * size,
              size);
  return decode(type, bits);
}

void store(float value, void* data, std::int64_t at, ElementType type) {
  const std::size_t size = format_of(type).size_bytes;
  const std::uint32_t bits = encode(type, static_cast<float>(round_to(type, value)));
  std::memcpy(static_cast<std::byte*>(data) + static_cast<std::size_t>(at) * size, &bits, size);
}

/// Bug of a wrong kernel.
enum class Bug { none, last_column, unwritten };

void run(const Arguments& a, Bug bug) {
  const Problem& p = a.problem;
  const ElementType type = p.element_type;
  for (std::int64_t e = 0; e < p.batch; ++e) {
    for (std::int64_t h = 0; h < p.query_heads; ++h) {
      for (std::int64_t n = 0; n < p.query_len; ++n) {
        const float shift = load(a[b].data, a[b].strides.offset(e, h, n), type);
        const std::int64_t row = (e * p.query_heads + h) * p.query_len + n;
        if (bug != Bug::unwritten || row != 0) static_cast<float*>(a[total].data)[row] = shift;
        for (std::int64_t d = 0; d < p.head_dim; ++d) {
          const float from = load(a[x].data, a[x].strides.offset(e, h, n) + d, type);
          const bool is_forgotten = bug == Bug::last_column && d == p.head_dim - 1;
          store(is_forgotten ? from : from + shift, a[y].data, a[y].strides.offset(e, h, n) + d,
                type);
        }
      }
    }
  }
}

KernelInfo kernel_with(const std::string& name, Bug bug) {
  return {.operation = &shifted,
          .name = name,
          .summary = "made up",
          .source = "a test",
          .element_types = {ElementType::fp32, ElementType::bf16},
          .masks = {Mask::none},
          .features = {.no_queries = true},
          .precision =
              [](const Problem& problem, const Plan&) {
                return ShiftRoundings{0x1p-24 + format_of(problem.element_type).unit_roundoff *
                                                    (1 + 0x1p-24)};
              },
          .plans = [](const Problem&) { return std::vector<Plan>{{}}; },
          .launch = [bug](const Arguments& a, Device&) { run(a, bug); }};
}

const KernelRegistration right{kernel_with("shift", Bug::none)};
const KernelRegistration wrong_column{kernel_with("shift_but_the_last", Bug::last_column)};
const KernelRegistration unwritten{kernel_with("shift_without_first_total", Bug::unwritten)};

Inputs drawn(const Problem& problem, const InputSpec& spec) {
  Inputs inputs{Tensor<float>(query_shape(problem)), Tensor<float>(lse_shape(problem))};
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    std::uint64_t index = 0;
    for (float& value : inputs[InputIndex{i}].values()) {
      value = static_cast<float>(spec.magnitude * random_normal(spec.seed, i, index++));
    }
  }
  return inputs;
}

class MadeUpOperation : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    add_input_family({.name = "made_up",
                      .summary = "N(0, magnitude)",
                      .magnitudes = {1, 100},
                      .make = drawn,
                      .unsupported = {},
                      .operation = &shifted});
  }

  static KernelResult campaign_of(const std::string& name) {
    const KernelInfo* const kernel = find_kernel(name, Executor::cpu);
    CampaignOptions options;
    options.cases_per_kernel = 60;
    options.laws.every_law = true;
    return run_campaign({kernel}, options).front();
  }
};

TEST_F(MadeUpOperation, IsKnownByItsName) {
  EXPECT_EQ(&operation_from_name("shifted_rows"), &shifted);
  const Problem problem = problem_from_string("shifted_rows b2 h3 q5 d7 bf16");
  EXPECT_EQ(problem.operation, &shifted);
  EXPECT_EQ(problem_from_string(to_string(problem)), problem);
}

TEST_F(MadeUpOperation, ACaseOfItSurvivesItsJson) {
  const KernelInfo& kernel = *find_kernel("shift", Executor::cpu);
  for (std::uint64_t index = 0; index < 50; ++index) {
    const std::optional<Case> c = draw_case(kernel, {}, 5, index);
    ASSERT_TRUE(c);
    EXPECT_EQ(case_from_json(to_json(*c), "a test"), *c) << to_json(*c);
  }
}

TEST_F(MadeUpOperation, ARightKernelPassesTheLawsThatNeedNoKnowledgeOfAttention) {
  const KernelResult result = campaign_of("shift");
  EXPECT_EQ(result.verdict(), Verdict::passed)
      << (result.failure ? describe(*result.failure, *result.kernel) : result.vacuous_reason);
  for (const char* law :
       {"within_bound", "total_within_bound", "guards_untouched", "inputs_unmodified",
        "outputs_written", "rerun_bitwise", "layout_neutral", "permuted_heads_bitwise",
        "duplicated_request_bitwise", "batch_mates_irrelevant", "earlier_launch_irrelevant",
        "floating_point_mode_kept"}) {
    EXPECT_TRUE(result.checks.contains(law)) << law;
  }
  for (const auto& [name, count] : result.checks) {
    EXPECT_TRUE(find_law(name)->is_about(shifted)) << name;
  }
  EXPECT_GT(result.certified_rows, 0);
  EXPECT_GT(result.worst_over_bound.of("y"), 0.1);
}

TEST_F(MadeUpOperation, WrongKernelsAreCaughtAndTheirCasesShrink) {
  const KernelResult column = campaign_of("shift_but_the_last");
  ASSERT_TRUE(column.failure);
  EXPECT_EQ(column.failure->check.tensor, "Y");
  const Problem& smallest = column.failure->the_case.problem;
  EXPECT_EQ(smallest.batch * smallest.query_heads * smallest.query_len * smallest.head_dim, 1)
      << to_string(smallest);
  const KernelResult missing = campaign_of("shift_without_first_total");
  ASSERT_TRUE(missing.failure);
  EXPECT_EQ(missing.failure->law, "outputs_written");
}

TEST_F(MadeUpOperation, AKernelOfAttentionIsNotAskedForIt) {
  const KernelInfo& attention = *find_kernel("shift", Executor::cpu);
  EXPECT_TRUE(why_unsupported(attention, problem_from_string("q3 d4"), {}));
}

}  // namespace
}  // namespace attest
