#pragma once

// Ranks of a ring on their GPUs: who has which memory, what is launched and copied when, and who
// waits for whom. core/attention/ring_schedule says which rows meet which keys.
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
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "core/attention/distribution.hpp"
#include "core/attention/ring_schedule.hpp"
#include "core/base/error.hpp"
#include "core/operations/forward_arguments.hpp"
#include "core/run/default_plan.hpp"
#include "core/run/launch_image.hpp"
#include "core/run/registry.hpp"
#include "gpu/kernels/ring/merge.cuh"
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

/// The kernel that computes.
template <Executor home>
const KernelInfo& ring_kernel() {
  const KernelInfo* const kernel = find_kernel("fa3_wgmma", home);
  if (kernel == nullptr) throw MachineError("ring: this program has no fa3_wgmma");
  return *kernel;
}

/// Its Plan for a launch: the default one, the same on every card, so that the roundings are known.
/// None of those that cut keys, and merge them with roundings of their own, as for one query.
template <Executor home>
std::optional<Plan> ring_plan(Problem problem) {
  problem.query_len = std::max<std::int64_t>(problem.query_len, 2);
  const auto chosen = default_plan(ring_kernel<home>(), problem, "NVIDIA H200");
  if (!chosen) return std::nullopt;
  if (chosen->plan.key_splits <= 1) return chosen->plan;
  return ring_kernel<home>().plans(problem).front();
}

/// Memory of one rank between guards.
template <Executor home>
class RingMemory {
 public:
  explicit RingMemory(Device& device) : device_(device) {}
  RingMemory(RingMemory&&) = default;
  ~RingMemory() {
    for (const Buffer& buffer : buffers_) device_.release(buffer.data);
  }

  [[nodiscard]] std::byte* add(std::string name, std::size_t bytes) {
    const std::size_t end = (bytes + 15) / 16 * 16;
    std::byte* const buffer = device_.allocate(end + 2 * guard_bytes);
    for (std::byte* const at : {buffer, buffer + guard_bytes + end}) {
      device_.fill(at, guard_bytes, std::span(&guard, 1));
    }
    buffers_.push_back({std::move(name), buffer, end});
    return buffer + guard_bytes;
  }
  /// Throws KernelError where a guard was written.
  void check(std::int64_t rank) {
    for (const Buffer& buffer : buffers_) {
      for (const bool is_behind : {false, true}) {
        std::array<std::byte, guard_bytes> now{};
        device_.download(buffer.data + (is_behind ? guard_bytes + buffer.bytes : 0), now);
        if (std::ranges::all_of(now, [](std::byte b) { return b == guard; })) continue;
        throw KernelError("rank " + std::to_string(rank) + "'s " + buffer.name + ": bytes " +
                          (is_behind ? "behind" : "before") + " it were written");
      }
    }
  }

 private:
  static constexpr std::size_t guard_bytes = 256;
  static constexpr std::byte guard{0xff};  ///< a NaN in every format
  struct Buffer {
    std::string name;
    std::byte* data;
    std::size_t bytes;
  };
  Device& device_;
  std::vector<Buffer> buffers_;
};

template <Executor home>
class RingRanks {
 public:
  /// Takes the ranks' parts of the caller's Q, K and V.
  RingRanks(const ForwardArguments& whole, Device& device)
      : whole_(whole), devices_(whole.plan.ranks, device) {
    for (std::int64_t rank = 0; rank < ranks(); ++rank) {
      members_.push_back(make_member(rank));
      take_inputs(members_.back());
      prepare(members_.back());
    }
    devices_.synchronize();
  }

  /// Launches one ring. `exchanges`: false leaves out what ranks send each other, and who waits for
  /// it.
  void run(bool exchanges) {
    if (exchanges) announce_keys();
    for (std::int64_t s = 0; s < ranks(); ++s) {
      for (Member& member : members_) {
        if (exchanges) fetch(member, s + 1);
        compute(member, s, exchanges);
      }
    }
    for (Member& member : members_) {
      devices_.launch(member.rank, [this, &member](Device& device) {
        merge_parts<home>(member.merge, problem().element_type, device);
      });
    }
    if (exchanges) wait_until_all_have_keys();
  }

  /// Milliseconds of a ring, of so many in a row.
  [[nodiscard]] double time_ms(int count, bool exchanges) {
    return devices_.slowest_ms([&] {
      for (int i = 0; i < count; ++i) run(exchanges);
    }) / count;
  }

  /// Puts the ranks' rows into the caller's O and LSE. Throws KernelError where a rank wrote past
  /// its memory.
  void give_outputs() {
    for (Member& member : members_) put_outputs(member);
    devices_.synchronize();
    for (Member& member : members_) {
      (void)devices_.of(member.rank);
      member.memory.check(member.rank);
    }
  }

 private:
  using Mark = typename RankDevices::Mark;
  using Queue = typename RankDevices::Queue;

