#include "core/operations/select.hpp"

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include "core/operations/common_tensors.hpp"

namespace attest {
namespace {

ElementType int32_format(const Problem& /*problem*/) {
  return ElementType::int32;
}

Shape list_shape(const Problem& problem) {
  return {problem.batch, 1, problem.query_len, problem.top_k};
}
Shape count_shape(const Problem& problem) {
  return {problem.batch, 1, problem.query_len, 1};
}

/// Lists ascend, scores go with their keys. Equal numbers and NaN, which no right list has, stay
/// in some order; what lies behind the count stays where it is.
void sort_lists(const Problem& problem, Outputs& outputs) {
  std::vector<std::pair<float, float>> list;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      const auto keys = outputs[selecting::keys].row(b, 0, n);
      const auto scores = outputs[selecting::scores].row(b, 0, n);
      const float count = outputs[selecting::counts].at(b, 0, n, 0);
      const auto room = static_cast<float>(problem.top_k);
      const auto used = static_cast<std::size_t>(count > 0 ? std::min(count, room) : 0.0F);
      list.clear();
      for (std::size_t i = 0; i < used; ++i) list.emplace_back(keys[i], scores[i]);
      std::ranges::stable_sort(list, {}, &std::pair<float, float>::first);
      for (std::size_t i = 0; i < used; ++i) std::tie(keys[i], scores[i]) = list[i];
    }
  }
}

/// A product a head and visible pair.
double flops(const Problem& problem) {
  return forward_flops(problem) * static_cast<double>(problem.head_dim) /
         static_cast<double>(problem.head_dim + problem.output_dim());
}

constexpr std::array<TensorSpec, 6> tensors{
    {q_tensor, k_tensor, given_numbers("weights", "weights", lse_shape),
     whole_output("keys", "keys", list_shape, int32_format),
     whole_output("counts", "counts", count_shape, int32_format),
     whole_output("scores", "scores", list_shape, fp32_format)}};

}  // namespace

constinit const Operation select_operation{
    .name = "select",
    .summary = "the keys of the largest scores of each query: an indexer and its top-k",
    .tensors = tensors,
    .canonical = sort_lists,
    .flops = flops,
    .bytes = tensor_bytes};

namespace {
const OperationRegistration registration{select_operation};
}  // namespace

}  // namespace attest
