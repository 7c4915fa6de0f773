#include "core/run/kernel.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/attention/problem_field.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

std::optional<std::string> why_feature_is_missing(const KernelInfo& kernel,
                                                  const Problem& problem) {
  for (const ProblemField& field : problem_fields()) {
    if (!uses_feature(field, problem) || kernel.features.*field.feature->flag) continue;
    return fmt::format("{} {}", kernel.name, field.feature->refusal);
  }
  return std::nullopt;
}

/// The first length, of the problem, an entry or a list, that is no multiple.
std::optional<std::string> why_lengths_do_not_fit(const KernelInfo& kernel,
                                                  const Problem& problem) {
  const auto sentence = [&](std::string_view what, std::int64_t multiple, std::int64_t got) {
    return fmt::format("{} takes multiples of {} {}, and not {}", kernel.name, multiple, what, got);
  };
  const std::int64_t entries = problem.length_seed != 0 ? problem.batch : 1;
  for (std::int64_t b = 0; b < entries; ++b) {
    const std::int64_t queries = problem.query_len_of(b), keys = problem.key_len_of(b);
    if (queries % kernel.query_len_multiple != 0) {
      return sentence("queries", kernel.query_len_multiple, queries);
    }
    if (keys % kernel.key_len_multiple != 0) {
      return sentence("keys", kernel.key_len_multiple, keys);
    }
  }
  if (problem.list_seed == 0) return std::nullopt;
  if (problem.list_rows % kernel.list_rows_multiple != 0) {
    return sentence("queries that share a list", kernel.list_rows_multiple, problem.list_rows);
  }
  if (problem.list_keys % kernel.list_keys_multiple != 0) {
    return sentence("keys of a list's item", kernel.list_keys_multiple, problem.list_keys);
  }
  return std::nullopt;
}

/// A tensor's codes or scales that the kernel does not take.
std::optional<std::string> why_codes_do_not_fit(const KernelInfo& kernel, const Codes& codes) {
  std::optional<std::string> reason;
  const auto require = [&](const auto& taken, auto asked, std::string_view what) {
    if (reason || std::ranges::find(taken, asked) != taken.end()) return;
    std::vector<std::string_view> names;
    for (const auto one : taken) names.push_back(name_of(one));
    reason = fmt::format("{} takes no {} {}; allowed: {}", kernel.name, what, name_of(asked),
                         fmt::join(names, ", "));
  };
  const bool is_of_k_alone = kernel.operation == &quantise_operation;
  if (!is_of_k_alone) require(kernel.codes.q, codes.q, "codes of Q");
  require(kernel.codes.k, codes.k, "codes of K");
  if (!is_of_k_alone) require(kernel.codes.v, codes.v, "codes of V");
  if (!is_of_k_alone) require(kernel.codes.q_scales, codes.q_scales, "scales of Q by");
  require(kernel.codes.k_scales, codes.k_scales, "scales of K by");
  if (!is_of_k_alone) require(kernel.codes.v_scales, codes.v_scales, "scales of V by");
  return reason;
}

thread_local std::string last_note;

}  // namespace

double time_launches(const KernelInfo& kernel, const Arguments& arguments, Device& device,
                     LaunchesInRow launches) {
  if (kernel.timed_launch) return kernel.timed_launch(arguments, device, launches);
  const auto work = [&] {
    for (int i = 0; i < launches.count; ++i) kernel.launch(arguments, device);
  };
  return (launches.in_graph ? device.replay_ms(work) : device.time_ms(work)) / launches.count;
}

bool KernelInfo::gives(OutputIndex output) const {
  return std::ranges::find(missing_outputs, (*operation)[output].name) == missing_outputs.end();
}

std::optional<std::string> why_unsupported(const KernelInfo& kernel, const Problem& problem,
                                           const Plan& plan) {
  if (kernel.operation != problem.operation) {
    return fmt::format("{} computes {}, and not {}", kernel.name, kernel.operation->name,
                       problem.operation->name);
  }
  if (std::ranges::find(kernel.element_types, problem.element_type) == kernel.element_types.end()) {
    return fmt::format("{} has no {} version", kernel.name, format_of(problem.element_type).name);
  }
  if (std::ranges::find(kernel.masks, problem.mask) == kernel.masks.end()) {
    return fmt::format("{} has no mask {}", kernel.name, name_of(problem.mask));
  }
  if (!kernel.head_dims.empty() &&
      std::ranges::find(kernel.head_dims, problem.head_dim) == kernel.head_dims.end()) {
    return fmt::format("{} has no head_dim {}; allowed: {}", kernel.name, problem.head_dim,
                       fmt::join(kernel.head_dims, ", "));
  }
  if (auto reason = why_feature_is_missing(kernel, problem)) return reason;
  if (auto reason = why_lengths_do_not_fit(kernel, problem)) return reason;
  const bool has_codes =
      problem.operation == &quantised_operation || problem.operation == &quantise_operation;
  if (has_codes) {
    if (auto reason = why_codes_do_not_fit(kernel, problem.codes)) return reason;
  }
  return kernel.unsupported ? kernel.unsupported(problem, plan) : std::nullopt;
}

Problem with_needs_of(const KernelInfo& kernel, Problem problem) {
  const auto up = [](std::int64_t length, std::int64_t multiple) {
    return (length + multiple - 1) / multiple * multiple;
  };
  problem.query_len = up(problem.query_len, kernel.query_len_multiple);
  problem.key_len = up(problem.key_len, kernel.key_len_multiple);
  if (problem.list_seed != 0) {
    problem.list_rows = up(problem.list_rows, kernel.list_rows_multiple);
    problem.list_keys = up(problem.list_keys, kernel.list_keys_multiple);
  }
  if (kernel.values_in_keys_dim > 0) {
    problem.values = Values::in_keys;
    problem.value_dim = kernel.values_in_keys_dim;
  } else if (problem.values == Values::in_keys && problem.output_dim() > problem.head_dim) {
    problem.value_dim = 0;
  }
  return problem;
}

std::optional<std::string> why_unsupported(const KernelInfo& kernel, const Case& c) {
  if (auto reason = why_unsupported(kernel, c.problem, c.plan)) return reason;
  auto reason = why_layouts_do_not_fit(kernel.layout_needs, c.problem, c.layouts);
  if (!reason && c.layouts.paging.is_used() && kernel.unsupported_in_pages) {
    reason = kernel.unsupported_in_pages(c.problem, c.plan);
  }
  if (!reason) return std::nullopt;
  return fmt::format("{}: {}", kernel.name, *reason);
}

void note_library(std::string_view note) {
  last_note = note;
}

std::string take_library_note() {
  return std::exchange(last_note, {});
}

}  // namespace attest
