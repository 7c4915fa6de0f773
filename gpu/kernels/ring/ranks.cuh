#pragma once

// Ranks of a ring on their GPUs: who has which memory, what is launched and copied when, and who
// waits for whom. core/attention/ring_schedule says which rows meet which keys; what a launch
// computes and what becomes of it, forward_ranks.cuh and bwd_ring/backward_ranks.cuh.
//
// Idea
//   Queries stay. While a rank's kernel works on the keys and values of step s, copy engines fetch
//   those of step s + 1 from the rank that has them: no multiprocessor takes part. They come from
//   their owner and not from the neighbour, who has them as well by then: every GPU reaches every
//   other at full speed, in every step each is read by one, and nobody waits for anybody's buffers
//   but its own.
// Waits
//   The first copy of a ring waits for the owner's keys and values, a copy for the launch that used
//   its buffer two steps before, a launch for its copy; and a rank's queue goes on behind the ring
//   when all others have copied what they need of it.
#include <algorithm>
#include <array>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "core/attention/distribution.hpp"
#include "core/attention/ring_schedule.hpp"
#include "core/base/error.hpp"
#include "core/run/arguments.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/launch_image.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/ring/eight_columns.cuh"
#include "gpu/kernels/ring/memory.cuh"
#include "gpu/kernels/ring/rows.cuh"
#include "gpu/primitives/rank_devices.cuh"

namespace attest {

/// A launch's problem: rows of a rank and keys of a rank, as if there were no others.
inline Problem problem_of(const Problem& whole, const RingLaunch& launch) {
  Problem problem = whole;
  problem.query_len = launch.queries;
  problem.key_len = launch.keys;
  problem.mask = launch.is_causal ? Mask::causal_bottom_right : Mask::none;
  return problem;
}

/// The kernel that computes a launch.
template <Executor home>
const KernelInfo& kernel_of_ring(const char* name) {
  const KernelInfo* const kernel = find_kernel(name, home);
  if (kernel == nullptr) throw MachineError(std::string("ring: this program has no ") + name);
  return *kernel;
}

/// Form of a ring: the steps of a rank, and the Plan of a kernel that computes a launch, if it has
/// one.
struct RingForm {
  std::vector<RingStep> (*steps_of)(const Problem& problem, const Plan& plan, std::int64_t rank);
  std::optional<Plan> (*plan_of)(const Problem& launch);
};

/// Calls visit(rank, what it meets, number of that step, launch's problem, its Plan if there is
/// one) for all launches of all ranks.
template <typename Visit>
void for_each_meeting(const Problem& problem, const Plan& plan, const RingForm& form,
                      const Visit& visit) {
  for (std::int64_t rank = 0; rank < plan.ranks; ++rank) {
    const std::vector<RingStep> steps = form.steps_of(problem, plan, rank);
    for (std::size_t step = 0; step < steps.size(); ++step) {
      for (const RingLaunch& launch : steps[step].launches) {
        const Problem part = problem_of(problem, launch);
        visit(rank, steps[step], step, part, form.plan_of(part));
      }
    }
  }
}

/// Why the kernel cannot run this Plan's launches, or the Plan is none.
inline std::optional<std::string> why_no_ring(const KernelInfo& kernel, const Problem& problem,
                                              const Plan& plan, const RingForm& form) {
  if (plan.ranks < 1 || plan.ranks > most_ring_parts) {
    return "ranks are " + std::to_string(plan.ranks) + "; allowed: 1 to " +
           std::to_string(most_ring_parts);
  }
  if (plan.distribution < Distribution::contiguous || plan.distribution > Distribution::stripe) {
    return "the plan names no distribution; allowed: contiguous, zigzag and stripe";
  }
  std::optional<std::string> reason;
  for_each_meeting(problem, plan, form,
                   [&](std::int64_t, const RingStep&, std::size_t, const Problem& part,
                       const std::optional<Plan>& chosen) {
                     if (!chosen) {
                       reason = kernel.name + " has no plan for a launch of it, " + to_string(part);
                     } else if (const auto why = why_unsupported(kernel, part, *chosen)) {
                       reason = kernel.name + " cannot run a launch of it: " + *why;
                     }
                   });
  return reason;
}

/// Why sums or merges of as many parts each cannot be launched.
inline std::optional<std::string> why_too_many_parts(const std::vector<std::int64_t>& parts) {
  const std::int64_t most = parts.empty() ? 0 : *std::ranges::max_element(parts);
  if (most <= most_ring_parts) return std::nullopt;
  return "a rank's answer has " + std::to_string(most) +
         " parts; allowed: " + std::to_string(most_ring_parts);
}

/// Two ranks first; under causal masks in zigzag, where all have as much to do.
inline std::vector<Plan> ring_plans(const Problem& problem) {
  std::vector<std::int64_t> order{Distribution::contiguous, Distribution::zigzag,
                                  Distribution::stripe};
  if (problem.mask != Mask::none) std::swap(order[0], order[1]);
  std::vector<Plan> list;
  for (const std::int64_t ranks : {2, 3, 4, 8}) {
    for (const std::int64_t distribution : order) {
      list.push_back({.ranks = ranks, .distribution = distribution});
    }
  }
  list.push_back({.ranks = 1, .distribution = Distribution::contiguous});
  return list;
}

/// Keys and values, [entries, kv_heads, rows, columns] each.
struct RingKeys {
  std::byte *k = nullptr, *v = nullptr;
  std::int64_t rows = 0;
};

/// A rank: its tokens, its memory, its launches. Of a rank of another process only the first, and
/// where its own keys are.
template <Executor home, typename Devices = RankDevices>
struct RingMember {
  using Mark = typename Devices::Mark;

