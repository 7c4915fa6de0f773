#pragma once

// Ranks of a ring that go backward. A launch has some of a rank's rows and the keys of one rank,
// with the rows' LSE and O over all keys, so that its weights are those of the whole: it gives a
// part of dQ, which stays, and parts of dK and dV, which belong to the rank that has the keys.
//
// Idea
//   Copy engines take dK and dV of step s to their owner while the rank works on step s + 1, as
//   they bring K and V: both ways at once, of which a link has one each. Every launch's dK and dV
//   have a place of their own at the owner, so nobody waits for anybody's sum; at the end each rank
//   adds up what came. A rank's own keys, which nobody has to send, are met by half of the work at
//   the beginning, behind which the first visitors come, and by the other half at the end, behind
//   which the last gradients go.
// Waits
//   Besides those of ranks.cuh: a copy for the launch that gives what it takes, the owner's sums
//   for all copies to it, and a rank's next ring for its own. A copy needs none for its place: it
//   is behind the one that brought the step's keys, which waited until the owner was done with the
//   ring before.
#include <tuple>
#include <utility>
#include <vector>

#include "core/operations/backward.hpp"
#include "core/operations/backward_arguments.hpp"
#include "gpu/kernels/bwd_ring/sum.cuh"
#include "gpu/kernels/ring/ranks.cuh"

namespace attest {

/// The kernel's Plan for a launch: the default one, the same on every card.
template <Executor home>
std::optional<Plan> backward_ring_plan(const Problem& launch) {
  const auto chosen = default_plan(kernel_of_ring<home>("bwd_wgmma"), launch, "NVIDIA H200");
  if (!chosen) return std::nullopt;
  return chosen->plan;
}

template <Executor home>
inline constexpr RingForm backward_ring{ring_steps_with_own_last, backward_ring_plan<home>};

/// Gradients that a launch gives of another rank's keys, here and where they go.
struct SentGradients {
  std::int64_t rows = 0;
  std::byte *dk = nullptr, *dv = nullptr;
  std::byte *owners_dk = nullptr, *owners_dv = nullptr;
};

template <Executor home, typename Devices = RankDevices>
struct BackwardMember : RingMember<home, Devices> {
  using RingMember<home, Devices>::RingMember;

  std::byte *o = nullptr, *d_o = nullptr;
  float* lse = nullptr;
  std::byte *dq = nullptr, *dk = nullptr, *dv = nullptr;
  std::vector<std::vector<SentGradients>> sent{};  ///< of the launches of each step
  std::vector<typename Devices::Mark> are_sent{};
  RingSum dq_sum{}, dk_sum{}, dv_sum{};
};

template <Executor home, typename Devices = RankDevices>
class BackwardRanks : public RingRanks<home, BackwardMember<home, Devices>, Devices> {
  using Base = RingRanks<home, BackwardMember<home, Devices>, Devices>;
  using Member = BackwardMember<home, Devices>;
  using Queue = typename Base::Queue;
  using Base::bytes_of;
  using Base::devices_;
  using Base::members_;
  using Base::problem;
  using Base::strides;

 public:
  /// Takes the ranks' parts of the caller's tensors.
  BackwardRanks(const BackwardArguments& whole, typename Base::Place& place)
      : Base(whole.problem, whole.plan, kernel_of_ring<home>("bwd_wgmma"), backward_ring<home>,
             place),
        whole_(whole) {
    for (std::int64_t rank = 0; rank < this->ranks(); ++rank) {
      Member& m = this->add_member(rank);
      if (!devices_.has(rank)) continue;
      add_memory(m);
      take_inputs(m);
    }
    for (Member& m : members_) prepare(m);  // owners have memory by now
    devices_.synchronize();
  }

  /// Launches one ring. `exchanges`: false leaves out what ranks send each other, and who waits for
  /// it.
  void run(bool exchanges) {
    if (exchanges) this->announce_keys();
    for (std::size_t s = 0; s < this->most_steps(); ++s) {
      for (Member& m : members_) {
        if (exchanges) this->fetch(m, s + 1);
        this->compute(m, s, exchanges);
        if (exchanges) send(m, s);
      }
    }
    for (Member& m : members_) add_up(m, m.dq_sum);
    if (exchanges) wait_for_gradients();
    for (Member& m : members_) {
      add_up(m, m.dk_sum);
      add_up(m, m.dv_sum);
    }
    if (exchanges) this->wait_until_all_have_keys();
  }
  [[nodiscard]] double time_ms(int count, bool exchanges) {
    return Base::time_ms(count, [&] { run(exchanges); });
  }
  void give_outputs() {
    const Problem& p = problem();
    Base::give_outputs([&](Member& m) {
      this->put(m, m.query_pieces, p.query_heads, whole_.dq, whole_.dq_strides, m.dq, p.head_dim);
      this->put(m, m.key_pieces, p.kv_heads, whole_.dk, whole_.dk_strides, m.dk, p.head_dim);
      this->put(m, m.key_pieces, p.kv_heads, whole_.dv, whole_.dv_strides, m.dv, p.output_dim());
    });
  }