  /// Keys and values, [entries, kv_heads, rows, columns] each.
  struct Keys {
    std::byte *k = nullptr, *v = nullptr;
    std::int64_t rows = 0;
  };
  struct Member {
    std::int64_t rank = 0;
    std::vector<TokenPiece> query_pieces, key_pieces;
    std::int64_t queries = 0;
    std::vector<RingStep> steps;
    RingMemory<home> memory;
    std::byte *q = nullptr, *o = nullptr;
    float* lse = nullptr;
    Keys own{};
    std::array<Keys, 2> visiting{};                  ///< of odd and even steps
    std::vector<std::vector<Arguments>> launches{};  ///< of each step
    RingMerge merge{};
    Mark has_keys{};  ///< own keys are there, and nothing of an earlier ring is read any more
    std::vector<Mark> fetched{};                    ///< by step
    std::array<std::optional<Mark>, 2> last_use{};  ///< of `visiting`, in this ring
  };

  [[nodiscard]] std::int64_t ranks() const { return whole_.plan.ranks; }
  [[nodiscard]] const Problem& problem() const { return whole_.problem; }
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

  [[nodiscard]] Keys add_keys(RingMemory<home>& memory, std::int64_t rows,
                              const std::string& whose) const {
    return {.k = memory.add(whose + "K", bytes_of(kv_heads() * rows * k_columns())),
            .v = memory.add(whose + "V", bytes_of(kv_heads() * rows * v_columns())),
            .rows = rows};
  }

  /// Buffer that keys visit in a step.
  [[nodiscard]] static const Keys& visitors(const Member& m, std::size_t step) {
    return m.visiting[step % 2];
  }

  [[nodiscard]] Member make_member(std::int64_t rank) {
    const Plan& plan = whole_.plan;
    Member m{.rank = rank,
             .query_pieces = pieces_of_rank(plan.distribution, problem().query_len, ranks(), rank),
             .key_pieces = pieces_of_rank(plan.distribution, problem().key_len, ranks(), rank),
             .steps = ring_steps(problem(), plan, rank),
             .memory = RingMemory<home>(devices_.of(rank))};
    m.queries = tokens_in(m.query_pieces);
    const std::int64_t rows = query_heads() * m.queries;
    m.q = m.memory.add("Q", bytes_of(rows * k_columns()));
    m.o = m.memory.add("O", bytes_of(rows * v_columns()));
    devices_.poison(m.rank, m.o, bytes_of(rows * v_columns()));
    m.lse = reinterpret_cast<float*>(m.memory.add("LSE", bytes_of(rows, sizeof(float))));
    devices_.poison(m.rank, reinterpret_cast<std::byte*>(m.lse), bytes_of(rows, sizeof(float)));
    m.own = add_keys(m.memory, tokens_in(m.key_pieces), "");
    std::int64_t most = 0;
    for (std::size_t step = 1; step < m.steps.size(); ++step) {
      most = std::max(most, m.steps[step].keys);
    }
    for (Keys& keys : m.visiting) keys = add_keys(m.memory, most, "visiting ");
    m.fetched.resize(m.steps.size());
    return m;
  }

