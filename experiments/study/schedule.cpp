#include "experiments/study/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/inputs/random.hpp"

namespace attest {
namespace {

enum Draw : std::uint64_t { draw_problems = 1, draw_points };

template <typename T>
void shuffle(std::vector<T>& values, std::uint64_t seed, std::uint64_t stream) {
  for (std::size_t i = values.size(); i > 1; --i) {
    const auto j = random_below(seed, stream, i, static_cast<std::int64_t>(i));
    std::swap(values[i - 1], values[static_cast<std::size_t>(j)]);
  }
}

/// What points of a group have in common.
std::string side_by_side_key(const Point& point) {
  const InputSpec& inputs = point.subject.inputs;
  std::string key = fmt::format(
      "{}|{}|{}|{} x{} seed {}", name_of(point.kernel->executor), to_string(point.subject.problem),
      to_string(point.subject.layouts.paging), inputs.family, inputs.magnitude, inputs.seed);
  for (const Point::BaselineCase& baseline : point.baselines) {
    key += fmt::format("|{} {}", baseline.name, point_id(*baseline.kernel, baseline.subject));
  }
  return key;
}

/// Axes that a baseline has too: those of the problem, the layout and the inputs.
AxisValues shared_axes(const Point& point) {
  AxisValues axes;
  for (const auto& [name, value] : point.axes) {
    if (!name.starts_with("plan.") && name != "kernel") axes.emplace(name, value);
  }
  return axes;
}

}  // namespace

std::size_t Group::wanted() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, &TimedKernel::is_wanted) +
                                  std::ranges::count_if(baselines, &TimedKernel::is_wanted));
}

std::size_t most_side_by_side(const StudySpec& spec, const std::vector<Point>& points) {
  const bool is_timed = std::ranges::any_of(
      points, [](const Point& p) { return p.kernel->executor == Executor::gpu; });
  if (!is_timed) return 1;
  return spec.sampling.method == Sampling::Method::halving ? points.size() : points_a_group;
}

std::vector<Group> schedule(const std::vector<Point>& points, std::uint64_t seed,
                            std::size_t most) {
  std::vector<std::vector<const Point*>> problems;
  std::map<std::string, std::size_t> problem_of_key;
  std::set<std::string> recorded;
  for (const Point& point : points) {
    const auto [found, is_new] =
        problem_of_key.try_emplace(side_by_side_key(point), problems.size());
    if (is_new) problems.emplace_back();
    problems[found->second].push_back(&point);
    recorded.insert(point_id(*point.kernel, point.subject));
  }
  shuffle(problems, seed, draw_problems);
  std::vector<Group> groups;
  std::set<std::string> points_seen;
  for (std::size_t p = 0; p < problems.size(); ++p) {
    shuffle(problems[p], seed, draw_points + p);
    std::vector<std::pair<std::string, const Point*>> together;
    for (const Point* const point : problems[p]) {
      std::string id = point_id(*point->kernel, point->subject);
      // Two axes may ask for the same.
      if (points_seen.insert(id).second) together.emplace_back(std::move(id), point);
    }
    // Alike in size, so that a rank does not get one point where another gets eight.
    const std::size_t parts = (together.size() + most - 1) / most;
    for (std::size_t part = 0; part < parts; ++part) {
      Group& group = groups.emplace_back();
      const std::size_t end = (part + 1) * together.size() / parts;
      for (std::size_t i = part * together.size() / parts; i < end; ++i) {
        const auto& [id, point] = together[i];
        group.points.push_back(
            {.kernel = point->kernel, .subject = point->subject, .id = id, .axes = point->axes});
      }
      const Point& first = *together[part * together.size() / parts].second;
      for (const Point::BaselineCase& baseline : first.baselines) {
        const std::string baseline_id = point_id(*baseline.kernel, baseline.subject);
        group.baselines.push_back({.kernel = baseline.kernel,
                                   .subject = baseline.subject,
                                   .id = baseline_id,
                                   .baseline = baseline.name,
                                   .axes = shared_axes(first),
                                   .is_wanted = recorded.insert(baseline_id).second});
      }
    }
  }
  return groups;
}

std::vector<Group> groups_to_do(const std::vector<Group>& groups, const Shard& shard,
                                const std::set<std::string>& done) {
  std::vector<Group> left;
  // Each group goes to whoever has the fewest kernels so far.
  std::vector<std::size_t> loads(static_cast<std::size_t>(shard.count), 0);
  for (const Group& whole : groups) {
    const auto least = std::ranges::min_element(loads);
    *least += whole.points.size() + whole.baselines.size();
    if (least - loads.begin() != shard.index) continue;
    Group group = whole;
    std::erase_if(group.points, [&](const TimedKernel& c) { return done.contains(c.id); });
    for (TimedKernel& baseline : group.baselines) baseline.is_wanted &= !done.contains(baseline.id);
    if (group.wanted() > 0) left.push_back(std::move(group));
  }
  return left;
}

}  // namespace attest
