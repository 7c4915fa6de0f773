#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "core/base/error.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "experiments/study/grid.hpp"
#include "experiments/study/language/axis.hpp"
#include "experiments/study/language/kernel_choice.hpp"
#include "experiments/study/language/model_values.hpp"
#include "experiments/study/language/point.hpp"

namespace attest {
namespace {

constexpr std::size_t most_points = 20'000;

/// How K and V lie, and as axes.
struct WantedPaging {
  Paging paging;
  AxisValues axes;
};

/// Each paging once: what is not in pages has no table.
std::vector<WantedPaging> wanted_pagings(const Grid& grid) {
  std::vector<WantedPaging> wanted;
  for (const Combination& combination : combinations_of(grid)) {
    AxisValues axes = values_of(combination);
    Case c;
    for (const auto& [name, value] : axes) find_axis(name)->set(c, value);
    Paging paging = c.layouts.paging;
    if (!paging.is_used()) {
      paging = {};
      std::erase_if(axes, [](const auto& axis) { return axis.first != "layout.page_size"; });
    }
    if (std::ranges::find(wanted, paging, &WantedPaging::paging) == wanted.end()) {
      wanted.push_back({paging, std::move(axes)});
    }
  }
  return wanted;
}

/// Fields that are wanted, and as axes.
struct WantedPlan {
  Plan plan;
  AxisValues axes;
};

std::string tensors_of(const Point& point) {
  const Paging& paging = point.subject.layouts.paging;
  std::string text = to_string(point.subject.problem);
  if (paging.is_used()) text += " " + to_string(paging);
  return text;
}

class Expander {
 public:
  Expander(const StudySpec& spec, const ExpansionContext& context)
      : spec_(spec), context_(context), gpu_(context.gpu_description) {
    if (gpu_.empty()) gpu_ = context.gpu->driver_name;
  }

  Expansion expand() {
    std::vector<std::pair<std::string, ChosenKernel>> chosen_kernels;
    std::set<std::string> names;
    std::set<const Operation*> operations;
    for (const std::string& glob : spec_.kernels) {
      for (std::string& name : kernels_matching(glob)) {
        if (!names.insert(name).second) continue;
        const ChosenKernel chosen = choose_kernel(name, spec_.executor, context_.has_gpu);
        if (chosen.kernel != nullptr) operations.insert(chosen.kernel->operation);
        chosen_kernels.emplace_back(std::move(name), chosen);
      }
    }
    require_families(operations);
    for (const auto& [name, chosen] : chosen_kernels) {
      const Operation& operation =
          chosen.kernel == nullptr ? forward_operation : *chosen.kernel->operation;
      for (const ProblemPoint& problem : problems_for(operation)) expand(name, chosen, problem);
    }
    sample();
    keep_what_varies();
    return std::move(expansion_);
  }

 private:
  /// Throws InvalidInput for a family that no kernel's operation has.
  void require_families(const std::set<const Operation*>& operations) const {
    if (operations.empty()) return;
    for (const VariedAxis& axis : spec_.inputs) {
      if (axis.axis->name != "family") continue;
      for (const WrittenValue& name : axis.values) {
        const InputFamily& family = input_family(std::get<std::string>(name));
        const bool is_served = std::ranges::any_of(
            operations, [&](const Operation* operation) { return family.serves(*operation); });
        if (!is_served) {
          throw InvalidInput(fmt::format("study {}: {}", spec_.name,
                                         other_operation(family, **operations.begin())));
        }
      }
    }
  }

  static std::string other_operation(const InputFamily& family, const Operation& operation) {
    std::vector<std::string_view> names;
    for (const InputFamily* one : families_of(operation)) names.push_back(one->name);
    return fmt::format("inputs.family '{}' fills inputs of {}; {} allows {}", family.name,
                       family.operation->name, operation.name, fmt::join(names, ", "));
  }

  [[nodiscard]] const std::vector<ProblemPoint>& problems_for(const Operation& operation) {
    const auto [at, is_new] = problems_.try_emplace(&operation);
    if (is_new) at->second = problems_of(spec_.problem, operation);
    return at->second;
  }
  void skip(Skipped::By by, std::string what, std::string reason, AxisValues axes) {
    expansion_.skipped.push_back({by, std::move(what), std::move(reason), std::move(axes)});
    require_room();
  }
  void require_room(const Grid& plan_axes = {}) const {
    double points = static_cast<double>(expansion_.points.size() + expansion_.skipped.size());
    double combinations = 1;
    for (const VariedAxis& axis : plan_axes) {
      combinations *= static_cast<double>(axis.values.size());
    }
    if (points + combinations <= static_cast<double>(most_points) + 1) return;
    throw InvalidInput(fmt::format("study {} has more than {} points", spec_.name, most_points));
  }

