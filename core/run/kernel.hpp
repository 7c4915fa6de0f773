#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/attention/element_type.hpp"
#include "core/attention/layout.hpp"
#include "core/attention/layout_needs.hpp"
#include "core/attention/mask.hpp"
#include "core/attention/plan.hpp"
#include "core/attention/precision_plan.hpp"
#include "core/attention/problem.hpp"
#include "core/attention/problem_field.hpp"
#include "core/attention/roundings.hpp"
#include "core/records/case.hpp"
#include "core/run/arguments.hpp"
#include "core/run/device.hpp"

namespace attest {
enum class KernelRole {
  kernel,            ///< must pass
  negative_control,  ///< wrong by design: verify must fail it
  mutant,  ///< a planted bug: the law named in `killed_by` must catch it; listed and run only on
           ///< request
  limit    ///< gives no answer: timed beside kernels as what the machine allows, and never judged
};

/// Tensors that travel through device memory, and how often (gpu/model/cost_model.hpp has the
/// laws).
enum class Dataflow {
  unknown,         ///< nothing can be said: a library
  standard,        ///< S and P are written and read back
  keys_outside,    ///< FA1: O and its statistics are read and written once a key tile
  queries_outside  ///< FA2: K and V are read once a query tile, O is written once
};

/// GPUs that have the instructions which a kernel takes; 80 stands for compute capability 8.0.
struct ComputeCapabilities {
  int least = 0;
  int most = std::numeric_limits<int>::max();
};
/// Compute capability of code built for sm_90a, which runs on nothing newer either.
inline constexpr ComputeCapabilities hopper_alone{.least = 90, .most = 90};

/// Launches in a row that are timed together.
struct LaunchesInRow {
  int count = 1;
  bool in_graph = false;  ///< recorded as one graph and replayed (Device::replay_ms)
};

/// A kernel under test: what it claims and how to run it. Registered by its own file
/// (KernelRegistration).
struct KernelInfo {
  /// Operation that the kernel computes.
  const Operation* operation = &forward_operation;
  std::string name;
  std::string summary;  ///< one line
  std::string source;   ///< paper key or claim id
  Executor executor = Executor::cpu;
  KernelRole role = KernelRole::kernel;
  std::string killed_by{};   ///< mutants and negative controls: the law that must catch it
  std::string planted_in{};  ///< mutants: the kernel that is right
  std::string plugin{};  ///< absolute path of the shared object that it came from; empty: our own
  Dataflow dataflow = Dataflow::unknown;  ///< a Plan with a loop_order says it instead
  std::vector<ElementType> element_types{};
  std::vector<Mask> masks{};
  std::vector<std::int64_t> head_dims{};  ///< empty: any; `unsupported` may still refuse some
  Features features{};
  CodesTaken codes{};  ///< of kernels of quantised_operation
  /// Claims about bits follow: which launches of one exact answer agree in all of them. What is not
  /// claimed is judged within the sum of the bounds (verify/judge/agreement.hpp).
  bool is_deterministic = true;  ///< two launches give the same bits
  /// Plans that are not deterministic: blocks add to a sum in the order in which they come. May be
  /// empty: none.
  std::function<bool(const Plan&)> plan_depends_on_order{};
  /// A request has its bits whatever batch it is in and wherever it stands there. False: splits by
  /// the size of the batch, say, or tiles cut where a block's share of the work ends.
  bool is_batch_invariant = true;
  /// Plans that are not batch-invariant: chunks are cut by what else is in the batch, and by how
  /// many blocks the device runs at once. May be empty: none.
  std::function<bool(const Plan&)> plan_depends_on_batch{};
  /// A query has its bits however many others are asked at once.
  bool is_query_invariant = false;
  /// Plans that are not query-invariant: chunks are cut by how many keys or rows there are. May be
  /// empty: none.
  std::function<bool(const Plan&)> plan_depends_on_queries{};
  /// Lengths of entries, or of K and V in pages, are learned from the arrays on the device alone:
  /// Problem gives upper bounds, and the kernel's work on the host depends on nothing else. A graph
  /// of its launches can be replayed after the arrays have changed.
  bool reads_lengths = false;
  /// Addresses and strides change bits: another path for vectors, which sums in another order.
  bool depends_on_alignment = false;
  /// Rows of a tile raise their references (PrecisionPlan::reference_lag) at the same time, so that
  /// a row's bits depend on its neighbours' scores.
  bool shares_reference = false;
  /// A NaN or infinity in a key or value that a row does not see stays out of that row. Libraries
  /// that multiply a hidden value by a weight of 0 cannot claim it.
  bool ignores_hidden_nan = true;
  /// A part of a row's keys whose weights are all 0 in fp32 is left out of the merge of the parts,
  /// values of infinity included, instead of multiplied by 0.
  bool drops_vanished_parts = false;
  /// Names of outputs that it does not write: it gets no memory for them, and nothing is asked of
  /// them.
  std::vector<std::string> missing_outputs{};
  bool nan_rows_may_have_empty_lse = false;  ///< LSE -infinity for a row whose scores hold a NaN
  LayoutNeeds layout_needs{};                ///< generators draw only layouts that fit
  /// Lengths, those of single entries too, are multiples of these; generators round them up.
  std::int64_t query_len_multiple = 1;
  std::int64_t key_len_multiple = 1;
  /// Queries that share a list of keys, and keys of an item, are multiples of these.
  std::int64_t list_rows_multiple = 1, list_keys_multiple = 1;
  /// V must be so many first columns of K (Values::in_keys); generators see to it. 0: it takes V of
  /// its own.
  std::int64_t values_in_keys_dim = 0;
  /// A sentence why the kernel cannot run on this machine whatever the problem, a library that is
  /// missing, say, or an empty string. May be empty: its executor is all it needs.
  std::function<std::string()> unavailable{};

