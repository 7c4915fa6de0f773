// The same keys and queries said another way: other masks, none, or a problem without what is
// hidden.
#include <numeric>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/select.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace mask_variations {

/// Another mask that leaves every row the same keys: a window for a mask without one, a side
/// without an end for one longer than all lengths and the other way round.
Varied with_equal_mask(Run& run, const LawDraws&) {
  Case c = run.the_case();
  Problem& p = c.problem;
  // A prefix goes with masks without a window; documents without a mask lie along another diagonal
  // than the distances of ALiBi.
  if (p.prefix_seed != 0 || (p.slopes != Slopes::none && p.document_seed != 0)) return {};
  const std::int64_t longest = std::max(p.query_len, p.key_len);
  switch (p.mask) {
    case Mask::none:
      // Distances from the diagonal are those of bottom right.
      p.mask = p.slopes == Slopes::none ? Mask::window_top_left : Mask::window_bottom_right;
      p.window = {.left = longest, .right = -1};
      break;
    case Mask::causal_top_left:
      p.mask = Mask::window_top_left;
      p.window = {.left = -1, .right = 0};
      break;
    case Mask::causal_bottom_right:
      p.mask = Mask::window_bottom_right;
      p.window = {.left = longest, .right = 0};
      break;
    default:
      for (std::int64_t* side : {&p.window.left, &p.window.right}) {
        *side = *side < 0 ? longest : *side >= longest ? -1 : *side;
      }
  }
  if (c == run.the_case()) return {};
  return Variation{.call = {c}};
}

/// An entry with queries and hidden keys. Only without a mask by position: removal moves the keys
/// behind.
Varied without_padding(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.padding_seed == 0 || p.mask != Mask::none || depends_on_places(p)) return {};
  if (p.slopes != Slopes::none) return {};  // removal changes distances
  const auto b = draws.entry([&](std::int64_t entry) {
    return p.query_len_of(entry) > 0 && visible_key_count(p, entry, 0) < p.key_len_of(entry);
  });
  if (!b) return {};
  return entry_alone(run.the_case(), *b, visible_keys_of(p, *b, 0));
}

/// Keys at the start that no query of the entry sees.
std::int64_t hidden_keys(const Problem& p, std::int64_t b) {
  return p.query_len_of(b) == 0 ? 0 : p.visible_range(b, 0).begin;
}

/// An entry without the keys that a window leaves behind. Those of a bottom-right window count from
/// the last key, so the others see what they saw. A row that sees no key has an empty range that
/// says nothing of the others.
Varied without_keys_behind(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.mask != Mask::window_bottom_right || p.padding_seed != 0) return {};
  if (depends_on_places(p)) return {};
  const auto b = draws.entry([&](std::int64_t entry) {
    return hidden_keys(p, entry) > 0 && p.visible_range(entry, 0).size() > 0;
  });
  if (!b) return {};
  std::vector<std::int64_t> keys(static_cast<std::size_t>(p.key_len_of(*b) - hidden_keys(p, *b)));
  std::iota(keys.begin(), keys.end(), hidden_keys(p, *b));
  return entry_alone(run.the_case(), *b, std::move(keys));
}

/// A query alone with the keys up to its diagonal: a step of decoding.
Varied single_step(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  if (p.mask != Mask::causal_bottom_right && p.mask != Mask::window_bottom_right) return {};
  if (depends_on_places(p)) return {};
  // A window that looks ahead needs keys that a step does not have.
  if (is_window(p.mask) && p.window.right != 0) return {};
  if (p.query_len < 2 || p.key_len < p.query_len || p.length_seed != 0 || p.padding_seed != 0) {
    return {};
  }
  const std::int64_t query = draws.below(p.query_len);
  Case step = run.the_case();
  step.problem.key_len += query + 1 - p.query_len;
  step.problem.query_len = 1;
  step.layouts = {};  // a gap between rows that are gone may be 2^31 elements
  step.layouts.paging = run.the_case().layouts.paging;
  const auto inputs = [query, problem = step.problem](const Inputs& from) {
    std::vector<std::int64_t> keys(static_cast<std::size_t>(problem.key_len));
    std::iota(keys.begin(), keys.end(), 0);
    Inputs alone;
    for (std::size_t i = 0; i < forward_operation.inputs().size(); ++i) {
      alone[InputIndex{i}] = selected(
          problem, InputIndex{i}, from, [](auto b) { return b; },
          [query](auto n) { return query + n; }, keys);
    }
    return alone;
  };
  return Variation{.call = {step, inputs},
                   .row_owed =
                       [query](OutputIndex, const RowPlace& row) {
                         return std::optional(RowPlace{row.b, row.h, query});
                       },
                   .has_own_bound = true};
}

const VariationLaws registration{{
    {.name = "equal_masks_agree",
     .statement = "a window that hides the same keys as another mask gives its answer, within the "
                  "sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation, &backward_operation, &select_operation},
     .failure = "another mask that hides the same keys gives another answer",
     .vary = with_equal_mask},
    {.name = "padding_equals_removal",
     .statement = "hiding keys by padding gives the answer of the problem without them, within the "
                  "sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .failure = "without the hidden keys the answer is not that with them",
     .stream = stream_removed_padding,
     .vary = without_padding},
    {.name = "hidden_chunk_is_absent",
     .statement = "keys that a window has left behind for all queries may as well be gone, whole "
                  "chunks and pages of them too",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .failure = "keys behind the window changed the answer",
     .stream = stream_hidden_chunk,
     .vary = without_keys_behind},
    {.name = "single_queries_equal_rows",
     .statement = "a row of a prefill or of several queries under a causal mask that ends at the "
                  "last key is the answer of its query alone with the keys up to its own: in bits "
                  "where the kernel says so, else within the sum of the bounds",
     .layer = Layer::bound,
     .operations = {&forward_operation},
     .same_bits_but_for = Differences{.addresses = true, .neighbours = true, .queries = true},
     .failure = "a query alone has another answer than among others",
     .stream = stream_single_query,
     .vary = single_step},
}};

}  // namespace mask_variations
}  // namespace attest
