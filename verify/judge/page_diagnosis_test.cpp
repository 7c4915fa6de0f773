#include "verify/judge/page_diagnosis.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <string>

#include "core/attention/storage.hpp"
#include "core/operations/forward.hpp"
#include "core/run/host_memory_device.hpp"
#include "core/run/registry.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

using TensorNames = std::vector<std::string>;
using Mistake = std::function<void(Arguments&)>;

Case paged_case(const char* paging) {
  Case c{.kernel = "o5_deferred",
         .problem = problem_from_string("b3 h4/2 q2 k21 d16"),
         .plan = {.key_tile = 3},
         .inputs = {.seed = 11}};
  c.layouts.paging = paging_from_string(paging);
  c.layouts[forward::k] = {.order = DimOrder::bnhd};
  c.layouts[forward::v] = {.row_gap = 2};
  return c;
}

/// Failure of a correct kernel that is told something wrong.
Failure failure_of(const Case& c, const Mistake& mistake) {
  const KernelInfo& correct = *find_kernel(c.kernel, Executor::cpu);
  KernelInfo kernel = correct;
  kernel.launch = [&](const Arguments& given, Device& device) {
    Arguments told = given;
    mistake(told);
    correct.launch(told, device);
  };
  HostMemoryDevice device;
  Run run(kernel, c, device);
  const CaseVerdict verdict =
      verify_case(run, {.glob = "within_bound,lse_within_bound", .asks_misreadings = true});
  return verdict.failure.value_or(Failure{});
}

TensorNames named(const Case& c, const Mistake& mistake) {
  return failure_of(c, mistake).misreadings;
}

/// A kernel that finds another table.
Mistake with_table(const std::function<void(std::vector<std::int32_t>&)>& change) {
  return [=, table = std::make_shared<std::vector<std::int32_t>>()](Arguments& a) {
    table->assign(a.page_table.pages, a.page_table.pages + a.page_table.table_size);
    change(*table);
    a.page_table.pages = table->data();
  };
}

TEST(PageDiagnosis, ATensorThatIsReadWithTheStridesOfAnotherIsNamedWithThem) {
  for (const char* const paging : {"paged4", "paged4/csr/shuffled3/large", "paged8/spare2"}) {
    const Case c = paged_case(paging);
    EXPECT_EQ(named(c, [](Arguments& a) { a[forward::v].strides = a[forward::k].strides; }),
              TensorNames{"V read with the strides of K"})
        << paging;
    EXPECT_EQ(named(c, [](Arguments& a) { a[forward::k].strides = a[forward::v].strides; }),
              TensorNames{"K read with the strides of V"})
        << paging;
  }
}

TEST(PageDiagnosis, APoolThatIsTakenForAContiguousOneIsNamed) {
  const Case c = paged_case("paged4/shuffled3");
  const auto contiguous = [&](DimOrder order) {
    return strides_of(stored_shape(c.problem, forward::v, c.layouts.paging), {.order = order});
  };
  EXPECT_EQ(named(c, [&](Arguments& a) { a[forward::v].strides = contiguous(DimOrder::bhnd); }),
            TensorNames{"V read as if its pool were contiguous bhnd"});
  EXPECT_EQ(named(c, [&](Arguments& a) { a[forward::k].strides = contiguous(DimOrder::bhnd); }),
            TensorNames{"K read as if its pool were contiguous bhnd"});
}

TEST(PageDiagnosis, ATableThatIsReadWrongOrNotAtAllIsNamedForBothTensors) {
  for (const char* const paging : {"paged4/shuffled3", "paged4/shuffled3/csr"}) {
    const Case c = paged_case(paging);
    EXPECT_EQ(named(c, with_table([](auto& pages) {
                      std::rotate(pages.begin(), pages.begin() + 1, pages.end());
                    })),
              TensorNames{"K and V read at the next page"})
        << paging;
    EXPECT_EQ(named(c, with_table([](auto& pages) {  // no entry of the cases has unused ones
                      std::iota(pages.begin(), pages.end(), 0);
                    })),
              TensorNames{"K and V read without the table"})
        << paging;
  }
}

TEST(PageDiagnosis, OfOnePoolForBothTheWrongHalfIsAnOffset) {
  Case c = paged_case("paged4/joined/shuffled3");
  c.layouts[forward::k] = {};
  EXPECT_EQ(named(c,
                  [](Arguments& a) {
                    Strides& strides = a[forward::v].strides;
                    strides.batch /= 2;  // as many heads as V has
                  }),
            TensorNames{"V read as if its pool were contiguous bhnd"});
}

TEST(PageDiagnosis, NothingIsNamedOfARightAnswerOfAnotherBugAndWithoutPages) {
  const Case c = paged_case("paged4/shuffled3");
  EXPECT_EQ(named(c, [](Arguments&) {}), TensorNames{});
  EXPECT_EQ(named(c, [](Arguments& a) { a.problem.scale *= 2; }), TensorNames{});
  Case contiguous = c;
  contiguous.layouts.paging = {};
  EXPECT_EQ(named(contiguous, [](Arguments& a) { a[forward::v].strides = a[forward::k].strides; }),
            TensorNames{});
}

TEST(PageDiagnosis, AFailureInPagesSaysTheFormOfTheTableAndWhatWasMisread) {
  const KernelInfo& kernel = *find_kernel("o5_deferred", Executor::cpu);
  const auto text = [&](const char* paging, std::size_t misreadings) {
    Failure failure{.law = "within_bound", .the_case = paged_case(paging)};
    for (std::size_t i = 0; i < misreadings; ++i)
      failure.misreadings.push_back("V read at " + std::to_string(i));
    return describe(failure, kernel);
  };
  EXPECT_NE(text("paged4", 0)
                .find("  pages    of 4 keys, a dense table, in the order of the "
                      "entries, K and V apart\n"),
            std::string::npos);
  EXPECT_NE(text("paged1/csr/joined/shuffled3", 1)
                .find("  pages    of 1 key, a csr table, in a drawn order, K and V in one pool\n"
                      "  as if    V read at 0\n"),
            std::string::npos);
  EXPECT_NE(text("paged4", 2).find("  as if    V read at 0, or V read at 1\n"), std::string::npos);
  EXPECT_EQ(describe(Failure{.law = "within_bound", .the_case = {.kernel = "o5_deferred"}}, kernel)
                .find("pages"),
            std::string::npos);
}

}  // namespace
}  // namespace attest
