// Lists of keys that leave all keys to a query, or that it needs not if the others are gone.
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace list_variations {

/// One list for all queries of an entry, which names every item.
Varied with_full_lists(Run& run, const LawDraws&) {
  if (run.problem().list_seed == 0) return {};
  Case full = run.the_case(), none = run.the_case();
  full.problem.list_rows = std::max<std::int64_t>(1, full.problem.query_len);
  full.problem = with_needs_of(run.kernel(), full.problem);
  const auto seed = seed_for(full.problem, &Problem::list_seed, [](const auto& p, auto b) {
    for (std::int64_t item = 0; item < p.list_items(b); ++item) {
      if (!p.names_item(b, 0, item)) return false;
    }
    return true;
  });
  if (!seed) return {};
  full.problem.list_seed = *seed;
  take_away_lists(none.problem);
  return Variation{.call = {full}, .has_own_bound = true, .reference = OtherCall{none}};
}

/// An entry with the keys that one of its queries sees and no others. Only without a mask by
/// position, distances and dropout, which removal changes.
Varied with_listed_keys_alone(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.list_seed == 0 || p.mask != Mask::none || p.slopes != Slopes::none || p.dropout > 0) {
    return {};
  }
  const auto b = draws.entry([&](std::int64_t entry) { return p.query_len_of(entry) > 0; });
  if (!b) return {};
  const std::int64_t query = draws.below(p.query_len_of(*b), 1);
  Variation alone = entry_alone(run.the_case(), *b, visible_keys_of(p, *b, query));
  alone.row_owed = [b = *b, p, query](OutputIndex output, const RowPlace& row) {
    const bool is_owed = is_of_queries(p, output) && row.n == query;
    return is_owed ? std::optional(RowPlace{b, row.h, row.n}) : std::nullopt;
  };
  return alone;
}

const std::vector<const Operation*> both_passes{&forward_operation, &backward_operation};

const VariationLaws registration{{
    {.name = "full_lists_are_none",
     .statement = "lists of all keys give the answer without lists, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "lists of all keys give another answer than none",
     .vary = with_full_lists},
    {.name = "listed_keys_are_all_there_is",
     .statement = "a row sees the keys that its list names alone: it has the answer of an entry "
                  "that has no others, within the sum of the bounds",
     .layer = Layer::bound,
     .operations = both_passes,
     .failure = "without the keys that its list does not name a row has another answer",
     .stream = stream_listed_keys,
     .vary = with_listed_keys_alone},
}};

}  // namespace list_variations
}  // namespace attest