  explicit RingMember(Device* device) : memory(device) {}

  std::int64_t rank = 0;
  std::vector<TokenPiece> query_pieces, key_pieces;
  std::int64_t queries = 0;
  std::vector<RingStep> steps;
  RingMemory<home> memory;
  std::byte* q = nullptr;
  RingKeys own{};
  std::array<RingKeys, 2> visiting{};              ///< of odd and even steps
  std::vector<std::vector<Arguments>> launches{};  ///< of each step
  Mark has_keys{};  ///< own keys are there, and nothing of an earlier ring is read any more
  std::vector<Mark> fetched{};                    ///< by step
  std::array<std::optional<Mark>, 2> last_use{};  ///< of `visiting`, in this ring
};

/// Ranks of any ring. `Member` is a RingMember with what else a rank has. Where `Devices` has but
/// one of the ranks, the others are in processes that do the same with theirs.
template <Executor home, typename Member, typename Devices = RankDevices>
class RingRanks {
 public:
  using Place = typename Devices::Place;

  /// Puts the ranks' rows into the caller's outputs. Throws KernelError where a rank wrote past its
  /// memory.
  template <typename PutOutputs>
  void give_outputs(const PutOutputs& put_outputs) {
    const auto for_each_here = [&](const auto& work) {
      for (Member& member : members_) {
        if (devices_.has(member.rank)) work(member);
      }
    };
    for_each_here(put_outputs);
    devices_.synchronize();
    for_each_here([this](Member& member) { memory_of(member).check(member.rank); });
  }
  /// Waits for all that was launched.
  void wait() { devices_.synchronize(); }
  /// Waits until no process uses another's memory any more. Only of ranks in several.
  void let_go() { devices_.let_go(); }
  /// Milliseconds of a ring that `run_once` launches, of so many in a row.
  template <typename RunOnce>
  [[nodiscard]] double time_ms(int count, const RunOnce& run_once) {
    return devices_.slowest_ms([&] {
      for (int i = 0; i < count; ++i) run_once();
    }) / count;
  }

 protected:
  using Mark = typename Devices::Mark;
  using Queue = typename Devices::Queue;

  RingRanks(const Problem& problem, const Plan& plan, const KernelInfo& kernel,
            const RingForm& form, Place& place)
      : problem_(problem), plan_(plan), kernel_(kernel), form_(form), devices_(plan.ranks, place) {}

  [[nodiscard]] std::int64_t ranks() const { return plan_.ranks; }
  [[nodiscard]] const Problem& problem() const { return problem_; }
  /// Columns in a rank's memory: rows begin at multiples of 16 bytes.
  [[nodiscard]] static std::int64_t padded(std::int64_t columns) { return (columns + 7) / 8 * 8; }
  [[nodiscard]] std::int64_t k_columns() const { return padded(problem().head_dim); }
  [[nodiscard]] std::int64_t v_columns() const { return padded(problem().output_dim()); }
  [[nodiscard]] std::int64_t query_heads() const { return problem().batch * problem().query_heads; }
  [[nodiscard]] std::int64_t kv_heads() const { return problem().batch * problem().kv_heads; }
  [[nodiscard]] static std::size_t bytes_of(std::int64_t elements, std::size_t size = 2) {
    return static_cast<std::size_t>(elements) * size;
  }
  [[nodiscard]] static std::int64_t tokens_in(const std::vector<TokenPiece>& pieces) {
    std::int64_t tokens = 0;
    for (const TokenPiece& piece : pieces) tokens += piece.count;
    return tokens;
  }
  [[nodiscard]] static Strides strides(std::int64_t heads, std::int64_t rows,
                                       std::int64_t columns) {
    return {heads * rows * columns, rows * columns, columns};
  }

