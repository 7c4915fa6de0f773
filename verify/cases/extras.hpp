#pragma once

#include <cstdint>

#include "core/run/kernel.hpp"

namespace attest {

/// Extras of a drawn case beyond a dense problem under a mask without a window, but for no_queries,
/// which it may have. The functions draw from RapidCheck, so inside rc::gen::exec only.
struct Extras : Features {
  bool window = false;
};

/// Half of all cases stay dense; the others have some of what the kernel offers, often several
/// at a time. Draws nothing for a kernel that offers nothing.
[[nodiscard]] Extras draw_extras(const KernelInfo& kernel);

/// Sides of a window among `key_len` keys: 0 and 1, beside an edge of a tile of `key_tile` keys,
/// around 1,024, all keys, no end, anything.
[[nodiscard]] Window draw_window(std::int64_t key_tile, std::int64_t key_len);

/// Window, value_dim, lengths and padding of a problem whose other sizes are drawn. `key_tile` is
/// that of the plan: windows begin and end around its edges.
void draw_extra_shapes(const Extras& extras, const KernelInfo& kernel, std::int64_t key_tile,
                       std::int64_t max_head_dim, Problem& problem);

/// Draws whether a case of the kernel has a dLSE; draws nothing for a kernel that takes none. Drawn
/// after all else, so that a kernel that comes to take it draws the cases that it drew before.
[[nodiscard]] LseGradient draw_lse_gradient(const KernelInfo& kernel);

/// Draws sinks, slopes, bias, prefix, documents and dropout, as far as the kernel offers them, in
/// two of three of its cases; draws nothing for a kernel that offers none. Drawn after all else, as
/// draw_lse_gradient().
void draw_score_modifications(const KernelInfo& kernel, Problem& problem);

/// Draws a gate and a residual, as far as the kernel offers them, in a third of its cases; draws
/// nothing for a kernel that offers none. Drawn after all else, as draw_lse_gradient().
void draw_epilogue(const KernelInfo& kernel, Problem& problem);

/// Draws a softcap, from far below the logits, where all scores are nearly equal, to far above
/// them, where nothing is capped; 30 and 50 are what models use. `magnitude` is about the size of
/// the logits.
[[nodiscard]] float draw_softcap(double magnitude);

}  // namespace attest
