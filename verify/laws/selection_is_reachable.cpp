#include <fmt/format.h>

#include <cmath>
#include <limits>

#include "cpu_reference/select/score_range.hpp"
#include "verify/judge/law.hpp"
#include "verify/judge/selection.hpp"

namespace attest {
namespace law_selection_is_reachable {

constexpr double infinity = std::numeric_limits<double>::infinity();

/// One list, and the scores of the keys that its query sees.
struct List {
  std::int64_t b = 0, n = 0;
  std::vector<std::int64_t> keys;
  std::vector<ScoreRange> scores;
};

List list_of(Run& run, std::int64_t b, std::int64_t n) {
  const Problem& problem = run.problem();
  List list{b, n, visible_keys_of(problem, b, n), {}};
  const Roundings how = run.kernel().precision(problem, run.the_case().plan);
  list.scores = score_ranges(problem, run.inputs(), how.as<SelectRoundings>(), b, n, list.keys);
  return list;
}

template <typename CheckList>
Check check_lists(Run& run, const CheckList& check_list) {
  for (std::int64_t b = 0; b < run.problem().batch; ++b) {
    for (std::int64_t n = 0; n < run.problem().query_len_of(b); ++n) {
      Check check = check_list(list_of(run, b, n));
      if (check.status != Check::Status::passed) return check;
    }
  }
  return Check::passed();
}

Check check_reachable(Run& run, const List& list) {
  std::vector<bool> is_returned(list.keys.size(), false);
  const auto returned = returned_keys(run.problem(), run.base().outputs, list.b, list.n);
  double least = infinity;  // highest score of the least key returned
  std::int64_t least_key = 0;
  for (const float key : returned) {
    const auto place = place_among(list.keys, key);
    if (!place) return Check::failed(fmt::format("key {} is none that the query sees", key));
    is_returned[*place] = true;
    if (list.scores[*place].highest >= least) continue;
    least = list.scores[*place].highest;
    least_key = list.keys[*place];
  }
  for (std::size_t i = 0; i < list.keys.size() && !returned.empty(); ++i) {
    if (is_returned[i] || !(list.scores[i].lowest > least)) continue;
    return Check::failed(
        fmt::format("query {} of entry {}: key {} is left out, whose score is {:.9g} and at least "
                    "{:.9g}, but key {} is returned, whose score is at most {:.9g}",
                    list.n, list.b, list.keys[i], list.scores[i].value, list.scores[i].lowest,
                    least_key, least));
  }
  return Check::passed();
}

Check check_scores(Run& run, const List& list) {
  const auto scores = run.base().outputs[selecting::scores].row(list.b, 0, list.n);
  std::int64_t i = 0;
  for (const float key : returned_keys(run.problem(), run.base().outputs, list.b, list.n)) {
    const auto place = place_among(list.keys, key);
    if (!place) return Check::failed(fmt::format("key {} is none that the query sees", key));
    const ScoreRange& range = list.scores[*place];
    const float got = scores[static_cast<std::size_t>(i)];
    const double bound = range.error();
    const double ratio = bound < infinity ? error_over_bound(got, range.value, bound) : 0;
    if (!within(1, ratio)) {
      return Check::failed_at("scores",
                              {.index = {list.b, 0, list.n, i},
                               .got = got,
                               .want = range.value,
                               .bound = bound,
                               .ratio = ratio},
                              fmt::format("the score that stands beside key {} is not its", key));
    }
    ++i;
  }
  return Check::passed();
}

const LawRegistration reachable{
    {.name = "selection_is_reachable",
     .statement = "some scores within their bounds have the returned set as their largest: no key "
                  "left out surely has a larger score than one that is returned",
     .layer = Layer::bound,
     .operations = {&select_operation},
     .applies = {},
     .check = [](Run& run) {
       return check_lists(run, [&](const List& list) { return check_reachable(run, list); });
     }}};

const LawRegistration scores_of_keys{
    {.name = "scores_belong_to_keys",
     .statement = "the score beside a returned key is its own, within the bound that follows from "
                  "the declared roundings",
     .layer = Layer::bound,
     .operations = {&select_operation},
     .applies = [](Run& run) { return run.kernel().gives(selecting::scores); },
     .check =
         [](Run& run) {
           return check_lists(run, [&](const List& list) { return check_scores(run, list); });
         }}};

}  // namespace law_selection_is_reachable
}  // namespace attest
