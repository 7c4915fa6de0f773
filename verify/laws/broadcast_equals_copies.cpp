#include "core/inputs/random.hpp"
#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

namespace attest {
namespace law_broadcast_equals_copies {

/// Has the problem entries or heads of which one may stand for all?
bool has_copies(const Run& run) {
  const Problem& p = run.problem();
  const bool is_strided = p.length_seed == 0 && !run.the_case().layouts.paging.is_used();
  return is_strided && p.values == Values::own && (p.batch > 1 || p.query_heads > 1);
}

/// 0: the batch; 1: heads.
std::size_t drawn_dimension(const Run& run) {
  const Problem& p = run.problem();
  if (p.batch == 1) return 1;
  if (p.query_heads == 1) return 0;
  return static_cast<std::size_t>(random_below(run.the_case().inputs.seed, stream_broadcast, 0, 2));
}

/// All entries, or all heads, are the first one.
Tensor<float> copied_along(std::size_t dim, const Tensor<float>& tensor) {
  Tensor<float> copies = tensor;
  const Shape& shape = tensor.shape();
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        std::ranges::copy(tensor.row(dim == 0 ? 0 : b, dim == 1 ? 0 : h, n),
                          copies.row(b, h, n).begin());
      }
    }
  }
  return copies;
}

Check check_broadcast(Run& run) {
  const std::size_t dim = drawn_dimension(run);
  const Inputs inputs =
      mapped(run.inputs(), [&](const Tensor<float>& tensor) { return copied_along(dim, tensor); });
  const Outputs copies = run.launch(run.the_case(), inputs).outputs;
  const Outputs once = run.launch(run.the_case(), inputs, {.broadcast = dim}).outputs;
  const auto answer = [&] { return run.answer_to(run.problem(), run.the_case().plan, inputs); };
  return check_agree(run.kernel(), once, copies, agreement_of(run, {.addresses = true}, answer),
                     "inputs with a stride of 0 gave another answer than copies");
}

const LawRegistration registration{
    {.name = "broadcast_equals_copies",
     .statement = "inputs whose entries or heads are one in memory, with a stride of 0, give the "
                  "bits of copies",
     .cost = Law::Cost::more_launches,
     .applies =
         [](Run& run) { return has_copies(run) && run.kernel().layout_needs.takes_broadcast; },
     .check = check_broadcast,
     .declines = [](Run& run) -> std::optional<std::string> {
       if (!has_copies(run) || run.kernel().layout_needs.takes_broadcast) return std::nullopt;
       return "it takes no strides of 0";
     }}};

}  // namespace law_broadcast_equals_copies
}  // namespace attest
