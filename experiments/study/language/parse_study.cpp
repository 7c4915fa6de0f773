#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/base/text.hpp"
#include "core/run/registry.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/read_axes.hpp"
#include "experiments/study/language/schema.hpp"
#include "experiments/study/language/study_names.hpp"

namespace attest {
namespace {

constexpr double most_points = 20'000;

std::vector<std::string> texts_of(const YamlNode& node) {
  std::vector<std::string> texts;
  for (const YamlNode* item : items_of(node)) texts.push_back(item->text);
  return texts;
}

/// Fills a StudySpec from a tree, key by key, as far as the keys are well formed.
class StudyReader {
 public:
  StudyReader(const YamlNode& root, std::vector<StudyError>& errors)
      : root_(root), errors_(errors) {}

  StudySpec read(std::string_view default_name) {
    spec_.name = default_name;
    read_texts();
    with("kernels", [&](const YamlNode& node) { read_kernels(node); });
    read_grids();
    read_numbers();
    const std::vector<Baseline>& baselines = spec_.baselines;
    with("baselines",
         [&](const YamlNode& node) { spec_.baselines = read_baselines(node, errors_); });
    with("sampling", [&](const YamlNode& node) {
      const bool has_budget = value_of_key(root_, "time_budget") != nullptr;
      spec_.sampling = read_sampling(node, has_budget, errors_);
    });
    with("constraints", [&](const YamlNode& node) {
      for (const YamlNode* item : items_of(node)) {
        auto read = read_expression(*item, constraint_vocabulary(), Scope::values, true, errors_);
        if (read) spec_.constraints.push_back(*std::move(read));
      }
    });
    const StudyAxes axes(spec_, errors_.empty());
    with("expect", [&](const YamlNode& node) {
      spec_.expect = read_expectations(node, baselines, axes, errors_);
    });
    with("plots",
         [&](const YamlNode& node) { spec_.plots = read_plots(node, spec_, axes, errors_); });
    check_size();
    return std::move(spec_);
  }

 private:
  void fail(const YamlNode& node, std::string sentence) {
    errors_.push_back({node.place, std::move(sentence)});
  }

  /// Calls `read` with the key's value when it is there and well formed; of a list with the items
  /// that are.
  template <typename Read>
  void with(std::string_view name, const Read& read) {
    const YamlNode* node = value_of_key(root_, name);
    if (node == nullptr) return;
    const SpecKey& key = *std::ranges::find(study_keys(), name, &SpecKey::name);
    const auto is_well_formed = [&](const YamlNode& value, std::vector<StudyError>& complaints) {
      const std::size_t before = complaints.size();
      check_shape(value, key, complaints);
      return complaints.size() == before;
    };
    if (is_well_formed(*node, errors_)) return read(*node);
    if (node->kind != YamlNode::Kind::list) return;
    std::vector<StudyError> known;
    YamlNode good = *node;
    std::erase_if(good.items, [&](const YamlNode& item) {
      YamlNode alone = *node;
      alone.items.assign(1, item);
      return !is_well_formed(alone, known);
    });
    if (is_well_formed(good, known)) read(good);
  }

  void read_texts() {
    with("name", [&](const YamlNode& node) { spec_.name = node.text; });
    with("question", [&](const YamlNode& node) { spec_.question = node.text; });
    with("claims", [&](const YamlNode& node) { spec_.claims = texts_of(node); });
    with("executor", [&](const YamlNode& node) { spec_.executor = executor_from_name(node.text); });
    spec_.metrics = {"time", "rate"};
    with("metrics", [&](const YamlNode& node) { spec_.metrics = texts_of(node); });
    with("counters", [&](const YamlNode& node) { spec_.counters = texts_of(node); });
    with("cache", [&](const YamlNode& node) {
      spec_.cache = node.text == "cold" ? CacheState::cold : CacheState::hot;
    });
    with("launch", [&](const YamlNode& node) {
      spec_.in_graph = node.text == "graph";
      if (spec_.in_graph && spec_.cache == CacheState::cold) {
        fail(node, "launch is graph, where launches follow each other; allowed: with cache hot");
      }
    });
  }

  void read_kernels(const YamlNode& node) {
    for (const YamlNode* glob : items_of(node)) {
      const auto names = kernels_matching(glob->text);
      if (names.empty()) {
        fail(*glob, why_no_study_kernel(glob->text));
        continue;
      }
      // Not what this machine can run: ranks read the file before they have chosen their GPU.
      const bool runs = std::ranges::any_of(names, [&](const std::string& name) {
        return is_peer(name) || !spec_.executor || find_kernel(name, *spec_.executor) != nullptr;
      });
      if (!runs) {
        fail(*glob, fmt::format("no kernel that '{}' matches runs on executor {}", glob->text,
                                name_of(*spec_.executor)));
      }
      spec_.kernels.push_back(glob->text);
    }
  }

