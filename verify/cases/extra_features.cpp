#include <fmt/format.h>

#include <algorithm>

#include "core/attention/distribution.hpp"
#include "core/operations/backward.hpp"
#include "verify/cases/feature_list.hpp"

namespace attest {
namespace {

/// Features of one kind of kernel: `needs` says which.
class Adder {
 public:
  Adder(std::vector<Feature>& list, std::string needs) : list_(list), needs_(std::move(needs)) {}
  void operator()(std::string name, std::vector<int> zoo, Predicate holds) const {
    list_.push_back(feature(std::move(name), std::move(zoo), std::move(holds)));
    list_.back().needs = needs_;
  }

 private:
  std::vector<Feature>& list_;
  std::string needs_;
};

/// True if some row of the first entry satisfies the predicate.
template <typename Holds>
bool any_row(const Problem& p, const Holds& holds) {
  for (std::int64_t query = 0; query < p.query_len_of(0); ++query) {
    if (holds(p.visible_range(0, query))) return true;
  }
  return false;
}

bool has_side(const Case& c, std::int64_t length) {
  const Problem& p = c.problem;
  return is_window(p.mask) && (p.window.left == length || p.window.right == length);
}

/// Rows of the first or last query tile, none of which sees a key.
bool has_empty_query_tile(const Case& c) {
  const Problem& p = c.problem;
  const std::int64_t rows = p.query_len_of(0), tile = c.plan.query_tile;
  if (!is_window(p.mask) || p.key_len_of(0) == 0 || tile < 1 || rows <= tile) return false;
  return p.visible_range(0, tile - 1).size() == 0 || p.visible_range(0, rows - tile).size() == 0;
}

void add_windows(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with windows");
  for (const Mask mask : {Mask::window_top_left, Mask::window_bottom_right}) {
    add(fmt::format("{}, more queries than keys", name_of(mask)), {42}, [mask](const Case& c) {
      return c.problem.mask == mask && c.problem.query_len > c.problem.key_len;
    });
    add(fmt::format("{}, fewer queries than keys", name_of(mask)), {42}, [mask](const Case& c) {
      return c.problem.mask == mask && c.problem.query_len < c.problem.key_len;
    });
  }
  add("window with a side of 0", {42}, [](const Case& c) { return has_side(c, 0); });
  add("window of the diagonal only", {42}, [](const Case& c) {
    return is_window(c.problem.mask) && c.problem.window == Window{.left = 0, .right = 0};
  });
  add("window with a side of one tile", {42},
      [](const Case& c) { return c.plan.key_tile > 1 && has_side(c, c.plan.key_tile); });
  add("window with a side one short of a tile", {42},
      [](const Case& c) { return c.plan.key_tile > 1 && has_side(c, c.plan.key_tile - 1); });
  add("window open on one side", {42}, [](const Case& c) {
    const Window& window = c.problem.window;
    return is_window(c.problem.mask) && (window.left < 0) != (window.right < 0);
  });
  add("window that begins inside a key tile", {42}, [](const Case& c) {
    return is_window(c.problem.mask) && c.plan.key_tile > 1 &&
           any_row(c.problem, [&](const KeyRange& range) {
             return range.size() > 0 && range.begin % c.plan.key_tile != 0;
           });
  });
  add("window with whole key tiles before and behind it", {25, 42}, [](const Case& c) {
    return is_window(c.problem.mask) && c.plan.key_tile > 0 &&
           any_row(c.problem, [&](const KeyRange& range) {
             return range.size() > 0 && range.begin >= c.plan.key_tile &&
                    range.end + c.plan.key_tile <= c.problem.key_len_of(0);
           });
  });
  add("a query tile outside all windows", {25}, has_empty_query_tile);
}

void add_softcap(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with softcap");
  add("softcap below the logits", {41}, [](const Case& c) {
    return c.problem.softcap > 0 && c.problem.softcap <= c.inputs.magnitude;
  });
  add("softcap far above the logits", {41},
      [](const Case& c) { return c.problem.softcap >= 50 * c.inputs.magnitude; });
}

void add_value_dims(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with value_dim");
  add("V narrower than K", {43},
      [](const Case& c) { return c.problem.output_dim() < c.problem.head_dim; });
  add("V wider than K", {43},
      [](const Case& c) { return c.problem.output_dim() > c.problem.head_dim; });
}

void add_values_in_keys(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with values_in_keys");
  add("V is a part of K", {}, [](const Case& c) { return c.problem.values == Values::in_keys; });
  const Adder add_in_pages(list, "a kernel that takes pages");
  add_in_pages("V is a part of K in pages", {}, [](const Case& c) {
    return c.problem.values == Values::in_keys && c.layouts.paging.is_used();
  });
}

void add_lse_gradients(std::vector<Feature>& list) {
  const Adder add(list, "a kernel of gradients that takes dLSE");
  const auto add_of_gradients = [&](std::string name, Predicate holds) {
    add(std::move(name), {}, [holds](const Case& c) {
      return c.problem.lse_gradient == LseGradient::given && holds(c);
    });
    list.back().operations = {&backward_operation};
  };
  add_of_gradients("dLSE is given", [](const Case&) { return true; });
  add_of_gradients("dLSE of rows that see no key", [](const Case& c) { return empty_rows(c) > 0; });
  add_of_gradients("dLSE of packed entries",
                   [](const Case& c) { return c.problem.length_seed != 0; });
  add_of_gradients("dLSE and a softcap", [](const Case& c) { return c.problem.softcap > 0; });
}

/// True of a case with lists if a list of some entry, with the number of items that it names of
/// those there are, is as `holds` says.
template <typename Holds>
bool any_list(const Case& c, const Holds& holds) {
  const Problem& p = c.problem;
  for (std::int64_t b = 0; b < p.batch && p.list_seed != 0; ++b) {
    const std::int64_t items = p.list_items(b);
    for (std::int64_t first = 0; first < p.query_len_of(b); first += p.list_rows) {
      std::int64_t named = 0;
      for (std::int64_t i = 0; i < items; ++i) named += p.names_item(b, first / p.list_rows, i);
      if (holds(named, items)) return true;
    }
  }
  return false;
}

void add_lists_of_keys(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with lists of keys");
  const auto with_lists = [&](std::string name, bool (*holds)(const Problem&)) {
    add(std::move(name), {},
        [holds](const Case& c) { return c.problem.list_seed != 0 && holds(c.problem); });
  };
  with_lists("lists that several queries share",
             [](const Problem& p) { return p.list_rows > 1 && p.query_len > p.list_rows; });
  with_lists("items of a list cut short by the last key", [](const Problem& p) {
    return p.key_len > p.list_keys && p.key_len % p.list_keys != 0;
  });
  with_lists("items of a list cut by a mask", [](const Problem& p) {
    return p.list_keys > 1 && p.mask != Mask::none && p.key_len > p.list_keys;
  });
  with_lists("lists of keys of which padding hides some",
             [](const Problem& p) { return p.padding_seed != 0; });
  add("a list of keys that names none", {}, [](const Case& c) {
    return any_list(c, [](auto named, auto items) { return named == 0 && items > 0; });
  });
  add("a list of keys that names all of several items", {}, [](const Case& c) {
    return any_list(c, [](auto named, auto items) { return named == items && items > 1; });
  });
}

/// Score modifications, and what they meet in a kernel.
void add_score_modifications(std::vector<Feature>& list) {
  const auto add_all = [&](const std::string& what, const Predicate& has,
                           const std::vector<int>& zoo = {}) {
    const Adder add(list, fmt::format("a kernel with {}", what));
    const auto both = [has](const Predicate& holds) {
      return [has, holds](const Case& c) { return has(c) && holds(c); };
    };
    add(fmt::format("{}, several key tiles", what), zoo, both([](const Case& c) {
          return c.plan.key_tile > 0 && c.problem.key_len > c.plan.key_tile;
        }));
    add(fmt::format("{} and key splits", what), {},
        both([](const Case& c) { return c.plan.key_splits > 1 && c.problem.key_len > 1; }));
    add(fmt::format("{} and grouped heads", what), {},
        both([](const Case& c) { return c.problem.query_heads > c.problem.kv_heads; }));
    add(fmt::format("{} and entries of other lengths", what), {},
        both([](const Case& c) { return c.problem.length_seed != 0 && c.problem.batch > 1; }));
  };
  add_all("sinks", [](const Case& c) { return c.problem.sinks != Sinks::none; });
  add_all("slopes", [](const Case& c) { return c.problem.slopes != Slopes::none; });
  add_all("a bias", [](const Case& c) { return c.problem.bias != Bias::none; });
  add_all("a prefix", [](const Case& c) { return c.problem.prefix_seed != 0; });
  add_all("documents", [](const Case& c) { return c.problem.document_seed != 0; });
  add_all("lists of keys", [](const Case& c) { return c.problem.list_seed != 0; });
  add_all("dropout", [](const Case& c) { return c.problem.dropout > 0; }, {46});
  Adder(list, "a kernel with sinks")("sinks of rows that see no key", {}, [](const Case& c) {
    return c.problem.sinks != Sinks::none && empty_rows(c) > 0;
  });
  const Adder slopes(list, "a kernel with slopes");
  slopes("slopes from a diagonal at the bottom right", {}, [](const Case& c) {
    const Problem& p = c.problem;
    return p.slopes != Slopes::none && p.query_len != p.key_len &&
           key_distance(p.mask, p.query_len, p.key_len, 0, 0) != 0;
  });
  slopes("slopes from a diagonal at the top left", {}, [](const Case& c) {
    const Problem& p = c.problem;
    return p.slopes != Slopes::none && p.query_len != p.key_len &&
           key_distance(p.mask, p.query_len, p.key_len, 0, 0) == 0;
  });
  const Adder bias(list, "a kernel with a bias");
  bias("a bias that entries share", {}, [](const Case& c) {
    const Bias kind = c.problem.bias;
    return (kind == Bias::heads || kind == Bias::shared) && c.problem.batch > 1;
  });
  bias("a bias that heads share", {}, [](const Case& c) {
    const Bias kind = c.problem.bias;
    return (kind == Bias::entries || kind == Bias::shared) && c.problem.query_heads > 1;
  });
  bias("a bias and a softcap", {},
       [](const Case& c) { return c.problem.bias != Bias::none && c.problem.softcap > 0; });
  add_lists_of_keys(list);
  const Adder dropout(list, "a kernel with dropout");
  dropout("dropout of all weights", {}, [](const Case& c) { return c.problem.dropout == 1.0F; });
  dropout("a seed of dropout past 32 bits", {},
          [](const Case& c) { return c.problem.dropout > 0 && c.problem.dropout_seed >> 32 != 0; });
  dropout("an offset of dropout", {},
          [](const Case& c) { return c.problem.dropout > 0 && c.problem.dropout_offset != 0; });
}

/// Epilogues of O, and where a kernel may apply them wrongly.
void add_epilogues(std::vector<Feature>& list) {
  const auto add_all = [&](const std::string& what, const Predicate& has) {
    const Adder add(list, fmt::format("a kernel with {}", what));
    const auto both = [has](const Predicate& holds) {
      return [has, holds](const Case& c) { return has(c) && holds(c); };
    };
    add(fmt::format("{} and grouped heads", what), {},
        both([](const Case& c) { return c.problem.query_heads > c.problem.kv_heads; }));
    add(fmt::format("{} of rows that see no key", what), {},
        both([](const Case& c) { return empty_rows(c) > 0; }));
    add(fmt::format("{} in a query tile that is not full", what), {}, both([](const Case& c) {
          return c.plan.query_tile > 0 && c.problem.query_len % c.plan.query_tile != 0;
        }));
    add(fmt::format("{} and entries of other lengths", what), {},
        both([](const Case& c) { return c.problem.length_seed != 0 && c.problem.batch > 1; }));
  };
  add_all("a gate", [](const Case& c) { return c.problem.gate != OutputGate::none; });
  add_all("a residual", [](const Case& c) { return c.problem.residual != Residual::none; });
  Adder(list, "a kernel with a gate")("a gate and a residual", {}, [](const Case& c) {
    return c.problem.gate != OutputGate::none && c.problem.residual != Residual::none;
  });
}

/// True if an entry of a batch with lengths satisfies the predicate.
template <typename Holds>
bool any_entry(const Problem& p, const Holds& holds) {
  for (std::int64_t entry = 0; entry < p.batch && p.length_seed != 0; ++entry) {
    if (holds(entry)) return true;
  }
  return false;
}

void add_lengths_of_entries(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with lengths");
  add("first entry without queries", {37}, [](const Case& c) {
    return any_entry(c.problem, [&](auto b) { return b == 0 && c.problem.query_len_of(b) == 0; });
  });
  add("entry without queries between others", {37}, [](const Case& c) {
    const Problem& p = c.problem;
    return any_entry(p, [&](auto b) { return b > 0 && b < p.batch - 1 && p.query_len_of(b) == 0; });
  });
  add("last entry without queries", {37}, [](const Case& c) {
    const Problem& p = c.problem;
    return any_entry(p,
                     [&](auto b) { return b > 0 && b == p.batch - 1 && p.query_len_of(b) == 0; });
  });
  add("entry with queries and no key", {37}, [](const Case& c) {
    const Problem& p = c.problem;
    return p.key_len > 0 &&
           any_entry(p, [&](auto b) { return p.query_len_of(b) > 0 && p.key_len_of(b) == 0; });
  });
  add("entry with keys and no query", {37}, [](const Case& c) {
    const Problem& p = c.problem;
    return any_entry(p, [&](auto b) { return p.query_len_of(b) == 0 && p.key_len_of(b) > 0; });
  });
  add("entries of different lengths", {33}, [](const Case& c) {
    const Problem& p = c.problem;
    return any_entry(p, [&](auto b) { return p.query_len_of(b) != p.query_len_of(0); });
  });
  add("entries as long in queries as in keys", {}, [](const Case& c) {
    const Problem& p = c.problem;
    return p.batch > 1 && p.length_seed != 0 &&
           !any_entry(p, [&](auto b) { return p.query_len_of(b) != p.key_len_of(b); });
  });
  add("lengths under a causal mask", {9, 36}, [](const Case& c) {
    return c.problem.length_seed != 0 && c.problem.batch > 1 && !is_window(c.problem.mask) &&
           c.problem.mask != Mask::none;
  });
  add("lengths and windows", {42},
      [](const Case& c) { return c.problem.length_seed != 0 && is_window(c.problem.mask); });
  add("lengths and grouped heads", {30, 33}, [](const Case& c) {
    const Problem& p = c.problem;
    return p.length_seed != 0 && p.batch > 1 && p.query_heads > p.kv_heads && p.kv_heads > 1;
  });
}

void add_padding(std::vector<Feature>& list) {
  const Adder add(list, "a kernel with padding");
  // Of an entry with two keys and more: which of them are hidden?
  const auto add_kind = [&](std::string name, auto holds) {
    add(std::move(name), {}, [holds](const Case& c) {
      const Problem& p = c.problem;
      for (std::int64_t b = 0; b < p.batch && p.padding_seed != 0; ++b) {
        const std::int64_t keys = p.key_len_of(b);
        if (keys < 2) continue;
        std::int64_t hidden = 0;
        for (std::int64_t key = 0; key < keys; ++key) hidden += p.is_padded(b, key) ? 1 : 0;
        if (holds(p.is_padded(b, 0), p.is_padded(b, keys - 1), hidden, keys)) return true;
      }
      return false;
    });
  };
  add_kind("all keys padded", [](bool, bool, auto hidden, auto keys) { return hidden == keys; });
  add_kind("padded on the right", [](bool first, bool last, auto, auto) { return !first && last; });
  add_kind("padded on the left", [](bool first, bool last, auto, auto) { return first && !last; });
  add_kind("padded between visible keys",
           [](bool first, bool last, auto hidden, auto) { return !first && !last && hidden > 0; });
  add("a whole key tile padded before visible keys", {15, 25}, [](const Case& c) {
    const Problem& p = c.problem;
    const std::int64_t tile = c.plan.key_tile;
    for (std::int64_t b = 0; b < p.batch && p.padding_seed != 0 && tile > 0; ++b) {
      std::int64_t first = 0;
      while (first < p.key_len_of(b) && p.is_padded(b, first)) ++first;
      if (first >= tile && first < p.key_len_of(b)) return true;
    }
    return false;
  });
  add("padding and lengths", {},
      [](const Case& c) { return c.problem.padding_seed != 0 && c.problem.length_seed != 0; });
}

void add_ranks(std::vector<Feature>& list) {
  const Adder add(list, "a kernel of several ranks");
  add("zigzag and a length that 2 P does not divide", {}, [](const Case& c) {
    return c.plan.ranks > 1 && c.plan.distribution == Distribution::zigzag &&
           any_entry(c, [&](auto, auto keys) { return keys % (2 * c.plan.ranks) != 0; });
  });
  add("a rank without keys, beside others", {}, [](const Case& c) {
    return c.plan.ranks > 1 && any_entry(c, [&](auto, auto keys) {
             return keys > 0 &&
                    tokens_of_rank(c.plan.distribution, keys, c.plan.ranks, c.plan.ranks - 1)
                        .empty();
           });
  });
  add("ranks and packed entries", {},
      [](const Case& c) { return c.plan.ranks > 1 && c.problem.length_seed != 0; });
  add("ranks and a causal mask", {}, [](const Case& c) {
    return c.plan.ranks > 1 && c.problem.mask != Mask::none && !is_window(c.problem.mask);
  });
}

}  // namespace

void add_extra_features(std::vector<Feature>& list) {
  add_windows(list);
  add_softcap(list);
  add_value_dims(list);
  add_values_in_keys(list);
  add_lse_gradients(list);
  add_lengths_of_entries(list);
  add_padding(list);
  add_ranks(list);
  add_score_modifications(list);
  add_epilogues(list);
  Adder(list, "a kernel that accepts 0 queries")(
      "no query", {37}, [](const Case& c) { return c.problem.query_len == 0; });
  const Adder packed(list, "a kernel with plans that pack query heads");
  for (const std::int64_t group : {5, 8}) {
    packed(fmt::format("{} query heads packed into rows", group), {11, 30, 31},
           [group](const Case& c) {
             return c.plan.pack_gqa == PackGqa::yes &&
                    c.problem.query_heads == group * c.problem.kv_heads;
           });
  }
}

}  // namespace attest