 private:
  void add_memory(Member& m) {
    const std::int64_t rows = this->query_heads() * m.queries;
    const std::int64_t keys = this->kv_heads() * m.own.rows;
    m.o = this->memory_of(m).add("O", bytes_of(rows * this->v_columns()));
    m.d_o = this->memory_of(m).add("dO", bytes_of(rows * this->v_columns()));
    m.lse = reinterpret_cast<float*>(this->memory_of(m).add("LSE", bytes_of(rows, sizeof(float))));
    m.dq = this->add_rows(m, "dQ", bytes_of(rows * this->k_columns()));
    m.dk = this->add_rows(m, "dK", bytes_of(keys * this->k_columns()));
    m.dv = this->add_rows(m, "dV", bytes_of(keys * this->v_columns()));
    m.dq_sum = sum_of(m.dq, this->query_heads(), m.queries, problem().head_dim);
    m.dk_sum = sum_of(m.dk, this->kv_heads(), m.own.rows, problem().head_dim);
    m.dv_sum = sum_of(m.dv, this->kv_heads(), m.own.rows, problem().output_dim());
  }
  [[nodiscard]] static RingSum sum_of(std::byte* to, std::int64_t heads, std::int64_t rows,
                                      std::int64_t columns) {
    RingSum sum;
    sum.heads = heads;
    sum.rows = rows;
    sum.pitch = Base::padded(columns);
    sum.columns = columns;
    sum.to = to;
    return sum;
  }

  void take_inputs(Member& m) {
    const Problem& p = problem();
    this->take(m, m.query_pieces, p.query_heads, whole_.q, whole_.q_strides, m.q, p.head_dim);
    this->take(m, m.query_pieces, p.query_heads, whole_.o, whole_.o_strides, m.o, p.output_dim());
    this->take(m, m.query_pieces, p.query_heads, whole_.d_o, whole_.do_strides, m.d_o,
               p.output_dim());
    this->take(m, m.key_pieces, p.kv_heads, whole_.k, whole_.k_strides, m.own.k, p.head_dim);
    this->take(m, m.key_pieces, p.kv_heads, whole_.v, whole_.v_strides, m.own.v, p.output_dim());
    this->copy_lse(m, whole_.lse, m.lse, true);
  }

  /// All launches of a rank, and where their results go. Of a rank of another process only the
  /// latter.
  void prepare(Member& m) {
    m.are_sent.resize(m.steps.size());
    std::byte* of_own_keys = nullptr;  // no row meets them twice
    for (std::size_t s = 0; s < m.steps.size(); ++s) {
      m.launches.emplace_back();
      m.sent.emplace_back();
      if (m.steps[s].launches.empty()) continue;
      std::byte* dq = Base::has_visitors(m, s) ? nullptr : of_own_keys;
      if (dq == nullptr) {
        dq = this->add_rows(m, "partial dQ",
                            bytes_of(this->query_heads() * m.queries * this->k_columns()));
      }
      if (!Base::has_visitors(m, s)) of_own_keys = dq;
      for (const RingLaunch& launch : m.steps[s].launches) {
        const SentGradients made = add_gradients(m, m.steps[s].owner, launch.keys);
        m.sent.back().push_back(made);
        if (!devices_.has(m.rank)) continue;
        m.launches.back().push_back(arguments(m, launch, s, dq, made));
      }
    }
    this->add_extra_memory(m);
  }

  [[nodiscard]] Arguments arguments(Member& m, const RingLaunch& launch, std::size_t step,
                                    std::byte* dq, const SentGradients& made) {
    const Problem& p = problem();
    const std::int64_t k_columns = this->k_columns(), v_columns = this->v_columns();
    const RingKeys keys = this->keys_of(m, step);
    const auto rows_at = [&](std::byte* rows, std::int64_t columns) {
      return InputArgument{rows + bytes_of(launch.first_query * columns),
                           strides(p.query_heads, m.queries, columns)};
    };
    const auto gradients = [&](std::byte* rows, std::int64_t columns) {
      return OutputArgument{rows, strides(p.kv_heads, launch.keys, columns)};
    };
    Arguments a;
    a.problem = problem_of(p, launch);
    a.plan = backward_ring_plan<home>(a.problem).value();
    a[backward::q] = rows_at(m.q, k_columns);
    a[backward::k] = {keys.k, strides(p.kv_heads, keys.rows, k_columns)};
    a[backward::v] = {keys.v, strides(p.kv_heads, keys.rows, v_columns)};
    a[backward::o] = rows_at(m.o, v_columns);
    a[backward::d_o] = rows_at(m.d_o, v_columns);
    a[backward::lse].data = lse_of(m, launch);
    a[backward::dq] = {dq + bytes_of(launch.first_query * k_columns),
                       strides(p.query_heads, m.queries, k_columns)};
    a[backward::dk] = gradients(made.dk, k_columns);
    a[backward::dv] = gradients(made.dv, v_columns);
    add_part(m.dq_sum, {launch.first_query, launch.queries, m.queries, dq});
    return a;
  }

