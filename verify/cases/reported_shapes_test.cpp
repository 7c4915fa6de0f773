// Shapes at which public reports say that a kernel was wrong: the thorough campaign draws each.
#include <gtest/gtest.h>

#include <cstring>
#include <functional>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/judge/verdict.hpp"

namespace attest {
namespace {

struct Report {
  const char* where;   ///< repository and number
  const char* kernel;  ///< a correct one that takes what the report is about
  std::function<bool(const Case&)> is_wrong;
};

bool has_entry_of_more_than(const Problem& p, std::int64_t keys) {
  for (std::int64_t entry = 0; p.length_seed != 0 && entry < p.batch; ++entry) {
    if (p.key_len_of(entry) > keys && p.query_len_of(entry) > 0) return true;
  }
  return false;
}

const std::vector<Report>& reports() {
  static const std::vector<Report> all{
      {"flash-attention#2698", "backward_tiled",
       [](const Case& c) {
         return c.problem.head_dim % 32 != 0 && has_entry_of_more_than(c.problem, 64);
       }},
      {"TensorRT-LLM#17964", "o3_two_pass_online",
       [](const Case& c) {
         return c.problem.head_dim > 128 && c.layouts.paging.is_used() &&
                c.layouts.paging.page_size <= 32 && c.problem.key_len > 32;
       }},
      {"sglang#11985", "o3_two_pass_online",
       [](const Case& c) { return c.layouts.paging.page_size == 32 && c.problem.key_len > 2048; }},
      {"sglang#22434", "m6_every_shape",
       [](const Case& c) {
         return (c.problem.mask == Mask::causal_top_left ||
                 c.problem.mask == Mask::causal_bottom_right) &&
                c.problem.query_len > 4096;
       }},
      {"flashinfer#3125", "m6_every_shape", [](const Case& c) { return c.problem.batch > 65'535; }},
      {"pytorch#162588", "m6_every_shape",
       [](const Case& c) {
         return c.problem.mask != Mask::none &&
                std::max(c.problem.query_len, c.problem.key_len) > 65'536;
       }},
  };
  return all;
}

/// The kernel, which leaves a row of O, or of dK, at 0: the last one, which under causal masks sees
/// a key; of packed entries the first.
KernelInfo without_a_row(const KernelInfo& kernel) {
  KernelInfo wrong = kernel;
  wrong.launch = [&kernel](const Arguments& a, Device& device) {
    kernel.launch(a, device);
    const Problem& p = a.problem;
    const bool is_forward = kernel.operation == &forward_operation;
    const auto& tensor = is_forward ? a[forward::o] : a[backward::dk];
    const std::int64_t heads = is_forward ? p.query_heads : p.kv_heads;
    const std::int64_t rows = is_forward ? p.query_len : p.key_len;
    const std::int64_t last = (p.batch - 1) * tensor.strides.batch +
                              (heads - 1) * tensor.strides.head + (rows - 1) * tensor.strides.row;
    const auto size = static_cast<std::int64_t>(format_of(p.element_type).size_bytes);
    const std::int64_t columns = is_forward ? p.output_dim() : p.head_dim;
    char* row = static_cast<char*>(tensor.data) + (p.length_seed == 0 ? last * size : 0);
    std::memset(row, 0, static_cast<std::size_t>(columns * size));
  };
  return wrong;
}

/// The first case of a campaign of that many at which the report's bug is seen; -1: none.
std::int64_t killed_at(const Report& report, std::uint64_t seed, std::int64_t cases) {
  const KernelInfo& kernel = *find_kernel(report.kernel, Executor::cpu);
  const KernelInfo wrong = without_a_row(kernel);
  const auto device = make_device(Executor::cpu);
  for (std::int64_t i = 0; i < cases; ++i) {
    const auto c = draw_case(kernel, {}, seed, static_cast<std::uint64_t>(i));
    if (!c || !report.is_wrong(*c)) continue;
    Run run(wrong, *c, *device);
    if (verify_case(run, {}).verdict == Verdict::failed) return i;
  }
  return -1;
}

TEST(ReportedShapes, TheThoroughCampaignDrawsEachAndSeesWhatIsWrongThere) {
  for (const Report& report : reports()) {
    for (const std::uint64_t seed : {1U, 2U}) {
      EXPECT_GE(killed_at(report, seed, thorough_cases.per_kernel), 0)
          << report.where << " in a campaign of seed " << seed;
    }
  }
}

}  // namespace
}  // namespace attest
