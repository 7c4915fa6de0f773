#include <numeric>

#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"
#include "core/run/index_arrays.hpp"
#include "verify/judge/streams.hpp"
#include "verify/judge/variation.hpp"

namespace attest {
namespace law_lengths_may_change {

/// Keys of an entry in the launch between.
std::int64_t shorter_length(const Run& run, std::int64_t entry) {
  const Paging& paging = run.the_case().layouts.paging;
  const auto keys = static_cast<std::int32_t>(run.problem().key_len_of(entry));
  if (paging.table == TableForm::dense || keys == 0) {
    return IndexArrays::shorter_length(paging.table, keys);
  }
  return (keys - 1) / paging.page_size * paging.page_size + 1;
}

/// The entry that is compared with a problem of its own.
std::optional<std::int64_t> entry_of(const Run& run) {
  return LawDraws(run.the_case(), stream_changed_lengths).entry([&](std::int64_t b) {
    return run.problem().query_len_of(b) > 0;
  });
}

Variation shorter_entry(Run& run, std::int64_t b) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(shorter_length(run, b)));
  std::iota(keys.begin(), keys.end(), 0);
  return entry_alone(run.the_case(), b, std::move(keys));
}

/// Entry b of the launch between, against a launch of its own.
Check check_shorter(Run& run, std::int64_t b, const Outputs& shorter) {
  const Variation entry = shorter_entry(run, b);
  const Case& c = entry.call.the_case;
  const Inputs inputs = entry.call.inputs(run.inputs());
  const Launch alone = run.launch(c, inputs);
  const Answer answer = run.answer_to(c.problem, c.plan, inputs);
  return check_agree(run.kernel(), owed(entry, shorter), alone.outputs,
                     within_bounds(answer, answer),
                     "an entry that became shorter differs from the same entry alone");
}

const LawRegistration registration{
    {.name = "lengths_may_change",
     .statement =
         "the same launch finds other lengths in the same arrays and answers for them; once "
         "the arrays are as before, so are all bits: a graph may be replayed",
     .cost = Law::Cost::more_launches,
     .operations = {&forward_operation, &quantised_operation},
     .applies =
         [](Run& run) {
           // Hidden keys are drawn from lengths, and so are lists.
           if (!run.kernel().reads_lengths || !run.the_case().layouts.paging.is_used() ||
               run.problem().padding_seed != 0 || run.problem().list_seed != 0) {
             return false;
           }
           const auto b = entry_of(run);
           return !b || !why_unsupported(run.kernel(), shorter_entry(run, *b).call.the_case);
         },
     .check =
         [](Run& run) {
           const Run::Relaunches launches = run.launch_with_other_lengths();
           const Check again =
               check_agree(run.kernel(), launches.again, launches.first, agreement_of(run, {}),
                           "after a launch with other lengths the case has another answer");
           const auto b = entry_of(run);
           if (again.status != Check::Status::passed || !b) return again;
           return check_shorter(run, *b, launches.shorter);
         }}};

}  // namespace law_lengths_may_change
}  // namespace attest
