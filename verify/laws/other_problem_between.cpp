#include <fmt/format.h>

#include <algorithm>

#include "core/attention/problem_field.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "verify/cases/shrinking.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_other_problem_between {

/// Difference of the call between. A size may leave its range: then there is no such call.
struct Difference {
  std::string_view name;
  void (*change)(Problem&, const KernelInfo&);
};

std::int64_t less(std::int64_t size) {
  return size / 2;
}
std::int64_t more(std::int64_t size) {
  return size + size / 2 + 1;
}

/// The kernel's next mask that needs no window, if there is one.
void change_mask(Problem& p, const KernelInfo& kernel) {
  const auto mine = std::ranges::find(kernel.masks, p.mask);
  for (auto mask = mine; mask != kernel.masks.end(); ++mask) {
    if (!is_window(*mask)) p.mask = *mask;
  }
  if (!is_window(p.mask)) p.window = {};
}

const std::vector<Difference> differences{
    {"fewer keys", [](Problem& p, const KernelInfo&) { p.key_len = less(p.key_len); }},
    {"more keys", [](Problem& p, const KernelInfo&) { p.key_len = more(p.key_len); }},
    {"fewer queries", [](Problem& p, const KernelInfo&) { p.query_len = less(p.query_len); }},
    {"more queries", [](Problem& p, const KernelInfo&) { p.query_len = more(p.query_len); }},
    {"another batch",
     [](Problem& p, const KernelInfo&) { p.batch = p.batch > 2 ? less(p.batch) : more(p.batch); }},
    {"another mask", change_mask},
    {"another scale",
     [](Problem& p, const KernelInfo&) {
       p.scale = p.scale == 0 ? default_scale(p.head_dim) : p.scale * 0.75F;
     }},
    {"more parts", [](Problem& p, const KernelInfo&) { ++p.parts; }}};

/// Fields that an operation does not have keep their defaults.
void clear_fields_of_others(Problem& p) {
  for (const ProblemField& field : problem_fields()) {
    if (field.belongs_to != nullptr && !field.belongs_to(p)) set_default(field, p);
  }
}

struct Between {
  std::string_view name;
  Case the_case;
};

/// The calls that the kernel takes under the case's Plan.
std::vector<Between> calls_between(const Run& run) {
  std::vector<Between> calls;
  for (const Difference& difference : differences) {
    Case c = run.the_case();
    Problem& p = c.problem;
    difference.change(p, run.kernel());
    clear_fields_of_others(p);
    p.shared_keys = std::min(p.shared_keys, p.key_len);
    p = with_needs_of(run.kernel(), p);
    const Paging paging = c.layouts.paging;
    c.layouts = {};
    c.layouts.paging = paging;
    c.layouts = fitted(run.kernel().layout_needs, p, c.layouts);
    if (p == run.problem() || !can_run(run.kernel(), c)) continue;
    calls.push_back({difference.name, std::move(c)});
  }
  return calls;
}

const LawRegistration registration{
    {.name = "other_problem_between",
     .statement = "another problem in the same process, of another length, batch, mask, scale or "
                  "number of parts, has its own answer, and then the case has its bits again",
     .cost = Law::Cost::more_launches,
     .layer = Layer::bound,
     .applies = [](Run& run) { return !calls_between(run).empty(); },
     .check =
         [](Run& run) {
           const std::vector<Between> calls = calls_between(run);
           const Between& between = calls[static_cast<std::size_t>(
               random_below(run.the_case().inputs.seed, stream_other_problem, 0,
                            static_cast<std::int64_t>(calls.size())))];
           const Case& c = between.the_case;
           const Outputs& base = run.base().outputs;
           const Inputs inputs = make_inputs(c.problem, c.inputs);
           const Launch launch = run.launch(c, inputs);
           const Check again = check_agree(
               run.kernel(), run.launch(run.the_case(), run.inputs()).outputs, base,
               agreement_of(run, {}),
               fmt::format("after a call with {} the case has another answer", between.name));
           if (again.status == Check::Status::failed) return again;
           const Check check = check_answer(
               run.kernel(), launch.outputs, run.answer_to(c.problem, c.plan, inputs),
               // It may be wrong without the case before it, too: so which one it was is said.
               fmt::format("a later call with {}, {}, has a wrong answer", between.name,
                           to_string(c.problem)));
           return check.status == Check::Status::failed ? check : again;
         }}};

}  // namespace law_other_problem_between
}  // namespace attest
