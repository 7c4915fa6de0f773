#include "verify/cases/paging.hpp"

#include <rapidcheck.h>

#include <algorithm>
#include <vector>

namespace attest {
namespace {

namespace gen = rc::gen;

/// Numbers of pages from here on do not fit into 16 bits.
constexpr std::int64_t wide_page_numbers = 1 << 16;
/// Elements of a page of which as many as that may lie in the pool.
constexpr std::int64_t small_page = 256;
/// Elements of the pages of a batch, each entry of which fills a part of one only.
constexpr std::int64_t most_elements = 1 << 23;

/// Elements of K or of V in a slot, whichever are more.
std::int64_t elements_of_slot(const Problem& problem) {
  return problem.kv_heads * std::max(problem.head_dim, problem.output_dim());
}

std::int64_t draw_page_size(const LayoutNeeds& needs, const Problem& problem) {
  // Every power of two that an engine has; 16, 32 and 64 are what most have.
  std::vector<std::int64_t> sizes{1,  1,  2,  3,  4,  8,  16, 16,  16,
                                  32, 32, 32, 48, 64, 64, 64, 128, 256};
  if (!needs.page_sizes.empty()) sizes = needs.page_sizes;
  const std::int64_t smallest = std::ranges::min(sizes);
  std::erase_if(
      sizes, [&](std::int64_t size) { return size > smallest && has_dear_pages(problem, size); });
  return *gen::elementOf(sizes);
}

/// Sets the size of a page, and how many no entry has. Whether they are many is decided first: of
/// sizes that were drawn hardly any would be small enough for that.
void draw_pages(const LayoutNeeds& needs, const Problem& problem, Paging& paging) {
  const std::int64_t smallest = needs.page_sizes.empty() ? 1 : std::ranges::min(needs.page_sizes);
  const bool may_be_many = smallest * elements_of_slot(problem) <= small_page;
  const bool are_many = may_be_many && *gen::inRange(0, 16) == 0;
  paging.page_size = are_many ? smallest : draw_page_size(needs, problem);
  paging.spare_pages = *gen::element<std::int64_t>(0, 0, 1, 5) + (are_many ? wide_page_numbers : 0);
}

}  // namespace

bool has_dear_pages(const Problem& problem, std::int64_t page_size) {
  return problem.batch * page_size * elements_of_slot(problem) > most_elements;
}

Paging draw_paging(const KernelInfo& kernel, const Plan& plan, Problem& problem) {
  const LayoutNeeds& needs = kernel.layout_needs;
  if (needs.pages == Pages::none) return {};
  if (kernel.unsupported_in_pages && kernel.unsupported_in_pages(problem, plan)) return {};
  const bool is_cascade = plan.cascade == Cascade::yes;
  if (needs.pages == Pages::also && !is_cascade && *gen::inRange(0, 2) == 0) return {};
  if (is_cascade) problem.batch = std::max(problem.batch, *gen::element<std::int64_t>(2, 3, 7));
  Paging paging;
  draw_pages(needs, problem, paging);
  paging.table = *gen::element(TableForm::dense, TableForm::csr);
  paging.joins_kv = problem.output_dim() == problem.head_dim && *gen::inRange(0, 3) == 0;
  paging.spare_columns = *gen::element<std::int64_t>(0, 0, 1, 7);
  if (*gen::inRange(0, 4) != 0) {
    paging.shuffle_seed = std::max<std::uint64_t>(1, *gen::arbitrary<std::uint64_t>());
  }
  paging.unused = *gen::element(Unused::nan, Unused::nan, Unused::infinity, Unused::large);
  if (problem.batch > 1 && problem.key_len > 0 && (is_cascade || *gen::inRange(0, 3) == 0)) {
    // All of the longest entry's: prefixes that end where some query's keys do.
    const bool is_all = is_cascade && *gen::inRange(0, 2) == 0;
    problem.shared_keys =
        is_all ? problem.key_len : *gen::inRange<std::int64_t>(1, problem.key_len + 1);
    paging.shares_prefix = *gen::inRange(0, 4) != 0;
  }
  return paging;
}

}  // namespace attest
