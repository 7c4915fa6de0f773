#include "verify/judge/other_indices.hpp"

#include <algorithm>

#include "core/attention/paging.hpp"
#include "core/inputs/random.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace {

// Lengths that add up to the same are few: of three entries of up to 100 rows one draw in 40.
constexpr std::uint64_t most_draws = 2000;
// A kernel is asked about few of those that do not: its answer may take a while.
constexpr std::uint64_t most_of_other_sizes = 8;

bool has_lengths(const Case& c) {
  return c.problem.length_seed != 0;
}

/// An odd seed may stand for as many keys as queries, so it stays odd.
void draw_lengths(Case& c, std::uint64_t bits) {
  c.problem.length_seed = (bits | 2U) - (bits & 1U) + (c.problem.length_seed & 1U);
}

bool hides_keys(const Case& c) {
  return c.problem.padding_seed != 0;
}

void draw_hidden_keys(Case& c, std::uint64_t bits) {
  c.problem.padding_seed = bits | 1U;
}

bool has_pages(const Case& c) {
  return c.layouts.paging.is_used();
}

void draw_pages(Case& c, std::uint64_t bits) {
  c.layouts.paging.shuffle_seed = bits | 1U;
}

/// Lengths of every entry, one after the other.
std::vector<std::int64_t> lengths_of(const Problem& p) {
  std::vector<std::int64_t> lengths;
  for (std::int64_t b = 0; b < p.batch; ++b) {
    lengths.push_back(p.query_len_of(b));
    lengths.push_back(p.key_len_of(b));
  }
  return lengths;
}

/// True if tensors and arrays of the two lie in as much memory.
bool have_same_sizes(const Case& a, const Case& b) {
  const Problem& p = a.problem;
  std::int64_t queries = 0, keys = 0;
  for (std::int64_t entry = 0; entry < p.batch; ++entry) {
    queries += p.query_len_of(entry) - b.problem.query_len_of(entry);
    keys += p.key_len_of(entry) - b.problem.key_len_of(entry);
  }
  if (queries != 0) return false;
  if (!has_pages(a)) return keys == 0;
  const PageTableArrays mine = page_table_arrays(p, a.layouts.paging);
  const PageTableArrays others = page_table_arrays(b.problem, b.layouts.paging);
  return mine.pool_pages == others.pool_pages && mine.pages.size() == others.pages.size() &&
         mine.shared_keys == others.shared_keys;
}

}  // namespace

const std::vector<IndexKind>& index_kinds() {
  static const std::vector<IndexKind> kinds{{"lengths", has_lengths, draw_lengths},
                                            {"hidden keys", hides_keys, draw_hidden_keys},
                                            {"pages", has_pages, draw_pages}};
  return kinds;
}

std::optional<Case> with_other_indices(const Run& run,
                                       const std::function<bool(const IndexKind&)>& is_wanted) {
  const Case& mine = run.the_case();
  const auto is_read = [&](const IndexKind& kind) { return is_wanted(kind) && kind.is_read(mine); };
  if (std::ranges::none_of(index_kinds(), is_read)) return std::nullopt;
  const std::vector<std::int64_t> lengths = lengths_of(mine.problem);
  std::vector<Case> of_other_sizes;
  for (std::uint64_t draw = 0; draw < most_draws; ++draw) {
    Case other = mine;
    for (const IndexKind& kind : index_kinds()) {
      if (!is_read(kind)) continue;
      kind.change(other, random_bits(mine.inputs.seed, stream_other_indices, draw));
    }
    const bool has_other_lengths = other.problem.length_seed != mine.problem.length_seed;
    if (has_other_lengths && lengths_of(other.problem) == lengths) continue;
    if (has_other_lengths && !have_same_sizes(mine, other)) {
      if (of_other_sizes.size() < most_of_other_sizes) of_other_sizes.push_back(std::move(other));
      continue;
    }
    if (!why_unsupported(run.kernel(), other)) return other;
  }
  const auto fits = [&](const Case& other) { return !why_unsupported(run.kernel(), other); };
  const auto other = std::ranges::find_if(of_other_sizes, fits);
  return other == of_other_sizes.end() ? std::nullopt : std::optional(*other);
}

}  // namespace attest
