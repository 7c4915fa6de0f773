#include "verify/cases/shrinking.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <ranges>
#include <set>
#include <variant>

#include "core/attention/problem_field.hpp"
#include "core/inputs/input_family.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

/// Smaller values of a size, boldest first: a few small ones, then less by a half, a quarter, ...
/// and one, so that any number reaches the smallest that fails in as many steps as it has bits.
std::vector<std::int64_t> smaller_sizes(std::int64_t size, std::int64_t least) {
  std::vector<std::int64_t> smaller;
  const auto add = [&](std::int64_t candidate) {
    if (candidate >= least && candidate < size) smaller.push_back(candidate);
  };
  for (const std::int64_t small : {least, std::int64_t{1}, std::int64_t{2}}) add(small);
  for (std::int64_t less = size / 2; less > 0; less /= 2) add(size - less);
  std::ranges::sort(smaller);
  const auto repeated = std::ranges::unique(smaller);
  smaller.erase(repeated.begin(), repeated.end());
  return smaller;
}

/// Smaller lengths to try; those around a tile's edge are the likely culprits.
std::vector<std::int64_t> smaller_lengths(std::int64_t length, std::int64_t tile,
                                          std::int64_t least) {
  std::vector<std::int64_t> smaller = smaller_sizes(length, least);
  for (const std::int64_t candidate : {tile + 1, tile, 2 * tile + 1}) {
    if (candidate >= least && candidate < length) smaller.push_back(candidate);
  }
  std::ranges::sort(smaller);
  const auto repeated = std::ranges::unique(smaller);
  smaller.erase(repeated.begin(), repeated.end());
  return smaller;
}

/// Powers of two, which most kernels have; then those that the kernel lists, or any.
std::vector<std::int64_t> smaller_head_dims(const KernelInfo& kernel, std::int64_t head_dim) {
  std::vector<std::int64_t> dims{1, 2, 4, 8, 16, 32, 64, 128, 256, 512};
  const std::vector<std::int64_t> any = smaller_sizes(head_dim, 1);
  const std::vector<std::int64_t>& more = kernel.head_dims.empty() ? any : kernel.head_dims;
  dims.insert(dims.end(), more.begin(), more.end());
  std::erase_if(dims, [&](std::int64_t dim) { return dim >= head_dim; });
  std::ranges::sort(dims);
  const auto repeated = std::ranges::unique(dims);
  dims.erase(repeated.begin(), repeated.end());
  return dims;
}

/// A dense problem first, then without one of the features at a time, from the last field on, or
/// without the window.
template <typename Add>
void add_without_extras(const Problem& problem, const Add& add) {
  const auto without_window = [](Case& s) {
    if (is_window(s.problem.mask)) s.problem = with_prefix_mask(s.problem, Mask::none);
  };
  add([&](Case& s) {
    for (const ProblemField& field : problem_fields()) take_feature_away(field, s.problem);
    without_window(s);
  });
  for (const ProblemField& field : problem_fields() | std::views::reverse) {
    add([&](Case& s) { take_feature_away(field, s.problem); });
  }
  add(without_window);
  add([](Case& s) { s.problem.dropout_seed = s.problem.dropout_offset = 0; });
  add([](Case& s) {
    if (s.problem.bias != Bias::none) s.problem.bias = Bias::shared;
  });
  // What another seed draws may show the same with fewer entries.
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U, 5U, 6U}) {
    for (const ProblemField& field : problem_fields()) {
      if (field.kind() != FieldKind::seed) continue;
      const bool is_smaller = seed < std::get<std::uint64_t>(value_of(field, problem));
      if (is_smaller) add([&](Case& s) { set_value(field, s.problem, seed); });
    }
  }
}

/// Sides without an end, then smaller ones; causal masks are windows with one such side.
template <typename Add>
void add_smaller_windows(const Case& c, const Add& add) {
  if (!is_window(c.problem.mask)) return;
  const bool is_top_left = c.problem.mask == Mask::window_top_left;
  add([&](Case& s) {
    s.problem = with_prefix_mask(s.problem,
                                 is_top_left ? Mask::causal_top_left : Mask::causal_bottom_right);
  });
  for (std::int64_t Window::*side : {&Window::left, &Window::right}) {
    const std::int64_t length = c.problem.window.*side;
    if (length < 0) continue;
    add([&](Case& s) { s.problem.window.*side = -1; });
    for (const std::int64_t smaller : smaller_lengths(length, c.plan.key_tile, 0)) {
      add([&](Case& s) { s.problem.window.*side = smaller; });
    }
  }
}

