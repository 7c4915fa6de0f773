#include "verify/generators.hpp"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>

#include "core/error.hpp"
#include "core/input_family.hpp"
#include "core/registry.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

struct HeadCounts {
  std::int64_t query, kv;
};

/// GQA ratios that are not powers of two are the ones that find index errors (HipKittens#22).
constexpr std::array<HeadCounts, 9> head_counts{
    {{1, 1}, {2, 1}, {2, 2}, {3, 1}, {3, 3}, {4, 2}, {4, 4}, {5, 1}, {6, 2}}};

std::vector<const InputFamily*> matching_families(const std::string& glob) {
  std::vector<const InputFamily*> matching;
  for (const InputFamily& family : all_input_families()) {
    if (matches_glob(family.name, glob)) matching.push_back(&family);
  }
  if (matching.empty()) {
    throw InvalidInput(
        fmt::format("--family '{}' matches no input family; see attest list inputs", glob));
  }
  return matching;
}

/// A length near a multiple of the tile, a prime, 1, or anything.
std::int64_t draw_len(std::int64_t tile, std::int64_t max_len) {
  tile = std::clamp<std::int64_t>(tile, 1, max_len);
  const auto edge = *gen::element<std::int64_t>(-1, 0, 1);
  const auto multiple =
      *gen::inRange<std::int64_t>(1, std::max<std::int64_t>(2, max_len / tile + 1));
  const auto length = *gen::weightedOneOf<std::int64_t>(
      {{6, gen::just(multiple * tile + edge)},
       {1, gen::just<std::int64_t>(1)},
       {2, gen::element<std::int64_t>(2, 3, 5, 7, 11, 13, 31, 37, 61, 67, 97, 101, 127, 131)},
       {3, gen::inRange<std::int64_t>(1, max_len + 1)}});
  return std::clamp<std::int64_t>(length, 1, max_len);
}

std::int64_t draw_head_dim(const InputFamily& family, const GeneratorOptions& options) {
  if (!family.head_dims.empty()) return *gen::elementOf(family.head_dims);
  const auto common = *gen::element<std::int64_t>(16, 32, 64);
  const auto odd = *gen::element<std::int64_t>(16, 17, 24, 40, 48, 59, 63);
  const auto wide = *gen::element<std::int64_t>(65, 80, 96, 111, 128);
  const auto drawn = *gen::weightedOneOf<std::int64_t>(
      {{5, gen::just(common)}, {3, gen::just(odd)}, {2, gen::just(wide)}});
  return std::min(drawn, options.max_head_dim);
}

TensorLayout draw_layout() {
  return {.order = *gen::element(DimOrder::bhnd, DimOrder::bnhd),
          .row_gap = *gen::element<std::int64_t>(0, 0, 1, 3, 8),
          .base_offset = *gen::element<std::int64_t>(0, 0, 1, 2, 7)};
}

Layouts draw_layouts() {
  if (*gen::inRange(0, 3) == 0) return {};
  return {.q = draw_layout(), .k = draw_layout(), .v = draw_layout(), .o = draw_layout()};
}

/// Called inside gen::exec, where dereferencing a generator draws from it.
Case draw_any(const KernelInfo& kernel, const GeneratorOptions& options) {
  Case c;
  c.kernel = kernel.name;
  const InputFamily& family = **gen::elementOf(matching_families(options.families));
  Problem& p = c.problem;
  p.element_type = *gen::elementOf(kernel.element_types);
  p.mask = *gen::elementOf(kernel.masks);
  p.head_dim = draw_head_dim(family, options);
  p.scale = *gen::weightedElement<float>({{8, default_scale(p.head_dim)},
                                          {1, 1.0F},
                                          {1, 0.3F},
                                          {1, -default_scale(p.head_dim)},
                                          {1, 0.0F}});
  if (!family.head_dims.empty()) p.scale = default_scale(p.head_dim);
  const HeadCounts heads = *gen::elementOf(head_counts);
  p.query_heads = heads.query;
  p.kv_heads = heads.kv;
  if (p.query_heads > options.max_query_heads) p.query_heads = p.kv_heads = 1;
  p.batch = *gen::weightedElement<std::int64_t>({{4, 1}, {2, 2}, {1, 3}});

  // Plans of the largest problem of this kind: the lengths are then drawn around one plan's tiles.
  Problem largest = p;
  largest.query_len = largest.key_len = options.max_len;
  const std::vector<Plan> plans = kernel.plans(largest);
  if (plans.empty()) return c;
  c.plan = *gen::elementOf(plans);
  p.query_len = draw_len(std::max<std::int64_t>(1, c.plan.query_tile), options.max_len);
  p.key_len = *gen::weightedOneOf<std::int64_t>(
      {{12, gen::just(draw_len(std::max<std::int64_t>(1, c.plan.key_tile), options.max_len))},
       {3, gen::just(p.query_len)},
       {1, gen::just<std::int64_t>(0)}});
  // Large in every direction at once is slow and finds nothing that large in one does not.
  while (p.batch * p.query_heads * p.query_len * p.key_len >
         options.max_len * options.max_len * 2) {
    if (p.batch > 1) {
      p.batch = 1;
    } else {
      p.query_heads = p.kv_heads = 1;
    }
  }
  c.layouts = fitted(kernel.layout_needs, p, draw_layouts());
  c.inputs = {.family = family.name,
              .seed = *gen::arbitrary<std::uint64_t>(),
              .magnitude = *gen::elementOf(family.magnitudes),
              .round_to_integers = false};
  c.schedule_seed = *gen::arbitrary<std::uint64_t>();
  return c;
}