  /// Copies the rows of pieces of the caller's tensor; `to_rank`: into a rank's, else out of it.
  void copy_pieces(std::int64_t rank, const std::vector<TokenPiece>& pieces, std::int64_t heads,
                   std::byte* callers, const Strides& callers_strides, std::byte* ranks,
                   const Strides& ranks_strides, std::int64_t columns, std::int64_t width,
                   bool to_rank) {
    std::int64_t row = 0;
    for (const TokenPiece& piece : pieces) {
      auto* const outer =
          reinterpret_cast<unsigned short*>(callers) + callers_strides.offset(0, 0, piece.first);
      auto* const inner =
          reinterpret_cast<unsigned short*>(ranks) + ranks_strides.offset(0, 0, row);
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

  void take_inputs(Member& m) {
    const auto take = [&](const std::vector<TokenPiece>& pieces, std::int64_t heads,
                          const void* from, const Strides& from_strides, std::byte* to,
                          std::int64_t columns) {
      copy_pieces(m.rank, pieces, heads, static_cast<std::byte*>(const_cast<void*>(from)),
                  from_strides, to, strides(heads, tokens_in(pieces), padded(columns)), columns,
                  padded(columns), true);
    };
    const Problem& p = problem();
    take(m.query_pieces, p.query_heads, whole_.q, whole_.q_strides, m.q, p.head_dim);
    take(m.key_pieces, p.kv_heads, whole_.k, whole_.k_strides, m.own.k, p.head_dim);
    take(m.key_pieces, p.kv_heads, whole_.v, whole_.v_strides, m.own.v, p.output_dim());
  }

  void put_outputs(Member& m) {
    const Problem& p = problem();
    copy_pieces(m.rank, m.query_pieces, p.query_heads, static_cast<std::byte*>(whole_.o),
                whole_.o_strides, m.o, strides(p.query_heads, m.queries, v_columns()),
                p.output_dim(), p.output_dim(), false);
    constexpr std::int64_t units = 2;  // of an LSE
    copy_pieces(m.rank, m.query_pieces, p.query_heads, reinterpret_cast<std::byte*>(whole_.lse),
                strides(p.query_heads, p.query_len, units), reinterpret_cast<std::byte*>(m.lse),
                strides(p.query_heads, m.queries, units), units, units, false);
  }

  /// All launches of a rank, and where their results go.
  void prepare(Member& m) {
    m.merge.heads = query_heads();
    m.merge.rows = m.queries;
    m.merge.pitch = v_columns();
    m.merge.columns = problem().output_dim();
    m.merge.o = m.o;
    m.merge.lse = m.lse;
    ExtraMemory extra;
    for (std::size_t s = 0; s < m.steps.size(); ++s) {
      m.launches.emplace_back();
      if (m.steps[s].launches.empty()) continue;
      const Keys& owners = s == 0 ? m.own : visitors(m, s);
      // A visitor's rows follow each other: no more of them came than were asked for.
      const Keys keys{owners.k, owners.v, s == 0 ? owners.rows : m.steps[s].keys};
      std::byte* const o =
          m.memory.add("partial O", bytes_of(query_heads() * m.queries * v_columns()));
      for (const RingLaunch& launch : m.steps[s].launches) {
        m.launches.back().push_back(arguments(m, launch, keys, o));
        const Arguments& a = m.launches.back().back();
        const ExtraMemory needed = extra_memory(ring_kernel<home>(), a.problem, a.plan);
        extra.workspace = std::max(extra.workspace, needed.workspace);
        extra.counters = std::max(extra.counters, needed.counters);
      }
    }
    std::byte* const workspace = m.memory.add("workspace", extra.workspace);
    if (extra.counters > 0) throw std::logic_error("the ring's kernel asks for counters");
    for (auto& step : m.launches) {
      for (Arguments& a : step) a.workspace = workspace;
    }
  }

  /// Arguments of a launch, whose result is one more part of the merge.
  [[nodiscard]] Arguments arguments(Member& m, const RingLaunch& launch, const Keys& keys,
                                    std::byte* o) {
    ForwardArguments a;
    a.problem = problem_of(problem(), launch);
    a.plan = ring_plan<home>(a.problem).value();
    a.q = m.q + bytes_of(launch.first_query * k_columns());
    a.k = keys.k;
    a.v = keys.v;
    a.o = o + bytes_of(launch.first_query * v_columns());
    a.lse = reinterpret_cast<float*>(
        m.memory.add("partial LSE", bytes_of(query_heads() * launch.queries, sizeof(float))));
    a.q_strides = strides(problem().query_heads, m.queries, k_columns());
    a.k_strides = strides(problem().kv_heads, keys.rows, k_columns());
    a.v_strides = strides(problem().kv_heads, keys.rows, v_columns());
    a.o_strides = strides(problem().query_heads, m.queries, v_columns());
    m.merge.parts[m.merge.count++] =
        RingPart{.first_row = launch.first_query, .rows = launch.queries, .o = o, .lse = a.lse};
    return a;
  }

  void announce_keys() {
    for (Member& m : members_) {
      m.has_keys = devices_.mark(m.rank, Queue::launches);
      m.last_use = {};
    }
  }

  /// Copies what a step needs of its owner's keys and values.
  void fetch(Member& m, std::int64_t s) {
    if (s >= ranks()) return;
    const auto step = static_cast<std::size_t>(s);
    const std::int64_t rows = m.steps[step].keys;
    if (rows == 0) return;
    const Member& owner = members_[static_cast<std::size_t>(m.steps[step].owner)];
    devices_.wait(m.rank, Queue::copies, owner.has_keys);
    devices_.wait(m.rank, Queue::copies, m.last_use[step % 2].value_or(m.has_keys));
    const Keys& to = visitors(m, step);
    const auto copy = [&](std::byte* into, const std::byte* from, std::int64_t columns) {
      const std::size_t row = bytes_of(columns), bytes = static_cast<std::size_t>(rows) * row;
      devices_.copy(m.rank, into, bytes, from, static_cast<std::size_t>(owner.own.rows) * row,
                    bytes, static_cast<std::size_t>(kv_heads()));
    };
    copy(to.k, owner.own.k, k_columns());
    copy(to.v, owner.own.v, v_columns());
    m.fetched[step] = devices_.mark(m.rank, Queue::copies);
  }

  void compute(Member& m, std::int64_t s, bool exchanges) {
    const auto step = static_cast<std::size_t>(s);
    if (m.launches[step].empty()) return;
    if (exchanges && s > 0) devices_.wait(m.rank, Queue::launches, m.fetched[step]);
    for (const Arguments& a : m.launches[step]) {
      devices_.launch(m.rank, [&a](Device& device) { ring_kernel<home>().launch(a, device); });
    }
    if (exchanges && s > 0) m.last_use[step % 2] = devices_.mark(m.rank, Queue::launches);
  }

  /// A rank may change its keys and values when everybody has read them.
  void wait_until_all_have_keys() {
    for (const Member& reader : members_) {
      for (std::size_t s = 1; s < reader.steps.size(); ++s) {
        if (reader.steps[s].keys == 0) continue;
        devices_.wait(reader.steps[s].owner, Queue::launches, reader.fetched[s]);
      }
    }
  }

  const ForwardArguments whole_;
  RankDevices devices_;
  std::vector<Member> members_;
};

}  // namespace attest