  [[nodiscard]] RingKeys add_keys(Member& m, std::int64_t rows, const std::string& whose,
                                  std::size_t page_bytes = 1) {
    return {.k = add_rows(m, whose + "K", bytes_of(kv_heads() * rows * k_columns()), page_bytes),
            .v = add_rows(m, whose + "V", bytes_of(kv_heads() * rows * v_columns()), page_bytes),
            .rows = rows};
  }
  /// Memory of a rank, to add to: its GPU is the thread's current one.
  [[nodiscard]] RingMemory<home>& memory_of(Member& m) {
    if (devices_.has(m.rank)) (void)devices_.of(m.rank);
    return m.memory;
  }
  /// Memory of a rank's rows, which launches and copies write: it holds NaN until then, and not
  /// what the launch before it left there, or a wait that is missing would not show.
  [[nodiscard]] std::byte* add_rows(Member& m, const std::string& name, std::size_t bytes,
                                    std::size_t page_bytes = 1) {
    std::byte* const rows = memory_of(m).add(name, bytes, page_bytes);
    devices_.poison(m.rank, rows, bytes);
    return rows;
  }

  /// True if the rank has a step of that number, in which another rank's keys visit it.
  [[nodiscard]] static bool has_visitors(const Member& m, std::size_t step) {
    return step < m.steps.size() && m.steps[step].owner != m.rank;
  }
  /// As many steps as any rank has.
  [[nodiscard]] std::size_t most_steps() const {
    std::size_t most = 0;
    for (const Member& m : members_) most = std::max(most, m.steps.size());
    return most;
  }
  /// Buffer that keys visit in a step.
  [[nodiscard]] static const RingKeys& visitors(const Member& m, std::size_t step) {
    return m.visiting[step % 2];
  }
  /// Keys that a step's launches read. A visitor's rows follow each other: no more of them came
  /// than were asked for.
  [[nodiscard]] static RingKeys keys_of(const Member& m, std::size_t step) {
    if (!has_visitors(m, step)) return m.own;
    const RingKeys& there = visitors(m, step);
    return {there.k, there.v, m.steps[step].keys};
  }

  /// Adds a rank with its tokens, steps, Q and memory for keys, which all others can read.
  [[nodiscard]] Member& add_member(std::int64_t rank) {
    Member& m = members_.emplace_back(devices_.has(rank) ? &devices_.of(rank) : nullptr);
    m.rank = rank;
    m.query_pieces = pieces_of_rank(plan_.distribution, problem().query_len, ranks(), rank);
    m.key_pieces = pieces_of_rank(plan_.distribution, problem().key_len, ranks(), rank);
    m.steps = form_.steps_of(problem(), plan_, rank);
    m.queries = tokens_in(m.query_pieces);
    m.q = memory_of(m).add("Q", bytes_of(query_heads() * m.queries * k_columns()));
    m.own = add_keys(m, tokens_in(m.key_pieces), "", Devices::shared_page_bytes);
    m.own.k = devices_.shared(rank, m.own.k);
    m.own.v = devices_.shared(rank, m.own.v);
    std::int64_t most = 0;
    for (std::size_t step = 0; step < m.steps.size(); ++step) {
      if (has_visitors(m, step)) most = std::max(most, m.steps[step].keys);
    }
    for (RingKeys& keys : m.visiting) keys = add_keys(m, most, "visiting ");
    m.fetched.resize(m.steps.size());
    return m;
  }

  /// Copies the rows of pieces of the caller's tensor; `to_rank`: into a rank's, else out of it.
  /// Columns are units of two bytes.
  void copy_pieces(std::int64_t rank, const std::vector<TokenPiece>& pieces, std::int64_t heads,
                   const void* callers, const Strides& callers_strides, void* ranks,
                   const Strides& ranks_strides, std::int64_t columns, std::int64_t width,
                   bool to_rank) {
    std::int64_t row = 0;
    for (const TokenPiece& piece : pieces) {
      auto* const outer = static_cast<unsigned short*>(const_cast<void*>(callers)) +
                          callers_strides.offset(0, 0, piece.first);
      auto* const inner = static_cast<unsigned short*>(ranks) + ranks_strides.offset(0, 0, row);
      Strides outer_strides = callers_strides;
      outer_strides.row *= piece.stride;
      const RowCopy copy{.from = to_rank ? outer : inner,
                         .to = to_rank ? inner : outer,
                         .from_strides = to_rank ? outer_strides : ranks_strides,
                         .to_strides = to_rank ? ranks_strides : outer_strides,
                         .entries = problem().batch,
                         .heads = heads,
                         .rows = piece.count,
                         .columns = columns,
                         .width = width};
      devices_.launch(rank, [copy](Device& device) { copy_rows<home>(copy, device); });
      row += piece.count;
    }
  }
  /// Takes a rank's rows of the caller's tensor; zeros fill the rank's up to a multiple of 8.
  void take(Member& m, const std::vector<TokenPiece>& pieces, std::int64_t heads, const void* from,
            const Strides& from_strides, std::byte* to, std::int64_t columns) {
    copy_pieces(m.rank, pieces, heads, from, from_strides, to,
                strides(heads, tokens_in(pieces), padded(columns)), columns, padded(columns), true);
  }
  void put(Member& m, const std::vector<TokenPiece>& pieces, std::int64_t heads, void* to,
           const Strides& to_strides, std::byte* from, std::int64_t columns) {
    copy_pieces(m.rank, pieces, heads, to, to_strides, from,
                strides(heads, tokens_in(pieces), padded(columns)), columns, columns, false);
  }
  /// Takes a rank's LSE, or puts it back.
  void copy_lse(Member& m, const float* callers, float* ranks, bool to_rank) {
    constexpr std::int64_t units = 2;  // of a number
    const std::int64_t heads = problem().query_heads;
    copy_pieces(m.rank, m.query_pieces, heads, callers, strides(heads, problem().query_len, units),
                ranks, strides(heads, m.queries, units), units, units, to_rank);
  }

