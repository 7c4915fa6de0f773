// The functions of a KernelInfo that ask a plugin.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "plugin/arguments.hpp"
#include "plugin/claim.hpp"
#include "plugin/loader.hpp"

namespace attest {
namespace {

constexpr std::size_t longest_sentence = 400;
constexpr std::uint64_t most_scratch = std::uint64_t{1} << 40;

std::atomic<bool> workers_ask = false;

/// Index of the plan in the descriptor; nullopt for a plan that the plugin does not list, from an
/// edited counterexample for example.
std::optional<std::size_t> index_of(const PluginClaim& claim, const Plan& plan) {
  const auto found = std::ranges::find(claim.plans, plan);
  if (found == claim.plans.end()) return std::nullopt;
  return static_cast<std::size_t>(found - claim.plans.begin());
}

std::size_t required_index(const PluginClaim& claim, const Plan& plan) {
  const auto index = index_of(claim, plan);
  if (!index) throw KernelError(fmt::format("{} has no plan {}", claim.name, to_string(plan)));
  return *index;
}

/// A plugin's sentence on one line.
std::string sentence(const std::string& text) {
  return printable(text, longest_sentence);
}

std::optional<std::string> unsupported(const PluginClaim& claim, const Problem& p,
                                       const Plan& plan) {
  const AttestKernel& kernel = claim.kernel;
  const auto index = index_of(claim, plan);
  if (!index) return fmt::format("{} has no plan {}", claim.name, to_string(plan));
  if (!claim.head_dims.empty() &&
      std::ranges::find(claim.head_dims, p.head_dim) == claim.head_dims.end()) {
    return fmt::format("{} has no version for head_dim {}", claim.name, p.head_dim);
  }
  if (kernel.query_len_max > 0 && p.query_len > kernel.query_len_max) {
    return fmt::format("{} takes at most {} queries", claim.name, kernel.query_len_max);
  }
  if (kernel.key_len_max > 0 && p.key_len > kernel.key_len_max) {
    return fmt::format("{} takes at most {} keys", claim.name, kernel.key_len_max);
  }
  if (kernel.only_equal_heads != 0 && p.query_heads != p.kv_heads) {
    return fmt::format("{} takes no grouped heads", claim.name);
  }
  if (!claim.partial_types.empty() &&
      std::ranges::find(claim.partial_types, p.partial_type) == claim.partial_types.end()) {
    return fmt::format("{} takes no O_p in {}", claim.name, format_of(p.partial_type).name);
  }
  if (kernel.unsupported == nullptr || workers_ask) return std::nullopt;
  const AttestProblem problem = to_c(p, claim.kernel.user_data);
  const std::optional<std::string> reason = claim.functions->unsupported(problem, *index);
  if (!reason) return std::nullopt;
  return fmt::format("{}: {}", claim.name, sentence(*reason));
}

std::size_t scratch_bytes(const PluginClaim& claim, const Problem& p, const Plan& plan) {
  if (claim.kernel.scratch_bytes == nullptr) return 0;
  const AttestProblem problem = to_c(p, claim.kernel.user_data);
  const std::uint64_t bytes = claim.functions->scratch_bytes(problem, required_index(claim, plan));
  if (bytes > most_scratch) {
    throw KernelError(
        fmt::format("{}: scratch_bytes() is {}; allowed: at most 2^40", claim.name, bytes));
  }
  return static_cast<std::size_t>(bytes);
}

Roundings precision(const PluginClaim& claim, const Problem& p, const Plan& plan) {
  AttestPrecision declared = claim.precision;
  if (claim.kernel.refine_precision != nullptr) {
    const AttestProblem problem = to_c(p, claim.kernel.user_data);
    claim.functions->refine_precision(problem, required_index(claim, plan), declared);
  }
  try {
    return roundings_of(declared, p, plan, claim.name);
  } catch (const InvalidInput& error) {  // of refine_precision: the descriptor was checked
    throw KernelError(error.what());
  }
}

std::int64_t first_row(const PluginClaim& claim, const Problem& p, const Plan& plan) {
  const AttestProblem problem = to_c(p, claim.kernel.user_data);
  const std::int64_t row = claim.functions->first_row(problem, required_index(claim, plan));
  const std::int64_t tile = std::max<std::int64_t>(plan.query_tile, 1);
  if (row > 0 || row <= -tile) {
    throw KernelError(
        fmt::format("{}: first_row() is {}; allowed: {} to 0", claim.name, row, 1 - tile));
  }
  return row;
}

void launch(const PluginClaim& claim, const Arguments& a, Device& device) {
  const std::size_t index = required_index(claim, a.plan);
  AttestProblem problem = to_c(a.problem, claim.kernel.user_data);
  problem.page_size = a.page_table.page_size;
  const PluginTensors tensors(a);
  const std::size_t scratch = scratch_bytes(claim, a.problem, a.plan);
  const AttestRun run{.size = sizeof(AttestRun),
                      .plan_index = static_cast<std::uint32_t>(index),
                      .problem = &problem,
                      .plan = &claim.kernel.plans[index],
                      .tensors = tensors.data(),
                      .tensor_count = tensors.size(),
                      .scratch = scratch > 0 ? a.workspace : nullptr,
                      .scratch_bytes = scratch,
                      .stream = device.native_stream()};
  if (const std::optional<std::string> error = claim.functions->run(run, device)) {
    throw KernelError(
        fmt::format("{} returned an error for a problem that it claims to support: {}", claim.name,
                    sentence(*error)));
  }
}

}  // namespace

void leave_questions_to_workers() {
  workers_ask = true;
}

void add_callbacks(KernelInfo& info, PluginClaim given) {
  const auto claim = std::make_shared<const PluginClaim>(std::move(given));
  info.plans = [claim](const Problem&) { return claim->plans; };
  info.precision = [claim](const Problem& p, const Plan& plan) {
    return precision(*claim, p, plan);
  };
  info.unsupported = [claim](const Problem& p, const Plan& plan) {
    return unsupported(*claim, p, plan);
  };
  info.workspace_bytes = [claim](const Problem& p, const Plan& plan) {
    return scratch_bytes(*claim, p, plan);
  };
  if (claim->kernel.first_row != nullptr) {
    info.first_row = [claim](const Problem& p, const Plan& plan) {
      return first_row(*claim, p, plan);
    };
  }
  info.launch = [claim](const Arguments& a, Device& device) { launch(*claim, a, device); };
}

}  // namespace attest