  void read_grids() {
    spec_.problem = {Grid{}};
    spec_.plan = {Grid{}};
    const auto grids = [&](Axis::Group group, const YamlNode& node) {
      return attest::read_grids(group, node, errors_);
    };
    with("problem",
         [&](const YamlNode& node) { spec_.problem = grids(Axis::Group::problem, node); });
    with("plan", [&](const YamlNode& node) {
      spec_.every_plan = node.kind == YamlNode::Kind::scalar;
      if (!spec_.every_plan) spec_.plan = grids(Axis::Group::plan, node);
    });
    with("layout",
         [&](const YamlNode& node) { spec_.layout = grids(Axis::Group::layout, node).front(); });
    with("inputs",
         [&](const YamlNode& node) { spec_.inputs = grids(Axis::Group::inputs, node).front(); });
  }

  void read_numbers() {
    with("repeats",
         [&](const YamlNode& node) { spec_.repeats = static_cast<std::int64_t>(number_of(node)); });
    with("target_confidence", [&](const YamlNode& node) {
      spec_.target_confidence = number_of(node);
      if (spec_.repeats)
        fail(node, "'target_confidence' and 'repeats' are both given; allowed: one of them");
      if (spec_.target_confidence <= 0 || spec_.target_confidence >= 1) {
        fail(node, fmt::format("'target_confidence' is {}; allowed: above 0% and below 100%",
                               printable(node.text)));
      }
    });
    with("time_budget", [&](const YamlNode& node) {
      spec_.time_budget_s = number_of(node) / 1e3;
      if (*spec_.time_budget_s <= 0) fail(node, "'time_budget' is 0; allowed: above 0s");
    });
    spec_.seeds = {0};
    with("seeds", [&](const YamlNode& node) { read_seeds(node); });
  }

  void read_seeds(const YamlNode& node) {
    spec_.seeds.clear();
    if (node.kind == YamlNode::Kind::scalar) {
      const double count = number_of(node);
      if (count < 1 || count > 1000) {
        return fail(node,
                    fmt::format("'seeds' is {}; allowed: 1 to 1000 of them, or a list", node.text));
      }
      for (std::uint64_t seed = 0; seed < static_cast<std::uint64_t>(count); ++seed)
        spec_.seeds.push_back(seed);
      return;
    }
    for (const YamlNode* item : items_of(node)) {
      const auto seed = static_cast<std::uint64_t>(number_of(*item));
      if (std::ranges::find(spec_.seeds, seed) != spec_.seeds.end()) {
        fail(*item, fmt::format("'seeds' has the value {} twice", seed));
      }
      spec_.seeds.push_back(seed);
    }
  }

  /// A grid that no machine could finish is a slip.
  void check_size() {
    const auto combinations = [](const std::vector<Grid>& grids) {
      double sum = 0;
      for (const Grid& grid : grids) {
        double product = 1;
        for (const VariedAxis& axis : grid) {
          product *= static_cast<double>(axis.is_every_value ? 1 : axis.values.size());
        }
        sum += product;
      }
      return sum;
    };
    std::set<std::string> kernels;
    for (const std::string& glob : spec_.kernels) {
      for (std::string& name : kernels_matching(glob)) kernels.insert(std::move(name));
    }
    const double points = combinations(spec_.problem) * combinations(spec_.plan) *
                          combinations({spec_.layout}) * combinations({spec_.inputs}) *
                          static_cast<double>(spec_.seeds.size()) *
                          static_cast<double>(kernels.size());
    if (points > most_points) {
      fail(root_,
           fmt::format("the study has {:.3g} points; allowed: up to {:.0f}", points, most_points));
    }
  }

  const YamlNode& root_;
  std::vector<StudyError>& errors_;
  StudySpec spec_;
};

}  // namespace

std::optional<AxisValue> stated(const WrittenValue& value) {
  if (const auto* number = std::get_if<double>(&value)) return *number;
  const auto* name = std::get_if<std::string>(&value);
  return name != nullptr ? std::optional<AxisValue>(*name) : std::nullopt;
}

WrittenValue written(const AxisValue& value) {
  return std::visit([](const auto& stated) { return WrittenValue(stated); }, value);
}

ParsedStudy parse_study(std::string_view text, std::string_view default_name) {
  ParsedStudy parsed;
  auto tree = parse_yaml(text);
  if (const auto* error = std::get_if<StudyError>(&tree)) {
    parsed.errors = {*error};
    return parsed;
  }
  const YamlNode& root = std::get<YamlNode>(tree);
  check_names(root, study_keys(), parsed.errors);
  if (root.kind != YamlNode::Kind::map) return parsed;
  StudySpec spec = StudyReader(root, parsed.errors).read(default_name);
  std::ranges::stable_sort(parsed.errors, {}, [](const StudyError& error) {
    return std::pair(error.place.line, error.place.column);
  });
  spec.text = text;
  if (parsed.errors.empty()) parsed.spec = std::move(spec);
  return parsed;
}

std::string to_string(const StudyError& error, std::string_view file) {
  return fmt::format("{}:{}:{}: {}", file, error.place.line, error.place.column, error.sentence);
}

}  // namespace attest