  /// Gives all launches of a rank, which have all but that, memory beside their tensors. They run
  /// one after the other.
  void add_extra_memory(Member& m) {
    ExtraMemory extra;
    for (const auto& step : m.launches) {
      for (const Arguments& a : step) {
        const ExtraMemory needed = extra_memory(kernel_, a.problem, a.plan);
        extra.workspace = std::max(extra.workspace, needed.workspace);
        extra.counters = std::max(extra.counters, needed.counters);
      }
    }
    std::byte* const workspace = memory_of(m).add("workspace", extra.workspace);
    std::byte* const counters = m.memory.add("counters", extra.counters);
    const RowCopy zeros{.to = reinterpret_cast<unsigned short*>(counters),
                        .entries = 1,
                        .heads = 1,
                        .rows = 1,
                        .width = static_cast<std::int64_t>(extra.counters / 2)};
    devices_.launch(m.rank, [zeros](Device& device) { copy_rows<home>(zeros, device); });
    for (auto& step : m.launches) {
      for (Arguments& a : step) {
        a.workspace = workspace;
        a.counters = reinterpret_cast<unsigned*>(counters);
      }
    }
  }

  /// Begins a ring that exchanges keys.
  void announce_keys() {
    for (Member& m : members_) {
      m.has_keys = devices_.announce(m.rank, Queue::launches);
      m.last_use = {};
    }
  }

  /// Copies what a step needs of its owner's keys and values.
  void fetch(Member& m, std::size_t step) {
    if (!has_visitors(m, step)) return;
    const std::int64_t rows = m.steps[step].keys;
    if (rows == 0) return;
    const Member& owner = members_[static_cast<std::size_t>(m.steps[step].owner)];
    devices_.wait(m.rank, Queue::copies, owner.has_keys);
    devices_.wait(m.rank, Queue::copies, m.last_use[step % 2].value_or(m.has_keys));
    const RingKeys& to = visitors(m, step);
    const auto copy = [&](std::byte* into, const std::byte* from, std::int64_t columns) {
      const std::size_t row = bytes_of(columns), bytes = static_cast<std::size_t>(rows) * row;
      devices_.copy(m.rank, into, bytes, from, static_cast<std::size_t>(owner.own.rows) * row,
                    bytes, static_cast<std::size_t>(kv_heads()));
    };
    copy(to.k, owner.own.k, k_columns());
    copy(to.v, owner.own.v, v_columns());
    m.fetched[step] = devices_.announce_to(owner.rank, m.rank, Queue::copies);
  }

  void compute(Member& m, std::size_t step, bool exchanges) {
    if (step >= m.launches.size() || m.launches[step].empty()) return;
    const bool waits = exchanges && has_visitors(m, step);
    if (waits) devices_.wait(m.rank, Queue::launches, m.fetched[step]);
    for (const Arguments& a : m.launches[step]) {
      devices_.launch(m.rank, [this, &a](Device& device) { kernel_.launch(a, device); });
    }
    if (waits) m.last_use[step % 2] = devices_.mark(m.rank, Queue::launches);
  }

  /// A rank may change its keys and values when everybody has read them.
  void wait_until_all_have_keys() {
    for (const Member& reader : members_) {
      for (std::size_t s = 0; s < reader.steps.size(); ++s) {
        if (!has_visitors(reader, s) || reader.steps[s].keys == 0) continue;
        devices_.wait(reader.steps[s].owner, Queue::launches, reader.fetched[s]);
      }
    }
  }

  const Problem problem_;
  const Plan plan_;
  const KernelInfo& kernel_;
  const RingForm form_;
  Devices devices_;
  std::vector<Member> members_;
};

}  // namespace attest
