#include <fmt/format.h>

#include <algorithm>

#include "verify/cases/feature_list.hpp"

namespace attest {

std::int64_t empty_rows(const Case& c) {
  const Problem& p = c.problem;
  if (p.mask != Mask::causal_bottom_right || p.key_len == 0 || p.length_seed != 0) return 0;
  return std::max<std::int64_t>(0, p.query_len - p.key_len);
}

bool family_is(const Case& c, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, c.inputs.family) != names.end();
}

Feature feature(std::string name, std::vector<int> zoo, Predicate holds) {
  return {
      .name = std::move(name),
      .zoo = std::move(zoo),
      .holds = [holds = std::move(holds)](const KernelInfo&, const Case& c) { return holds(c); }};
}

void add_value_features(std::vector<Feature>& list) {
  const auto add = [&](std::string name, std::vector<int> zoo, Predicate holds) {
    list.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
  };
  add("one key, logit below -5e4", {17}, [](const Case& c) {
    return c.problem.visible_range(0, c.problem.query_len - 1).size() == 1 &&
           c.inputs.magnitude >= 5e4 && family_is(c, {"negative_shift", "all_negative"});
  });
  add("rows with one key", {17}, [](const Case& c) {
    return c.problem.mask == Mask::causal_top_left && c.problem.key_len > 0;
  });
  add("all logits far below 0", {15, 17}, [](const Case& c) {
    return c.inputs.magnitude >= 50 && family_is(c, {"negative_shift", "all_negative"});
  });
  add("a query tile without keys, all logits far below 0", {16}, [](const Case& c) {
    return empty_rows(c) > 0 && family_is(c, {"negative_shift", "all_negative"});
  });
  add("equal logits of 1e5 and more", {18}, [](const Case& c) {
    return c.inputs.magnitude >= 1e5 && family_is(c, {"equal_huge_logits"});
  });
  add("logits of 1e4 and more", {18, 19}, [](const Case& c) {
    return c.inputs.magnitude >= 1e4 && family_is(c, {"huge_logits", "equal_huge_logits"});
  });
  add("large V of one sign over 64 keys and more", {20}, [](const Case& c) {
    return c.inputs.magnitude >= 1e3 && c.problem.key_len >= 64 && family_is(c, {"positive_v"});
  });
  add("maxima that rise over several tiles", {38, 45}, [](const Case& c) {
    return c.plan.key_tile > 0 && c.problem.key_len > c.plan.key_tile &&
           family_is(c, {"ascending_maxima"});
  });
  add("maxima that fall over several tiles", {}, [](const Case& c) {
    return c.plan.key_tile > 0 && c.problem.key_len > c.plan.key_tile &&
           family_is(c, {"descending_maxima"});
  });
  // One family, one feature: each is there for bugs that no other one shows.
  const auto of_family = [&](const char* name, std::vector<int> zoo) {
    add(fmt::format("inputs {}", name), std::move(zoo),
        [name](const Case& c) { return family_is(c, {name}); });
  };
  of_family("normal", {});
  of_family("zero_q", {1, 47});
  of_family("constant_q", {});
  of_family("dominant_key", {});
  of_family("sink", {39});
  of_family("ties", {18});
  of_family("constant_v", {1, 39});
  of_family("one_hot_v", {30});
  of_family("positive_v", {39});
  of_family("key_index_v", {});
  of_family("alternating_v", {});
  of_family("scaled_v", {30});
  of_family("late_dims", {43});
  of_family("outliers", {});
  of_family("sparse_integers", {});
  list.push_back({.name = "inputs real",
                  .zoo = {},
                  .holds = [](const KernelInfo&, const Case& c) { return family_is(c, {"real"}); },
                  .needs = "the captured activations that the program attest loads"});
}

}  // namespace attest
