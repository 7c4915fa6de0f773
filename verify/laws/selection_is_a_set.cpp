#include <limits>

#include "verify/judge/law.hpp"
#include "verify/judge/selection.hpp"

namespace attest {
namespace law_selection_is_a_set {

Check check_list(Run& run, std::int64_t b, std::int64_t n) {
  const Problem& problem = run.problem();
  const Outputs& outputs = run.base().outputs;
  const std::vector<std::int64_t> visible = visible_keys_of(problem, b, n);
  const auto want = static_cast<float>(std::min<std::int64_t>(problem.top_k, std::ssize(visible)));
  const float count = outputs[selecting::counts].at(b, 0, n, 0);
  if (count != want) {
    return Check::failed_at("counts", {.index = {b, 0, n, 0}, .got = count, .want = want},
                            "a count is not that of the visible keys, or of the room for them");
  }
  const auto keys = outputs[selecting::keys].row(b, 0, n);
  const auto fails = [&](std::int64_t i, double wanted, const char* why) {
    return Check::failed_at(
        "keys", {.index = {b, 0, n, i}, .got = keys[static_cast<std::size_t>(i)], .want = wanted},
        why);
  };
  for (std::int64_t i = 0; i < problem.top_k; ++i) {
    const float key = keys[static_cast<std::size_t>(i)];
    if (static_cast<float>(i) >= want) {
      if (key != selecting::no_key) return fails(i, selecting::no_key, "a key behind the count");
      continue;
    }
    if (!place_among(visible, key)) {
      return fails(i, std::numeric_limits<double>::quiet_NaN(),
                   "a key that the query does not see");
    }
    // Lists ascend where laws see them.
    if (i > 0 && key == keys[static_cast<std::size_t>(i - 1)]) {
      return fails(i, std::numeric_limits<double>::quiet_NaN(), "a key that is returned twice");
    }
  }
  return Check::passed();
}

const LawRegistration registration{
    {.name = "selection_is_a_set",
     .statement = "every key of a list is one that its query sees, none is there twice, the count "
                  "is that of the visible keys or of the room for them, and -1 stands behind it",
     .operations = {&select_operation},
     .applies = {},
     .check = [](Run& run) {
       for (std::int64_t b = 0; b < run.problem().batch; ++b) {
         for (std::int64_t n = 0; n < run.problem().query_len; ++n) {
           Check check = check_list(run, b, n);
           if (check.status != Check::Status::passed) return check;
         }
       }
       return Check::passed();
     }}};

}  // namespace law_selection_is_a_set
}  // namespace attest
