#include "verify/cases/claimed.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "core/attention/element_type.hpp"
#include "core/attention/layout_needs.hpp"
#include "core/attention/problem_field.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

// A kernel that lists more head dims lists a range; its wide end is then what counts.
constexpr std::size_t most_listed_head_dims = 16;
// A plugin may refuse one Plan for a problem and take the next; only its worker knows.
constexpr std::ptrdiff_t most_plans_probed = 4;

/// A size beyond what most problems have, and problems that have it.
struct LargeSize {
  std::string_view fact;
  std::function<bool(const Problem&)> holds;
  std::vector<std::function<void(Problem&)>> makes;
  bool needs_keys = false;  ///< it is about keys or the heads that share them
};

void set_heads(Problem& p, std::int64_t query_heads, std::int64_t kv_heads) {
  p.query_heads = query_heads;
  p.kv_heads = kv_heads;
}

const std::vector<LargeSize>& large_sizes() {
  static const std::vector<LargeSize> sizes{
      {"head_dim above 128",
       [](const Problem& p) { return p.head_dim > 128; },
       {[](Problem& p) { p.head_dim = 256; }, [](Problem& p) { p.head_dim = 192; }}},
      {"grouped heads",
       [](const Problem& p) { return p.query_heads > p.kv_heads; },
       {[](Problem& p) { set_heads(p, 4, 2); }, [](Problem& p) { set_heads(p, 8, 1); }},
       true},
      {"groups above 8",
       [](const Problem& p) { return p.query_heads > 8 * p.kv_heads; },
       {[](Problem& p) { set_heads(p, 16, 1); }},
       true},
      {"query heads above 32",
       [](const Problem& p) { return p.query_heads > 32; },
       {[](Problem& p) { set_heads(p, 64, 64); }, [](Problem& p) { set_heads(p, 64, 8); }}},
      {"batch above 64", [](const Problem& p) { return p.batch > 64; }, {[](Problem& p) {
         p.batch = 128;
       }}},
      {"no keys",
       [](const Problem& p) { return p.key_len == 0; },
       {[](Problem& p) { p.key_len = 0; }},
       true}};
  return sizes;
}

std::string head_dim_fact(std::int64_t head_dim) {
  return fmt::format("head_dim {}", head_dim);
}

std::string type_fact(ElementType type) {
  return std::string(format_of(type).name);
}

std::string mask_fact(Mask mask) {
  return fmt::format("mask {}", name_of(mask));
}

/// `query_tile 64`, `pack_gqa yes`.
std::string plan_fact(const PlanField& field, std::int64_t value) {
  return field.is_choice()
             ? fmt::format("{} {}", field.name, field.values[static_cast<std::size_t>(value - 1)])
             : fmt::format("{} {}", field.name, value);
}

/// The dense problem that is left of a case.
Case plain(const KernelInfo& kernel, Case c) {
  c.problem = plain_problem(kernel, c.problem);
  c.problem.key_len = std::max<std::int64_t>(1, c.problem.key_len);
  c.layouts = fitted(kernel.layout_needs, c.problem, {});
  return c;
}

/// The case with each of the first Plans that the kernel offers for its problem, that `is_wanted`
/// and that nothing known here speaks against.
void add_probes(const KernelInfo& kernel, Case c, const std::function<bool(const Plan&)>& is_wanted,
                std::vector<Case>& probes) {
  c.layouts = fitted(kernel.layout_needs, c.problem, c.layouts);
  std::ptrdiff_t count = 0;
  for (const Plan& plan : kernel.plans(c.problem)) {
    if (!is_wanted(plan)) continue;
    c.plan = plan;
    if (why_unsupported(kernel, c)) continue;
    probes.push_back(c);
    if (++count == most_plans_probed) return;
  }
}

bool is_any(const Plan& /*plan*/) {
  return true;
}

void add_features(const Features& has, std::vector<Claim>& claims) {
  for (const ProblemField& field : problem_fields()) {
    if (!field.feature || !(has.*field.feature->flag)) continue;
    claims.push_back({std::string(field.feature->name)});
  }
}

void add_plan_choices(const KernelInfo& kernel, const Case& c, std::vector<Claim>& claims) {
  const std::vector<Plan> plans = kernel.plans(c.problem);
  for (const PlanField& field : plan_fields()) {
    std::set<std::int64_t> values;
    for (const Plan& plan : plans) values.insert(plan.*field.member);
    values.erase(0);
    for (const std::int64_t value : values) {
      Claim claim{.fact = plan_fact(field, value)};
      add_probes(
          kernel, c, [&](const Plan& plan) { return plan.*field.member == value; }, claim.probes);
      if (!claim.probes.empty()) claims.push_back(std::move(claim));
    }
  }
}

}  // namespace

std::set<std::string> facts_of(const Case& c) {
  const Problem& p = c.problem;
  std::set<std::string> facts{type_fact(p.element_type), mask_fact(p.mask),
                              head_dim_fact(p.head_dim)};
  for (const ProblemField& field : problem_fields()) {
    if (uses_feature(field, p)) facts.emplace(field.feature->name);
  }
  for (const LargeSize& size : large_sizes()) {
    if (size.holds(p)) facts.insert(std::string(size.fact));
  }
  for (const PlanField& field : plan_fields()) {
    const std::int64_t value = c.plan.*field.member;
    if (value != 0) facts.insert(plan_fact(field, value));
  }
  return facts;
}

std::vector<Claim> claims_of(const KernelInfo& kernel, const Case& example) {
  std::vector<Claim> claims;
  for (const ElementType type : kernel.element_types) claims.push_back({type_fact(type)});
  for (const Mask mask : kernel.masks) claims.push_back({mask_fact(mask)});
  if (kernel.head_dims.size() <= most_listed_head_dims) {
    for (const std::int64_t dim : kernel.head_dims) claims.push_back({head_dim_fact(dim)});
  }
  add_features(kernel.features, claims);
  const Case base = plain(kernel, example);
  for (const LargeSize& size : large_sizes()) {
    if (size.needs_keys && kernel.operation != &forward_operation) continue;
    Claim claim{.fact = std::string(size.fact)};
    for (const auto& make : size.makes) {
      Case c = base;
      make(c.problem);
      add_probes(kernel, c, is_any, claim.probes);
    }
    if (!claim.probes.empty()) claims.push_back(std::move(claim));
  }
  add_plan_choices(kernel, base, claims);
  return claims;
}

std::vector<std::string> claims_not_shown(const KernelInfo& kernel, const Case& example,
                                          const std::set<std::string>& shown,
                                          const std::function<bool(const Case&)>& takes) {
  std::vector<std::string> facts;
  for (const Claim& claim : claims_of(kernel, example)) {
    if (shown.contains(claim.fact)) continue;
    if (claim.probes.empty() || std::ranges::any_of(claim.probes, takes)) {
      facts.push_back(claim.fact);
    }
  }
  return facts;
}

}  // namespace attest
