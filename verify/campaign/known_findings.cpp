#include "verify/campaign/known_findings.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/base/glob.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/backward.hpp"

namespace attest {
namespace {

/// NaN in a gradient of one query, all of whose weights are those of an LSE so low that exp(0 -
/// LSE) overflows in fp32: a row past the end, whose score is 0, then weighs infinitely, and a dO
/// of 0 times that is NaN. Any other NaN, of an ordinary LSE say, is another defect. Of a batch the
/// law batch_mates_irrelevant takes some entry alone.
bool is_one_query_with_low_lse(const Failure& failure) {
  const Problem& problem = failure.the_case.problem;
  const Check& check = failure.check;
  if (problem.operation != &backward_operation || problem.query_len != 1) return false;
  if (!check.has_element) return false;
  if (!std::isnan(check.worst.got) || !std::isfinite(check.worst.want)) return false;
  const Inputs inputs = make_inputs(problem, failure.the_case.inputs);
  const Tensor<float>& lse = inputs[backward::lse];
  const double lowest = -std::log(std::numeric_limits<float>::max());
  const bool is_any_entry = failure.law == "batch_mates_irrelevant";
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    for (std::int64_t h = 0; h < problem.query_heads; ++h) {
      const bool is_of_element =
          (is_any_entry || entry == check.worst.index[0]) &&
          (check.tensor == "dQ" ? h : problem.kv_head_of(h)) == check.worst.index[1];
      const double of_row = lse.at(entry, h, 0, 0);
      if (is_of_element && std::isfinite(of_row) && of_row < lowest) return true;
    }
  }
  return false;
}

}  // namespace

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
       .versions = {"cuDNN 9.14", "cuDNN 9.19"},
       .laws = "within_bound,dk_within_bound,dv_within_bound,batch_mates_irrelevant",
       .stored_case = "gradient_of_one_query_with_low_lse",
       .is_about = is_one_query_with_low_lse},
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
