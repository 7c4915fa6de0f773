#include <algorithm>
#include <optional>

#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/agreement.hpp"

namespace attest {
namespace law_equal_masks_agree {

/// Another mask that leaves every row the same keys: a window for a mask without one, a side
/// without an end for one longer than all lengths and the other way round.
std::optional<Case> with_equal_mask(const Run& run) {
  Case c = run.the_case();
  Problem& p = c.problem;
  const std::int64_t longest = std::max(p.query_len, p.key_len);
  switch (p.mask) {
    case Mask::none:
      p.mask = Mask::window_top_left;
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
  if (c == run.the_case() || why_unsupported(run.kernel(), c)) return std::nullopt;
  return c;
}

const LawRegistration registration{
    {.name = "equal_masks_agree",
     .statement = "a window that hides the same keys as another mask gives its answer, within the "
                  "sum of the bounds",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .operations = {&forward_operation, &backward_operation},
     .applies = [](Run& run) { return with_equal_mask(run).has_value(); },
     .check =
         [](Run& run) {
           const Launch launch = run.launch(*with_equal_mask(run), run.inputs());
           return check_agree(run.kernel(), launch.outputs, run.base().outputs,
                              within_bounds(run.answer(), run.answer()),
                              "another mask that hides the same keys gives another answer");
         }}};

}  // namespace law_equal_masks_agree
}  // namespace attest