  void expand(const std::string& name, const ChosenKernel& chosen, const ProblemPoint& at) {
    AxisValues axes = at.axes;
    axes["kernel"] = name;
    if (!at.why_not.empty()) return skip(Skipped::By::constraint, name, at.why_not, axes);
    const std::string what = fmt::format("{} {}", name, to_string(at.problem));
    if (chosen.kernel == nullptr) return skip(Skipped::By::kernel, what, chosen.why_not, axes);
    const KernelInfo& kernel = *chosen.kernel;
    const Problem& problem = at.problem;
    const PlanChoice choice(kernel, problem, gpu_);
    std::set<std::string> seen;
    for (const WantedPlan& wanted : wanted_plans(choice)) {
      AxisValues plan_axes = axes;
      plan_axes.insert(wanted.axes.begin(), wanted.axes.end());
      const auto picked = choice.pick(wanted.plan);
      if (const auto* reason = std::get_if<std::string>(&picked)) {
        skip(Skipped::By::kernel, fmt::format("{} {}", what, to_string(wanted.plan)), *reason,
             plan_axes);
        continue;
      }
      const Plan& plan = std::get<Plan>(picked);
      // Alternatives may meet in one Plan.
      if (!seen.insert(to_string(plan)).second) continue;
      add_points(kernel, problem, plan, plan_axes);
    }
  }

  [[nodiscard]] std::vector<WantedPlan> wanted_plans(const PlanChoice& choice) const {
    std::vector<WantedPlan> wanted;
    if (spec_.every_plan) {
      for (const Plan& plan : choice.offered()) {
        const bool is_for_debugging = plan.delays == Delays::random;
        if (!is_for_debugging) wanted.push_back({plan, axes_of(plan, choice)});
      }
      if (wanted.empty()) wanted.emplace_back();
      return wanted;
    }
    for (Grid grid : spec_.plan) {
      for (VariedAxis& axis : grid) write_out(axis, choice);
      std::erase_if(grid, [](const VariedAxis& axis) { return axis.values.empty(); });
      require_room(grid);
      for (const Combination& combination : combinations_of(grid)) {
        const AxisValues axes = values_of(combination);
        Case c;
        for (const auto& [name, value] : axes) find_axis(name)->set(c, value);
        wanted.push_back({c.plan, axes});
      }
    }
    return wanted;
  }

  /// `all`: what the kernel offers; nothing where it has no such choice.
  static void write_out(VariedAxis& axis, const PlanChoice& choice) {
    if (!axis.is_every_value) return;
    const PlanField& field = *axis.axis->plan_field;
    for (const std::int64_t value : choice.values_of(field)) {
      Case c;
      c.plan.*field.member = value;
      axis.values.push_back(written(*axis.axis->get(c)));
    }
  }

  static AxisValues axes_of(const Plan& plan, const PlanChoice& choice) {
    AxisValues axes;
    Case c;
    c.plan = plan;
    for (const Axis* axis : keys_of(Axis::Group::plan)) {
      const PlanField& field = *axis->plan_field;
      if (plan.*field.member != 0 && choice.values_of(field).size() > 1) {
        axes[axis->full_name()] = *axis->get(c);
      }
    }
    return axes;
  }

  void add_points(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                  const AxisValues& axes) {
    for (const WantedPaging& layout : wanted_pagings(spec_.layout)) {
      AxisValues all_axes = axes;
      all_axes.insert(layout.axes.begin(), layout.axes.end());
      add_points(kernel, problem, plan, layout.paging, all_axes);
    }
  }

  void add_points(const KernelInfo& kernel, const Problem& problem, const Plan& plan,
                  const Paging& paging, const AxisValues& axes) {
    for (const Combination& combination : combinations_of(spec_.inputs)) {
      const AxisValues inputs = values_of(combination);
      for (const std::uint64_t seed : spec_.seeds) {
        Point point{.kernel = &kernel, .axes = axes};
        point.subject.kernel = kernel.name;
        point.subject.problem = problem;
        point.subject.plan = plan;
        point.subject.layouts.paging = paging;
        point.subject.inputs.seed = seed;
        for (const auto& [name, value] : inputs) find_axis(name)->set(point.subject, value);
        point.axes.insert(inputs.begin(), inputs.end());
        if (spec_.seeds.size() > 1) point.axes["inputs.seed"] = static_cast<double>(seed);
        add(std::move(point));
      }
    }
  }

