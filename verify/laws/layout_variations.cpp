// Where tensors, pages and threads lie: no bit of the answer may depend on it.
#include <fmt/format.h>

#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "verify/cases/paging.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace layout_variations {

bool is_paged(const Run& run) {
  return run.the_case().layouts.paging.is_used();
}
bool is_packed(const Run& run) {
  return run.problem().length_seed != 0;
}

/// The case with another paging, which `change` makes of its own.
template <typename Change>
Varied with_paging(const Run& run, const Change& change) {
  if (!is_paged(run)) return {};
  Case c = run.the_case();
  change(c.layouts.paging);
  return Variation{.call = {c}};
}

/// Contiguous, and without pages where the kernel does without.
Varied contiguous(Run& run, const LawDraws&) {
  Case c = run.the_case();
  c.layouts = fitted(run.kernel().layout_needs, c.problem, {});
  if (c == run.the_case()) return {};
  return Variation{.call = {c}};
}

Varied in_another_order(Run& run, const LawDraws&) {
  Case again = run.the_case();
  // Another seed also lets buffers end elsewhere.
  if (!run.kernel().depends_on_alignment) again.schedule_seed = ~again.schedule_seed;
  return Variation{.call = {again}};
}

/// A gap of half a tile, or of more than one. NaN lies in the gaps of inputs; those of outputs keep
/// what they held.
Varied with_entry_gaps(Run& run, const LawDraws& draws) {
  if (!is_packed(run)) return {};
  if (!run.kernel().layout_needs.takes_entry_gaps) {
    return Declined{"it takes no gaps between packed entries"};
  }
  return Variation{.call = {run.the_case(), {}, {.entry_gap = 1 + draws.below(150)}}};
}

/// All entries, or all heads, are the first one: as copies, and as one in memory.
Varied broadcast(Run& run, const LawDraws& draws) {
  const Problem& p = run.problem();
  const bool is_strided = p.length_seed == 0 && !is_paged(run);
  if (!is_strided || p.values != Values::own || (p.batch == 1 && p.query_heads == 1)) return {};
  if (!run.kernel().layout_needs.takes_broadcast) return Declined{"it takes no strides of 0"};
  const std::size_t dim = p.batch == 1         ? 1
                          : p.query_heads == 1 ? 0
                                               : static_cast<std::size_t>(draws.below(2));
  const auto copies = [dim](const Inputs& from) {
    return mapped(from, [dim](const Tensor<float>& tensor) {
      return gathered(tensor, tensor.shape(), [dim](auto b, auto h, auto n) {
        return RowPlace{dim == 0 ? 0 : b, dim == 1 ? 0 : h, n};
      });
    });
  };
  return Variation{.call = {run.the_case(), copies, {.broadcast = dim}},
                   .reference = OtherCall{run.the_case(), copies}};
}

Varied with_room_for_more_keys(Run& run, const LawDraws& draws) {
  if (!run.kernel().reads_lengths || !(is_packed(run) || is_paged(run))) return {};
  Problem larger = run.problem();
  larger.key_len += draws.below(700) + 1;
  if (why_unsupported(run.kernel(), larger, run.the_case().plan)) return {};
  return Variation{.call = {run.the_case(), {}, {.capacity = larger.key_len}}};
}

Varied with_shuffled_pages(Run& run, const LawDraws&) {
  return with_paging(run, [](Paging& paging) { paging.shuffle_seed = ~paging.shuffle_seed; });
}

/// Another page size and the other form of the table; K and V joined where they were apart, and the
/// reverse.
Varied with_pages_of_another_form(Run& run, const LawDraws& draws) {
  if (!is_paged(run)) return {};
  Case c = run.the_case();
  const LayoutNeeds& needs = run.kernel().layout_needs;
  Paging& paging = c.layouts.paging;
  std::vector<std::int64_t> sizes = needs.page_sizes;
  if (sizes.empty()) sizes = {1, 3, 8, 16, 48, 64, 128};
  std::erase(sizes, paging.page_size);
  std::erase_if(sizes, [&](std::int64_t size) { return has_dear_pages(c.problem, size); });
  if (!sizes.empty()) {
    paging.page_size =
        sizes[static_cast<std::size_t>(draws.below(static_cast<std::int64_t>(sizes.size())))];
  }
  // Many pages of one key are little memory; of another size they are not.
  paging.spare_pages = std::min<std::int64_t>(paging.spare_pages, 3);
  if (!needs.tables) {
    paging.table = paging.table == TableForm::dense ? TableForm::csr : TableForm::dense;
  }
  paging.joins_kv = !paging.joins_kv;
  c.layouts = fitted(needs, c.problem, c.layouts);
  return Variation{.call = {c},
                   .failure = fmt::format("{} gave another answer", to_string(c.layouts.paging))};
}

