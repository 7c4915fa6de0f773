#include "verify/campaign/known_findings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/glob.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

bool is_nan_for_a_number(const Check& check) {
  return check.has_element && std::isnan(check.worst.got) && std::isfinite(check.worst.want);
}

/// Does exp(0 - LSE) overflow in fp32?
bool is_low(double lse) {
  return std::isfinite(lse) && lse < -std::log(std::numeric_limits<float>::max());
}

/// NaN in a gradient of one query, all of whose weights are those of an LSE so low that exp(0 -
/// LSE) overflows in fp32: a row past the end, whose score is 0, then weighs infinitely, and a dO
/// of 0 times that is NaN. Any other NaN, of an ordinary LSE say, is another defect. Of a batch the
/// law batch_mates_irrelevant takes some entry alone.
bool is_one_query_with_low_lse(const Failure& failure) {
  const Problem& problem = failure.the_case.problem;
  const Check& check = failure.check;
  if (problem.operation != &backward_operation || problem.query_len != 1) return false;
  if (!is_nan_for_a_number(check)) return false;
  const Inputs inputs = make_inputs(problem, failure.the_case.inputs);
  const Tensor<float>& lse = inputs[backward::lse];
  const bool is_any_entry = failure.law == "batch_mates_irrelevant";
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const bool is_of_element =
          (is_any_entry || entry == check.worst.index[0]) &&
          (check.tensor == "dQ" ? h : problem.kv_head_of(h)) == check.worst.index[1];
      if (is_of_element && is_low(lse.at(entry, h, 0, 0))) return true;
    }
  }
  return false;
}

/// NaN in dQ where the last tile of 128 keys is half full and a row's LSE is that low: the keys
/// past the end weigh infinitely, and 0 of K times that is NaN.
bool is_half_key_tile_with_low_lse(const Failure& failure) {
  const Problem& problem = failure.the_case.problem;
  const Check& check = failure.check;
  if (problem.operation != &backward_operation || problem.key_len % 128 != 64) return false;
  if (!is_nan_for_a_number(check) || check.tensor != "dQ") return false;
  const Shape& at = check.worst.index;
  const Inputs inputs = make_inputs(problem, failure.the_case.inputs);
  return is_low(inputs[backward::lse].at(at[0], at[1], at[2], 0));
}

/// NaN in O of several queries over pages of 4 slots and more, where the last page of an entry has
/// slots that no key uses and these hold NaN or infinity: a weight of 0 times that is NaN.
bool is_unused_slot_of_a_page(const Failure& failure) {
  constexpr std::int64_t least_page_size = 4;
  const Problem& problem = failure.the_case.problem;
  const Paging& paging = failure.the_case.layouts.paging;
  const Check& check = failure.check;
  if (problem.operation != &forward_operation || problem.query_len < 2) return false;
  if (paging.page_size < least_page_size || paging.unused == Unused::large) return false;
  if (!is_nan_for_a_number(check) || check.tensor != "O") return false;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    if (problem.key_len_of(entry) % paging.page_size != 0) return true;
  }
  return false;
}

}  // namespace

std::string_view KnownFinding::described_at() const {
  return report.empty() ? "FINDINGS.md (no public report known)" : std::string_view(report);
}

bool KnownFinding::is_known_of(std::string_view library) const {
  return std::ranges::any_of(versions, [&](const std::string& version) {
    const std::size_t at = library.find(version);
    if (at == std::string_view::npos) return false;
    const std::size_t end = at + version.size();
    const bool ends_there = end == library.size() || library[end] < '0' || library[end] > '9';
    return ends_there && (at == 0 || library[at - 1] == ' ');
  });
}

bool KnownFinding::explains(const KernelInfo& kernel, const Failure& failure) const {
  return failure.kind == Verdict::failed && failure.repetition.empty() &&
         kernel.role == KernelRole::kernel && matches_glob(kernel.name, kernels) &&
         matches_glob(failure.law, laws) && is_about(failure);
}

const std::vector<KnownFinding>& all_known_findings() {
  static const std::vector<KnownFinding> all{
      {.id = "P11",
       .summary = "gradients of one query alone are NaN where LSE is low",
       .report = "https://github.com/NVIDIA/cudnn-frontend/issues/1072",
       .kernels = "cudnn_sdpa_backward,cudnn_sdpa_backward_deterministic,torch_cudnn_backward",
       .versions = {"cuDNN 9.14", "cuDNN 9.19", "cuDNN 9.28"},
       .laws = "within_bound,dk_within_bound,dv_within_bound,batch_mates_irrelevant",
       .stored_case = "gradient_of_one_query_with_low_lse",
       .is_about = is_one_query_with_low_lse},
      {.id = "P13",
       .summary = "what lies in unused slots of a page reaches O of several queries",
       .report = "",
       .kernels = "cudnn_sdpa",
       .versions = {"cuDNN 9.19", "cuDNN 9.28"},
       .laws = "*",
       .stored_case = "unused_slots_of_a_page",
       .is_about = is_unused_slot_of_a_page},
      {.id = "P14",
       .summary = "dQ is NaN where LSE is low and half of the last 128 keys exist",
       .report = "https://github.com/pytorch/pytorch/issues/196678",
       .kernels = "torch_cudnn_backward",
       .versions = {"cuDNN 9.19"},
       .laws = "within_bound",
       .stored_case = "gradient_tail_of_64_keys_with_low_lse",
       .is_about = is_half_key_tile_with_low_lse},
  };
  return all;
}

const KnownFinding* known_finding(const std::vector<KnownFinding>& findings,
                                  const KernelInfo& kernel, const Failure& failure,
                                  std::string_view library) {
  const auto found = std::ranges::find_if(findings, [&](const KnownFinding& finding) {
    return finding.is_known_of(library) && finding.explains(kernel, failure);
  });
  return found == findings.end() ? nullptr : &*found;
}

}  // namespace attest