  void add(Point point) {
    const std::string what = fmt::format("{} {} {}", point.kernel->name, tensors_of(point),
                                         to_string(point.subject.plan));
    const InputFamily& family = input_family(point.subject.inputs.family);
    const Operation& operation = *point.kernel->operation;
    if (!family.serves(operation)) {
      return skip(Skipped::By::constraint, what, other_operation(family, operation), point.axes);
    }
    if (const auto why =
            family.unsupported ? family.unsupported(point.subject.problem) : std::nullopt) {
      return skip(Skipped::By::constraint, what, fmt::format("inputs {}: {}", family.name, *why),
                  point.axes);
    }
    const Paging& paging = point.subject.layouts.paging;
    // Other families give a head the values of its keys in their order (tiled_inputs).
    if (paging.is_used() && family.name != InputSpec{}.family) {
      return skip(Skipped::By::constraint, what,
                  fmt::format("inputs {}: values of pages are drawn from {} alone", family.name,
                              InputSpec{}.family),
                  point.axes);
    }
    if (const auto why = why_unsupported(*point.kernel, point.subject)) {
      return skip(Skipped::By::kernel, what, *why, point.axes);
    }
    ModelValues models(*point.kernel, point.subject, context_);
    const Row row{.value = [&](std::string_view name) { return models.value(name); }};
    for (const Condition& constraint : spec_.constraints) {
      const Value value = evaluate(*constraint.expression, row);
      if (value.is_surely_true()) continue;
      std::string reason = fmt::format("not: {}", constraint.text);
      if (value.kind == Value::Kind::missing) reason += fmt::format("; {}", to_string(value));
      return skip(Skipped::By::constraint, what, std::move(reason), point.axes);
    }
    add_baselines(point);
    expansion_.points.push_back(std::move(point));
    require_room();
  }

  /// What has one value in the whole study is no axis of it.
  void keep_what_varies() {
    std::map<std::string, std::set<AxisValue>> values;
    const auto note = [&](const AxisValues& axes) {
      for (const auto& [name, value] : axes) values[name].insert(value);
    };
    const auto shorten = [&](AxisValues& axes) {
      std::erase_if(axes, [&](const auto& axis) { return values[axis.first].size() == 1; });
    };
    for (const Point& point : expansion_.points) note(point.axes);
    for (const Skipped& skipped : expansion_.skipped) note(skipped.axes);
    for (Point& point : expansion_.points) shorten(point.axes);
    for (Skipped& skipped : expansion_.skipped) shorten(skipped.axes);
  }

  void add_baselines(Point& point) {
    for (const Baseline& baseline : spec_.baselines) {
      const auto skip_it = [&](std::string reason) {
        // Once for a problem, whatever the number of points.
        const std::string what = fmt::format("baseline {} {}", baseline.name, tensors_of(point));
        if (skipped_baselines_.insert(what).second)
          skip(Skipped::By::kernel, what, std::move(reason), {});
      };
      const ChosenKernel chosen = choose_kernel(baseline.kernel, spec_.executor, context_.has_gpu);
      if (chosen.kernel == nullptr) {
        skip_it(chosen.why_not);
        continue;
      }
      Case subject = point.subject;
      subject.kernel = baseline.kernel;
      const auto picked = PlanChoice(*chosen.kernel, subject.problem, gpu_).pick(baseline.plan);
      if (const auto* reason = std::get_if<std::string>(&picked)) {
        skip_it(*reason);
        continue;
      }
      subject.plan = std::get<Plan>(picked);
      if (const auto why = why_unsupported(*chosen.kernel, subject)) {
        skip_it(*why);
      } else {
        point.baselines.push_back(
            {.name = baseline.name, .kernel = chosen.kernel, .subject = std::move(subject)});
      }
    }
  }

  void sample() {
    auto& points = expansion_.points;
    const auto wanted = static_cast<std::size_t>(spec_.sampling.points);
    if (spec_.sampling.method != Sampling::Method::random || points.size() <= wanted) return;
    // The smallest of as many draws as points: no point depends on another one's.
    std::vector<std::pair<std::uint64_t, std::size_t>> draws;
    for (std::size_t i = 0; i < points.size(); ++i) {
      const std::string id = point_id(*points[i].kernel, points[i].subject);
      draws.emplace_back(random_bits(spec_.sampling.seed, 0, std::stoull(id, nullptr, 16)), i);
    }
    std::ranges::sort(draws);
    std::set<std::size_t> kept;
    for (std::size_t i = 0; i < wanted; ++i) kept.insert(draws[i].second);
    std::vector<Point> sampled;
    for (std::size_t i = 0; i < points.size(); ++i) {
      Point& point = points[i];
      if (kept.contains(i)) {
        sampled.push_back(std::move(point));
      } else {
        skip(Skipped::By::sampling,
             fmt::format("{} {} {}", point.kernel->name, tensors_of(point),
                         to_string(point.subject.plan)),
             fmt::format("not drawn: {} of {} are", wanted, points.size()), point.axes);
      }
    }
    points = std::move(sampled);
  }

  std::map<const Operation*, std::vector<ProblemPoint>> problems_;
  const StudySpec& spec_;
  const ExpansionContext& context_;
  std::string gpu_;
  Expansion expansion_;
  std::set<std::string> skipped_baselines_;
};

}  // namespace

Expansion expand(const StudySpec& spec, const ExpansionContext& context) {
  return Expander(spec, context).expand();
}

}  // namespace attest