  ComputeCapabilities compute_capabilities{};

  /// Roundings of a run, of the type that its operation names.
  std::function<Roundings(const Problem&, const Plan&)> precision;
  /// The Plans it can run for the problem: generators draw from these. Never empty for a supported
  /// problem.
  std::function<std::vector<Plan>(const Problem&)> plans;
  /// The first of them is computed from the problem's own lengths and head counts, which a table of
  /// tuned Plans knows by buckets alone: it is what runs where no Plan is given, whatever the table
  /// says.
  bool has_plan_rule = false;
  /// A sentence when it cannot run; asked after element type and mask were checked. May be empty:
  /// runs everything.
  std::function<std::optional<std::string>(const Problem&, const Plan&)> unsupported{};
  /// A sentence when a Plan takes no K and V in pages; asked besides `unsupported`. May be empty:
  /// all Plans do, if layout_needs say that pages may be.
  std::function<std::optional<std::string>(const Problem&, const Plan&)> unsupported_in_pages{};
  /// Query that tile 0 begins with, in (-query_tile, 0]. Below 0 the first tile is the short one:
  /// its rows before query 0 do not exist. May be empty: 0, and the last tile is the short one.
  std::function<std::int64_t(const Problem&, const Plan&)> first_row{};
  /// Bytes of workspace (Arguments::workspace). May be empty: none needed.
  std::function<std::size_t(const Problem&, const Plan&)> workspace_bytes{};
  /// Bytes of counters (Arguments::counters). May be empty: none needed.
  std::function<std::size_t(const Problem&, const Plan&)> counter_bytes{};
  /// Runs the kernel on the device. Throws KernelError when the kernel itself says that it failed,
  /// MachineError when a launch does.
  std::function<void(const Arguments&, Device&)> launch{};
  /// Milliseconds of one launch: the mean over some in a row. For kernels that run in another
  /// process, whose work the device's own events do not see. The outputs hold the last launch's
  /// answers. Empty: the caller times `launch`.
  std::function<double(const Arguments&, Device&, LaunchesInRow)> timed_launch{};

  /// True if the kernel writes this output of its operation.
  [[nodiscard]] bool gives(OutputIndex output) const;
};

/// Milliseconds of one launch on `device`, the mean over some in a row.
[[nodiscard]] double time_launches(const KernelInfo& kernel, const Arguments& arguments,
                                   Device& device, LaunchesInRow launches);

/// A sentence why the kernel cannot run the problem with the Plan, by element type, mask and
/// features, then by its own check. Nothing: it can.
[[nodiscard]] std::optional<std::string> why_unsupported(const KernelInfo& kernel,
                                                         const Problem& problem, const Plan& plan);
/// A sentence why the kernel cannot run the case: as above, and the case's layouts against the
/// kernel's needs. Nothing: it can.
[[nodiscard]] std::optional<std::string> why_unsupported(const KernelInfo& kernel, const Case& c);

/// The problem with its lengths rounded up to multiples that the kernel takes, and V where it takes
/// it. Lengths of single entries follow from those and from their seed, and may still be others.
[[nodiscard]] Problem with_needs_of(const KernelInfo& kernel, Problem problem);

/// A kernel that calls a library of others says at each launch who computed, for the records of
/// what is timed: `cuDNN 9.19.0`, `PyTorch 2.11.0 ran flash_fwd_kernel`. Kept for the calling
/// thread.
void note_library(std::string_view note);

/// The thread's last note; empty: none since it was taken.
[[nodiscard]] std::string take_library_note();

}  // namespace attest