bool is_supported(const KernelInfo& kernel, const Case& c) {
  const InputFamily& family = input_family(c.inputs.family);
  if (!family.head_dims.empty() &&
      std::ranges::find(family.head_dims, c.problem.head_dim) == family.head_dims.end()) {
    return false;
  }
  if (family.unsupported && family.unsupported(c.problem)) return false;
  if (why_unsupported(kernel, c)) return false;
  const std::vector<Plan> plans = kernel.plans(c.problem);
  return std::ranges::find(plans, c.plan) != plans.end();
}

/// Smaller values of a length, boldest first; those around a tile's edge are the likely culprits.
std::vector<std::int64_t> smaller_lengths(std::int64_t length, std::int64_t tile,
                                          std::int64_t least) {
  std::vector<std::int64_t> smaller;
  for (const std::int64_t candidate : {least, std::int64_t{1}, std::int64_t{2}, tile + 1, tile,
                                       2 * tile + 1, length / 2, length - length / 4, length - 1}) {
    if (candidate >= least && candidate < length) smaller.push_back(candidate);
  }
  std::ranges::sort(smaller);
  const auto repeated = std::ranges::unique(smaller);
  smaller.erase(repeated.begin(), repeated.end());
  return smaller;
}

}  // namespace

std::optional<Case> draw_case(const KernelInfo& kernel, const GeneratorOptions& options,
                              std::uint64_t seed, std::uint64_t index) {
  const auto generator = gen::exec([&] { return draw_any(kernel, options); });
  // RapidCheck keeps the generator that `*` draws from in one variable for all threads.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  // One independent stream a case: the key of RapidCheck's generator is hashed from seed and index.
  rc::Random random(seed * 0x9e3779b97f4a7c15ULL + index * 0xd1b54a32d192ed03ULL + 1U);
  for (int attempt = 0; attempt < 50; ++attempt) {
    const Case c = generator(random.split(), 100).value();
    if (is_supported(kernel, c)) return c;
  }
  return std::nullopt;
}

std::vector<Case> simpler_cases(const KernelInfo& kernel, const Case& c) {
  std::vector<Case> candidates;
  const auto add = [&](const auto& change) {
    Case simpler = c;
    change(simpler);
    simpler.layouts = fitted(kernel.layout_needs, simpler.problem, simpler.layouts);
    if (!(simpler == c) && is_supported(kernel, simpler)) candidates.push_back(std::move(simpler));
  };
  add([](Case& s) { s.problem.batch = s.problem.query_heads = s.problem.kv_heads = 1; });
  add([](Case& s) { s.problem.batch = 1; });
  add([](Case& s) { s.problem.query_heads = s.problem.kv_heads = 1; });
  add([](Case& s) {
    s.problem.query_heads = s.problem.query_heads / s.problem.kv_heads;
    s.problem.kv_heads = 1;
  });
  add([](Case& s) { s.problem.query_heads = s.problem.kv_heads; });
  add([](Case& s) { s.layouts = {}; });
  for (const std::int64_t length : smaller_lengths(c.problem.query_len, c.plan.query_tile, 1)) {
    add([&](Case& s) { s.problem.query_len = length; });
    add([&](Case& s) { s.problem.query_len = s.problem.key_len = length; });
  }
  for (const std::int64_t length : smaller_lengths(c.problem.key_len, c.plan.key_tile, 0)) {
    add([&](Case& s) { s.problem.key_len = length; });
  }
  for (const std::int64_t head_dim : {1, 2, 4, 8, 16, 32, 64}) {
    if (head_dim >= c.problem.head_dim) break;
    add([&](Case& s) {
      const bool is_default = s.problem.scale == default_scale(s.problem.head_dim);
      s.problem.head_dim = head_dim;
      if (is_default) s.problem.scale = default_scale(head_dim);
    });
  }
  add([](Case& s) { s.problem.mask = Mask::none; });
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
  for (TensorLayout Layouts::*tensor : {&Layouts::q, &Layouts::k, &Layouts::v, &Layouts::o}) {
    add([&](Case& s) { s.layouts.*tensor = {}; });
  }
  add([](Case& s) { s.schedule_seed = 0; });
  for (const std::uint64_t seed : {0U, 1U, 2U}) {
    if (c.inputs.seed <= seed) break;
    add([&](Case& s) { s.inputs.seed = seed; });
  }
  return candidates;
}

Case shrink(const KernelInfo& kernel, const Case& c, const std::function<bool(const Case&)>& fails,
            int max_calls) {
  rc::Shrinkable<Case> smallest = rc::shrinkable::shrinkRecur(
      c, [&](const Case& parent) { return rc::seq::fromContainer(simpler_cases(kernel, parent)); });
  rc::Seq<rc::Shrinkable<Case>> children = smallest.shrinks();
  while (max_calls > 0) {
    const rc::Maybe<rc::Shrinkable<Case>> child = children.next();
    if (!child) break;
    --max_calls;
    if (!fails(child->value())) continue;
    smallest = *child;
    children = smallest.shrinks();
  }
  return smallest.value();
}

}  // namespace attest
