#pragma once

#include <cstdint>
#include <optional>

#include "core/records/case.hpp"
#include "core/run/kernel.hpp"
#include "verify/cases/generators.hpp"

namespace attest {

/// Dimensions of a case that are far larger than usual, or on purpose so.
enum class Tail {
  lengths,       ///< queries, keys or both; keys of a Plan that splits them
  shape,         ///< query heads, batch or head_dim
  past_16_bits,  ///< keys, queries, entries or heads beyond 2^16, not on the SIMT executor
  few_queries,   ///< lengths too: 1 to 16 queries, and any number of keys
  square_tiles,  ///< lengths too: causal, as many queries as keys, two to four whole tiles
};

/// Cost of a case in multiply-adds: those of Q K^T, masked pairs among them, on the SIMT executor
/// over whole tiles of the Plan; and what a judge spends on each element that is drawn, guarded and
/// compared.
[[nodiscard]] std::int64_t work_of(const KernelInfo& kernel, const Problem& p, const Plan& plan);

/// The work of the largest usual cases under the same Plan, those with many key tiles: three to
/// eight times that of a mean one. So the cases from the tail leave the time of a run about what it
/// was.
[[nodiscard]] std::int64_t most_work(const KernelInfo& kernel, const Plan& plan);

/// `usual` with one or two dimensions enlarged within the limits of `options`, its mask and Plan
/// changed where that takes it, and its other sizes cut to what the work leaves of them; layouts
/// are not touched. All rows of such a case can be checked, because it costs about what a large
/// usual one does. nullopt when the kernel supports nothing that was drawn. Draws from RapidCheck,
/// so inside rc::gen::exec only.
[[nodiscard]] std::optional<Case> draw_from_tail(Tail tail, const KernelInfo& kernel,
                                                 const GeneratorOptions& options,
                                                 const Case& usual);

}  // namespace attest
