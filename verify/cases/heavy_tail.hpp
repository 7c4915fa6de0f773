#pragma once

#include <cstdint>
#include <optional>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "verify/cases/generators.hpp"

namespace attest {

/// Which dimension of a case is far larger than usual.
enum class Tail {
  lengths,       ///< queries, keys or both; keys of a Plan that splits them
  shape,         ///< query heads, batch or head_dim
  square_tiles,  ///< lengths too: causal, as many queries as keys, two to four whole tiles
};

/// Multiply-adds of Q K^T over whole tiles, masked pairs among them, under the Plan.
[[nodiscard]] std::int64_t work_of(const Problem& p, const Plan& plan);

/// The work of the largest usual cases under the same Plan, those with many key tiles: three to
/// eight times that of a mean one. So one case in ten from the tail leaves the time of a run about
/// what it was.
[[nodiscard]] std::int64_t most_work(const Plan& plan);

/// Limits of the other dimensions: large in every direction at once is slow and finds nothing that
/// large in one does not.
[[nodiscard]] SizeLimits sizes_beside(Tail tail);

/// `small` with one dimension enlarged within the limits of `options`, its mask and Plan changed
/// where that takes it; layouts are not touched. All rows of such a case can be checked, because it
/// costs about what a large usual one does. nullopt when the kernel supports nothing that was
/// drawn. Draws from RapidCheck, so inside rc::gen::exec only.
[[nodiscard]] std::optional<Case> draw_from_tail(Tail tail, const KernelInfo& kernel,
                                                 const GeneratorOptions& options,
                                                 const Case& small);

}  // namespace attest
