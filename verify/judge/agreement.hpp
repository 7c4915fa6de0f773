#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string_view>
#include <vector>

#include "verify/judge/law.hpp"

// What laws share that compare one launch with another of the same exact answer.
namespace attest {

/// Differences between two launches of one exact answer. Of each a kernel says whether it may
/// change bits.
struct Differences {
  bool batch = false;       ///< what else is in the batch, or the place there
  bool addresses = false;   ///< addresses or strides
  bool neighbours = false;  ///< scores of other rows
  bool queries = false;     ///< how many queries are asked
  bool device = false;      ///< the GPU, or the executor in its place
  bool sharing = false;     ///< which keys lie in pages that entries share
};
/// A cascade whose launch for shared keys multiplies otherwise than that for an entry's own, in
/// larger products that overlap: a key has other bits where its page is shared.
[[nodiscard]] bool treats_shared_keys_apart(const Plan& plan);
/// True if the kernel claims that two launches with these differences, both of this Plan, give the
/// same bits.
[[nodiscard]] bool claims_same_bits(const KernelInfo& kernel, const Plan& plan,
                                    const Differences& differences);
/// True if the run's kernel claims the same bits for the case's Plan.
[[nodiscard]] bool claims_same_bits(const Run& run, const Differences& differences);

/// Limit of the distance between two launches of one exact answer.
struct Agreement {
  /// Largest distance of each element, by output. Empty: no bit may differ; a NaN agrees with any
  /// NaN.
  IndexedList<Tensor<double>, OutputIndex> within{};
};
/// Agreement within the sum of the two bounds.
[[nodiscard]] Agreement within_bounds(const Answer& of_got, const Answer& of_want);
/// Agreement in bits where the kernel claims them; otherwise within the sum of two bounds of
/// `answer()`, which is only then asked for.
[[nodiscard]] Agreement agreement_of(const Run& run, const Differences& differences,
                                     const std::function<Answer()>& answer);
/// Agreement of two launches that both owe the answer of the case.
[[nodiscard]] Agreement agreement_of(Run& run, const Differences& differences);

/// Selects the elements that are compared.
using IsCompared = std::function<bool(OutputIndex, std::int64_t b, std::int64_t h, std::int64_t n,
                                      std::int64_t d)>;
/// The two agree in every output that the kernel gives. Elements without a finite bound are
/// vacuous, unless their bits are the same. `is_compared` may be empty: all are.
[[nodiscard]] Check check_agree(const KernelInfo& kernel, const Outputs& got, const Outputs& want,
                                const Agreement& agreement, std::string_view failure,
                                const IsCompared& is_compared = {});

/// One output against the exact answer; passed where the kernel does not give it.
[[nodiscard]] Check check_output(const KernelInfo& kernel, OutputIndex output, const Outputs& got,
                                 const Answer& answer, std::string_view failure);

/// All outputs, until one fails; passed otherwise, even where elements have no finite bound.
[[nodiscard]] Check check_answer(const KernelInfo& kernel, const Outputs& got, const Answer& answer,
                                 std::string_view failure);

/// Emulations on the CPU and kernels of users may scale a whole head by its largest element
/// (Parts::scaled_to), hidden ones included, so that such a number costs the others digits.
/// Whatever of ours runs on a GPU scales rows apart.
[[nodiscard]] bool may_scale_heads(const KernelInfo& kernel, const Parts& parts);

}  // namespace attest
