// A law: another call whose answer follows from that of the case. The judge asks whether the kernel
// takes the call, launches it and compares; here stands only what is called and what it owes.
#include "core/operations/forward.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace tutorial_law {

/// Without a mask, lengths or padding the order of queries says nothing.
Varied reversed_queries(Run& run, const LawDraws& /*draws*/) {
  const Problem& p = run.problem();
  if (p.mask != Mask::none || p.length_seed != 0 || p.padding_seed != 0 || p.query_len < 2) {
    return {};
  }
  const auto mirrored = [last = p.query_len - 1](auto b, auto h, auto n) {
    return RowPlace{b, h, last - n};
  };
  const auto inputs = [mirrored](Inputs from) {
    Tensor<float>& q = from[forward::q];
    q = gathered(q, q.shape(), mirrored);
    return from;
  };
  return Variation{.call = {run.the_case(), inputs},
                   .row_owed = [mirrored](OutputIndex, const RowPlace& row) {
                     return std::optional(mirrored(row.b, row.h, row.n));
                   }};
}

const VariationLaws registration{{
    {.name = "reversed_queries",
     .statement = "without a mask, queries in reverse order have their answers in reverse order",
     .operations = {&forward_operation},
     // A row may have other neighbours in its tile: of kernels that let those matter no bits are
     // asked, but the sum of the bounds.
     .same_bits_but_for = Differences{.addresses = true, .neighbours = true},
     .failure = "queries in reverse order have other answers",
     .vary = reversed_queries},
}};

}  // namespace tutorial_law
}  // namespace attest
