#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/run/kernel.hpp"
#include "core/run/tuning_table.hpp"

namespace attest {

/// The Plan that is taken where none is given, and where it is from.
struct DefaultPlan {
  enum class Origin {
    tuned,   ///< won a race in the problem's own buckets, on this card or on one near it
    nearby,  ///< won one at other lengths or another number of heads
    rule,    ///< the kernel computes it (KernelInfo::has_plan_rule)
    first    ///< no race says anything: the first that the kernel offers
  };
  Plan plan;
  Origin origin = Origin::first;
  std::optional<TunedPlan> row{};  ///< that it is from
  int octaves = 0;                 ///< between the row's key and the problem's
  std::string gpu{};               ///< name of the one that it is for
  double card_octaves = 0;         ///< between that and the row's (octaves_between)
  /// SMs for which the Plan was made, where its splits were scaled to those of `gpu`; else 0.
  int scaled_from = 0;
  int scaled_to = 0;
  /// Rows for the problem that were passed over, because the kernel does not offer their Plan for
  /// it.
  int stale_rows = 0;
};

/// True if the kernel offers the Plan for the problem, or the Plan is a mixture of offered ones. A
/// mixture takes every field from one of them, and the kernel's `unsupported` has nothing against
/// it.
[[nodiscard]] bool is_offered(const KernelInfo& kernel, const Problem& problem,
                              const std::vector<Plan>& offered, const Plan& plan);

/// The Plan where none was given, for a GPU by its description or its name (card_in). A kernel that
/// has a rule follows it. For others it comes from the table of tuned Plans: among the rows of this
/// kernel, element type, head dim, mask and group, on cards of the same architecture, whose Plan
/// the kernel offers for the problem, the nearest; of several the first in the table's order.
/// Otherwise it is the kernel's first Plan; nothing when it offers none.
///
/// Octaves of lengths and heads and octaves between the cards are one distance. No order of the two
/// would do: the rule of an H200 loses 1.3 % at most on an H100, half an octave away, and a row of
/// the H200 3.4 % three octaves of lengths away, so that a tuned row of the next card says more
/// than one of this card for quite other lengths; a card that is far says less than the next
/// lengths do.
///
/// A Plan that cuts keys into parts because tiles are few was made for a number of SMs. On a card
/// with another it gets as many parts an SM as it had, if the kernel takes that.
[[nodiscard]] std::optional<DefaultPlan> default_plan(
    const KernelInfo& kernel, const Problem& problem, std::string_view gpu,
    const TuningTable& table = embedded_tuning_table());

/// Half a line: `tuned on NVIDIA H200 for b4 h16/16 q4096 k4096 d128 none bf16`; on another card
/// `tuned on NVIDIA H200, the nearest card to NVIDIA H100 NVL, for ...`.
[[nodiscard]] std::string to_string(const DefaultPlan& choice);

/// Half a line for a GPU by its description or name: where its default Plans are from, `tuned on
/// this card` or `of NVIDIA H200, the nearest card that was tuned, 0.3 octaves away`.
[[nodiscard]] std::string where_plans_are_from(std::string_view gpu,
                                               const TuningTable& table = embedded_tuning_table());

}  // namespace attest
