// Parts of one row in another order, or with one that saw nothing among them.
#include <limits>

#include "core/operations/combine.hpp"
#include "verify/judge/combine_cases.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace combine_variations {

float unchanged(float x) {
  return x;
}

Varied reversed_parts(Run& run, const LawDraws&) {
  const Problem& p = run.problem();
  if (p.parts < 2) return {};
  std::vector<std::int64_t> parts;
  for (std::int64_t part = p.parts; part-- > 0;) parts.push_back(part);
  return Variation{.call = {run.the_case(), [p, parts](const Inputs& from) {
                              return with_selected_parts(p, from, parts, unchanged);
                            }}};
}

Varied with_empty_part(Run& run, const LawDraws& draws) {
  const Problem p = run.problem();
  if (p.rows() == 0) return {};
  const Case c = with_parts(run, p.parts + 1);
  const std::int64_t empty = draws.below(p.parts + 1);
  const auto inputs = [=](const Inputs& from) {
    std::vector<std::int64_t> parts;
    for (std::int64_t part = 0; part <= p.parts; ++part) {
      parts.push_back(part < empty ? part : part - 1);
    }
    parts[static_cast<std::size_t>(empty)] = 0;
    Inputs more = with_selected_parts(p, from, parts, unchanged);
    fill_part(c.problem, more, empty, -std::numeric_limits<float>::infinity(),
              std::numeric_limits<float>::quiet_NaN());
    return more;
  };
  return Variation{.call = {c, inputs}};
}

const VariationLaws registration{{
    {.name = "permuted_parts_agree",
     .statement = "the parts in reverse order give the same result within both bounds",
     .layer = Layer::bound,
     .operations = {&combine_operation},
     .failure = "the parts in reverse order give another result",
     .vary = reversed_parts},
    {.name = "empty_part_changes_nothing",
     .statement =
         "a part that saw no key, LSE_p = -infinity, changes nothing, whatever its O_p holds",
     .operations = {&combine_operation},
     .failure = "a part that saw no key changed the result",
     .stream = stream_empty_part,
     .vary = with_empty_part},
}};

}  // namespace combine_variations
}  // namespace attest