/// Pages in order, of their own, without others between them, then none.
template <typename Add>
void add_simpler_pages(const KernelInfo& kernel, const Case& c, const Add& add) {
  const Paging& paging = c.layouts.paging;
  add([](Case& s) { s.problem.shared_keys = 0; });
  for (const std::int64_t keys : smaller_sizes(c.problem.shared_keys, 1)) {
    add([&](Case& s) { s.problem.shared_keys = keys; });
  }
  if (!paging.is_used()) return;
  if (kernel.layout_needs.pages == Pages::also) add([](Case& s) { s.layouts.paging = {}; });
  add([](Case& s) { s.layouts.paging = {.page_size = s.layouts.paging.page_size}; });
  add([](Case& s) { s.layouts.paging.unused = Unused::nan; });
  add([](Case& s) { s.layouts.paging.shuffle_seed = 0; });
  add([](Case& s) { s.layouts.paging.shares_prefix = false; });
  add([](Case& s) { s.layouts.paging.joins_kv = false; });
  add([](Case& s) { s.layouts.paging.spare_columns = 0; });
  add([](Case& s) { s.layouts.paging.table = TableForm::dense; });
  for (const std::int64_t spare : smaller_sizes(paging.spare_pages, 0)) {
    add([&](Case& s) { s.layouts.paging.spare_pages = spare; });
  }
  if (paging.shuffle_seed > 1) add([](Case& s) { s.layouts.paging.shuffle_seed = 1; });
  const std::vector<std::int64_t>& own = kernel.layout_needs.page_sizes;
  for (const std::int64_t size : own.empty() ? smaller_sizes(paging.page_size, 1) : own) {
    if (size >= paging.page_size) continue;
    add([&](Case& s) { s.layouts.paging.page_size = size; });
  }
}

}  // namespace

bool has_inputs(const Case& c) {
  const InputFamily& family = input_family(c.inputs.family);
  if (!family.serves(*c.problem.operation)) return false;
  if (!family.head_dims.empty() &&
      std::ranges::find(family.head_dims, c.problem.head_dim) == family.head_dims.end()) {
    return false;
  }
  return !family.unsupported || !family.unsupported(c.problem);
}

std::optional<std::string> why_refused(const KernelInfo& kernel, const Case& c) {
  if (auto reason = why_unsupported(kernel, c)) return reason;
  const std::vector<Plan> plans = kernel.plans(c.problem);
  if (std::ranges::find(plans, c.plan) != plans.end()) return std::nullopt;
  return fmt::format("{} does not offer the plan {} for the problem", kernel.name,
                     to_string(c.plan));
}

bool can_run(const KernelInfo& kernel, const Case& c) {
  return has_inputs(c) && !why_refused(kernel, c);
}

void set_head_dim(std::int64_t head_dim, Problem& problem) {
  const bool is_default = problem.scale == default_scale(problem.head_dim);
  problem.head_dim = head_dim;
  if (is_default) problem.scale = default_scale(head_dim);
  if (problem.value_dim == head_dim) problem.value_dim = 0;
}