  /// Memory of a launch's dK and dV, and of their place at the owner of the keys, if that is
  /// another rank.
  [[nodiscard]] SentGradients add_gradients(Member& m, std::int64_t owner_rank, std::int64_t rows) {
    Member& owner = members_[static_cast<std::size_t>(owner_rank)];
    const auto add = [&](Member& to, std::size_t page_bytes) {
      return std::pair(
          this->add_rows(to, "partial dK", bytes_of(this->kv_heads() * rows * this->k_columns()),
                         page_bytes),
          this->add_rows(to, "partial dV", bytes_of(this->kv_heads() * rows * this->v_columns()),
                         page_bytes));
    };
    SentGradients made{.rows = rows};
    std::tie(made.dk, made.dv) = add(m, 1);
    if (owner_rank == m.rank) {
      std::tie(made.owners_dk, made.owners_dv) = std::pair(made.dk, made.dv);
    } else {
      const auto [dk, dv] = add(owner, Devices::shared_page_bytes);
      made.owners_dk = devices_.shared(owner_rank, dk);
      made.owners_dv = devices_.shared(owner_rank, dv);
    }
    add_part(owner.dk_sum, {0, rows, rows, made.owners_dk});
    add_part(owner.dv_sum, {0, rows, rows, made.owners_dv});
    return made;
  }
  static void add_part(RingSum& sum, const RingAddend& part) { sum.parts[sum.count++] = part; }

  /// LSE of a launch's rows, [entries, query_heads, rows]: the rank's, or a copy of those.
  [[nodiscard]] const float* lse_of(Member& m, const RingLaunch& launch) {
    if (launch.queries == m.queries) return m.lse;
    constexpr std::int64_t units = 2;  // of a number
    std::byte* const lse = this->memory_of(m).add(
        "LSE of rows", bytes_of(this->query_heads() * launch.queries, sizeof(float)));
    const RowCopy copy{.from = reinterpret_cast<const unsigned short*>(m.lse + launch.first_query),
                       .to = reinterpret_cast<unsigned short*>(lse),
                       .from_strides = strides(problem().query_heads, m.queries, units),
                       .to_strides = strides(problem().query_heads, launch.queries, units),
                       .entries = problem().batch,
                       .heads = problem().query_heads,
                       .rows = launch.queries,
                       .columns = units,
                       .width = units};
    devices_.launch(m.rank, [copy](Device& device) { copy_rows<home>(copy, device); });
    return reinterpret_cast<const float*>(lse);
  }

  /// Takes dK and dV of a step to the owner of its keys.
  void send(Member& m, std::size_t step) {
    if (!Base::has_visitors(m, step) || m.sent[step].empty()) return;
    if (devices_.has(m.rank)) copy_to_owner(m, step);
    m.are_sent[step] = devices_.announce_to(m.steps[step].owner, m.rank, Queue::copies);
  }
  void copy_to_owner(Member& m, std::size_t step) {
    devices_.wait(m.rank, Queue::copies, *m.last_use[step % 2]);
    for (const SentGradients& made : m.sent[step]) {
      // Behind the columns of a row nothing was written.
      const auto copy = [&](std::byte* to, const std::byte* from, std::int64_t columns) {
        const std::size_t pitch = bytes_of(Base::padded(columns));
        devices_.copy(m.rank, to, pitch, from, pitch, bytes_of(columns),
                      static_cast<std::size_t>(this->kv_heads() * made.rows));
      };
      copy(made.owners_dk, made.dk, problem().head_dim);
      copy(made.owners_dv, made.dv, problem().output_dim());
    }
  }

  void wait_for_gradients() {
    for (const Member& sender : members_) {
      for (std::size_t s = 0; s < sender.steps.size(); ++s) {
        if (!Base::has_visitors(sender, s) || sender.sent[s].empty()) continue;
        devices_.wait(sender.steps[s].owner, Queue::launches, sender.are_sent[s]);
        devices_.wait(sender.rank, Queue::launches, sender.are_sent[s]);
      }
    }
  }

  void add_up(Member& m, const RingSum& sum) {
    devices_.launch(m.rank, [this, &sum](Device& device) {
      add_parts<home>(sum, problem().element_type, device);
    });
  }

  const BackwardArguments whole_;
};

}  // namespace attest
