#include "experiments/study/schedule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/random.hpp"

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
  std::string key =
      fmt::format("{}|{}|{} x{} seed {}", name_of(point.kernel->executor),
                  to_string(point.subject.problem), inputs.family, inputs.magnitude, inputs.seed);
  for (const Point::Rival& rival : point.baselines) {
    key += fmt::format("|{} {}", rival.name, point_id(*rival.kernel, rival.subject));
  }
  return key;
}

/// Axes that a baseline has too: those of the problem and the inputs.
std::map<std::string, std::string> shared_axes(const Point& point) {
  std::map<std::string, std::string> axes;
  for (const auto& [name, value] : point.axes) {
    if (!name.starts_with("plan.") && name != "kernel") axes.emplace(name, value);
  }
  return axes;
}

}  // namespace

std::size_t Group::wanted() const {
  return static_cast<std::size_t>(std::ranges::count_if(points, &Contender::is_wanted) +
                                  std::ranges::count_if(rivals, &Contender::is_wanted));
}

std::vector<Group> schedule(const std::vector<Point>& points, std::uint64_t seed,
                            std::size_t points_a_group) {
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
    Group* group = nullptr;
    for (const Point* const point : problems[p]) {
      const std::string id = point_id(*point->kernel, point->subject);
      if (!points_seen.insert(id).second) continue;  // two axes may ask for the same
      if (group == nullptr || group->points.size() >= points_a_group) {
        group = &groups.emplace_back();
        for (const Point::Rival& rival : point->baselines) {
          const std::string rival_id = point_id(*rival.kernel, rival.subject);
          group->rivals.push_back({.kernel = rival.kernel,
                                   .subject = rival.subject,
                                   .id = rival_id,
                                   .baseline = rival.name,
                                   .axes = shared_axes(*point),
                                   .is_wanted = recorded.insert(rival_id).second});
        }
      }
      group->points.push_back(
          {.kernel = point->kernel, .subject = point->subject, .id = id, .axes = point->axes});
    }
  }
  return groups;
}

std::vector<Group> groups_to_do(const std::vector<Group>& groups, const Shard& shard,
                                const std::set<std::string>& done) {
  std::vector<Group> left;
  for (std::size_t g = 0; g < groups.size(); ++g) {
    if (static_cast<std::int64_t>(g) % shard.count != shard.index) continue;
    Group group = groups[g];
    std::erase_if(group.points, [&](const Contender& c) { return done.contains(c.id); });
    for (Contender& rival : group.rivals) rival.is_wanted &= !done.contains(rival.id);
    if (group.wanted() > 0) left.push_back(std::move(group));
  }
  return left;
}

}  // namespace attest