std::vector<Case> simpler_cases(const KernelInfo& kernel, const Case& c) {
  std::vector<Case> candidates;
  const auto add = [&](const auto& change) {
    Case simpler = c;
    change(simpler);
    simpler.problem = with_needs_of(kernel, simpler.problem);
    simpler.layouts = fitted(kernel.layout_needs, simpler.problem, simpler.layouts);
    if (!(simpler == c) && can_run(kernel, simpler)) candidates.push_back(std::move(simpler));
  };
  add_without_extras(c.problem, add);
  add([](Case& s) { s.problem.batch = s.problem.query_heads = s.problem.kv_heads = 1; });
  // One head fails less often than many: other values may help.
  for (const std::uint64_t seed : {0U, 1U, 2U, 3U, 4U, 5U, 6U, 7U}) {
    if (c.problem.batch * c.problem.query_heads == 1) break;
    add([&](Case& s) {
      s.problem.batch = s.problem.query_heads = s.problem.kv_heads = 1;
      s.inputs.seed = seed;
    });
  }
  add([](Case& s) { s.problem.batch = 1; });
  add([](Case& s) { s.problem.query_heads = s.problem.kv_heads = 1; });
  add([](Case& s) {
    s.problem.query_heads = s.problem.query_heads / s.problem.kv_heads;
    s.problem.kv_heads = 1;
  });
  add([](Case& s) { s.problem.query_heads = s.problem.kv_heads; });
  for (const std::int64_t batch : smaller_sizes(c.problem.batch, 1)) {
    add([&](Case& s) { s.problem.batch = batch; });
  }
  const std::int64_t group = c.problem.query_heads / c.problem.kv_heads;
  for (const std::int64_t kv_heads : smaller_sizes(c.problem.kv_heads, 1)) {
    add([&](Case& s) {
      s.problem.kv_heads = kv_heads;
      s.problem.query_heads = group * kv_heads;
    });
  }
  for (const std::int64_t smaller_group : smaller_sizes(group, 1)) {
    add([&](Case& s) { s.problem.query_heads = smaller_group * s.problem.kv_heads; });
  }
  add([](Case& s) { s.layouts = {}; });
  for (const std::int64_t length : smaller_lengths(c.problem.query_len, c.plan.query_tile, 1)) {
    add([&](Case& s) { s.problem.query_len = length; });
    add([&](Case& s) { s.problem.query_len = s.problem.key_len = length; });
  }
  for (const std::int64_t length : smaller_lengths(c.problem.key_len, c.plan.key_tile, 0)) {
    add([&](Case& s) { s.problem.key_len = length; });
  }
  for (const std::int64_t value_dim : {1, 8, 16, 64}) {
    if (value_dim >= c.problem.value_dim) break;
    add([&](Case& s) { s.problem.value_dim = value_dim; });
  }
  for (const std::int64_t head_dim : smaller_head_dims(kernel, c.problem.head_dim)) {
    add([&](Case& s) { set_head_dim(head_dim, s.problem); });
  }
  add([](Case& s) { s.problem = with_prefix_mask(s.problem, Mask::none); });
  add_smaller_windows(c, add);
  add([](Case& s) { s.problem.element_type = ElementType::fp32; });
  add([](Case& s) { s.problem.scale = default_scale(s.problem.head_dim); });
  for (const Plan& plan : kernel.plans(c.problem)) {
    if (plan == c.plan) break;  // plans are listed smallest first
    add([&](Case& s) { s.plan = plan; });
  }
  for (const std::string_view family : {"zero_q", "sparse_integers", "normal"}) {
    if (c.inputs.family == family) break;
    add([&](Case& s) {
      s.inputs.family = family;
      s.inputs.magnitude = 1;
    });
  }
  add([](Case& s) { s.inputs.round_to_integers = true; });
  for (const double factor : {0.01, 0.1, 0.5, 0.8}) {
    if (c.inputs.magnitude * factor < 1) continue;
    add([&](Case& s) { s.inputs.magnitude = std::round(s.inputs.magnitude * factor); });
  }
  for_each_tensor(*c.problem.operation, [&](const TensorSpec& tensor, auto index) {
    if (!tensor.is_strided) return;
    add([&](Case& s) { s.layouts[index] = {}; });
    add([&](Case& s) { s.layouts[index].order = DimOrder::bhnd; });
    for (std::int64_t TensorLayout::*field :
         {&TensorLayout::outer_gap, &TensorLayout::plane_gap, &TensorLayout::row_gap,
          &TensorLayout::base_offset, &TensorLayout::lone_stride}) {
      add([&](Case& s) { s.layouts[index].*field = 0; });
    }
  });
  add_simpler_pages(kernel, c, add);
  add([](Case& s) { s.schedule_seed = 0; });
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    if (c.inputs.seed <= seed) break;
    add([&](Case& s) { s.inputs.seed = seed; });
  }
  return candidates;
}

Case shrink(const KernelInfo& kernel, const Case& c, const std::function<bool(const Case&)>& fails,
            int max_calls) {
  Case smallest = c;
  std::set<std::string> tried;
  bool is_smaller = true;
  while (is_smaller) {
    is_smaller = false;
    std::vector<Case> candidates = simpler_cases(kernel, smallest);
    for (std::size_t i = 0; i < candidates.size();) {
      const bool is_new = tried.insert(to_json(candidates[i])).second;
      if (is_new && max_calls-- <= 0) return smallest;
      if (!is_new || !fails(candidates[i])) {
        ++i;
        continue;
      }
      smallest = candidates[i];
      is_smaller = true;
      candidates = simpler_cases(kernel, smallest);
    }
  }
  return smallest;
}

}  // namespace attest