Varied with_a_prefix_apart_or_shared(Run& run, const LawDraws&) {
  if (run.problem().batch == 1 ||
      run.problem().shared_keys < run.the_case().layouts.paging.page_size) {
    return {};
  }
  return with_paging(run, [](Paging& paging) { paging.shares_prefix = !paging.shares_prefix; });
}

/// Something else in slots and table entries past an entry's length, and in pages of nobody.
Varied with_other_unused_slots(Run& run, const LawDraws&) {
  return with_paging(run, [](Paging& paging) {
    const auto choices = static_cast<int>(unused_names().size());
    paging.unused = static_cast<Unused>((static_cast<int>(paging.unused) + 1) % choices);
    paging.spare_pages += 2;
    paging.spare_columns += 3;
  });
}

const VariationLaws registration{{
    {.name = "layout_neutral",
     .statement = "strides, gaps, base offsets and pages change no bit of the answer",
     .same_bits_but_for = Differences{.addresses = true, .sharing = true},
     .failure = "the contiguous run differs from the strided one",
     .vary = contiguous},
    {.name = "rerun_bitwise",
     .statement = "a second launch, in another order of blocks and threads and with buffers that "
                  "end elsewhere, gives the same bits",
     .same_bits_but_for = Differences{},
     .failure = "a rerun gave another answer",
     .vary = in_another_order},
    {.name = "entry_gaps_irrelevant",
     .statement = "rows of nobody between packed entries change no bit and stay as they are",
     .same_bits_but_for = Differences{.addresses = true},
     .failure = "rows of nobody between packed entries changed the answer",
     .stream = stream_entry_gap,
     .vary = with_entry_gaps},
    {.name = "broadcast_equals_copies",
     .statement = "inputs whose entries or heads are one in memory, with a stride of 0, give the "
                  "bits of copies",
     .same_bits_but_for = Differences{.addresses = true},
     .failure = "inputs with a stride of 0 gave another answer than copies",
     .stream = stream_broadcast,
     .vary = broadcast},
    {.name = "capacity_irrelevant",
     .statement = "room for more keys than there are changes no bit where lengths are read on the "
                  "device: the largest length, the grid and the workspace are upper bounds",
     .operations = {&forward_operation, &quantised_operation},
     .same_bits_but_for = Differences{},
     .failure = "room for more keys changed the answer",
     .stream = stream_capacity,
     .vary = with_room_for_more_keys},
    {.name = "page_order_irrelevant",
     .statement = "where the pages of K and V lie in their pool changes no bit, as long as the "
                  "table says where",
     .same_bits_but_for = Differences{.addresses = true},
     .failure = "pages in another order gave another answer",
     .vary = with_shuffled_pages},
    {.name = "page_form_irrelevant",
     .statement = "the size of pages, the form of the table and whether K and V lie in one pool "
                  "change no bit",
     .same_bits_but_for = Differences{.addresses = true, .sharing = true},
     .stream = stream_page_size,
     .vary = with_pages_of_another_form},
    {.name = "shared_pages_equal_copies",
     .statement = "a prefix whose pages lie in memory once gives the bits of a prefix that every "
                  "entry has for itself",
     .same_bits_but_for = Differences{.addresses = true, .sharing = true},
     .failure = "shared pages and copies of them differ",
     .vary = with_a_prefix_apart_or_shared},
    {.name = "unused_slots_irrelevant",
     .statement = "slots that hold no key, pages that nobody owns and table entries past an "
                  "entry's length change no bit, whatever they hold",
     .same_bits_but_for = Differences{.addresses = true},
     .failure = "what no key uses changed the answer",
     .vary = with_other_unused_slots},
}};

}  // namespace layout_variations
}  // namespace attest
