#pragma once

// Ranks of a ring that go forward: each launch gives O and LSE of its rows over the keys of one
// rank, and merge.cuh puts them together.
#include "core/operations/forward_arguments.hpp"
#include "gpu/kernels/ring/merge.cuh"
#include "gpu/kernels/ring/ranks.cuh"

namespace attest {

/// The kernel's Plan for a launch: the default one, the same on every card, so that the roundings
/// are known. None of those that cut keys, and merge them with roundings of their own, as for one
/// query.
template <Executor home>
std::optional<Plan> forward_ring_plan(const Problem& launch) {
  const KernelInfo& kernel = kernel_of_ring<home>("fa3_wgmma");
  Problem problem = launch;
  problem.query_len = std::max<std::int64_t>(problem.query_len, 2);
  const auto chosen = default_plan(kernel, problem, "NVIDIA H200");
  if (!chosen) return std::nullopt;
  if (chosen->plan.key_splits <= 1) return chosen->plan;
  return kernel.plans(problem).front();
}

/// A forward pass has nothing to send back.
template <Executor home>
inline constexpr RingForm forward_ring{ring_steps, forward_ring_plan<home>};

template <Executor home, typename Devices = RankDevices>
struct ForwardMember : RingMember<home, Devices> {
  using RingMember<home, Devices>::RingMember;

  std::byte* o = nullptr;
  float* lse = nullptr;
  RingMerge merge{};
};

template <Executor home, typename Devices = RankDevices>
class ForwardRanks : public RingRanks<home, ForwardMember<home, Devices>, Devices> {
  using Base = RingRanks<home, ForwardMember<home, Devices>, Devices>;
  using Member = ForwardMember<home, Devices>;
  using Base::bytes_of;
  using Base::devices_;
  using Base::members_;
  using Base::problem;
  using Base::strides;

 public:
  /// Takes the ranks' parts of the caller's Q, K and V.
  ForwardRanks(const ForwardArguments& whole, typename Base::Place& place)
      : Base(whole.problem, whole.plan, kernel_of_ring<home>("fa3_wgmma"), forward_ring<home>,
             place),
        whole_(whole) {
    for (std::int64_t rank = 0; rank < this->ranks(); ++rank) {
      Member& m = this->add_member(rank);
      if (!devices_.has(rank)) continue;
      const std::int64_t rows = this->query_heads() * m.queries;
      m.o = this->add_rows(m, "O", bytes_of(rows * this->v_columns()));
      m.lse = reinterpret_cast<float*>(this->add_rows(m, "LSE", bytes_of(rows, sizeof(float))));
      take_inputs(m);
      prepare(m);
    }
    devices_.synchronize();
  }

  /// Launches one ring. `exchanges`: false leaves out what ranks send each other, and who waits for
  /// it.
  void run(bool exchanges) {
    if (exchanges) this->announce_keys();
    for (std::size_t s = 0; s < this->most_steps(); ++s) {
      for (Member& member : members_) {
        if (exchanges) this->fetch(member, s + 1);
        this->compute(member, s, exchanges);
      }
    }
    for (Member& member : members_) {
      devices_.launch(member.rank, [this, &member](Device& device) {
        merge_parts<home>(member.merge, problem().element_type, device);
      });
    }
    if (exchanges) this->wait_until_all_have_keys();
  }
  [[nodiscard]] double time_ms(int count, bool exchanges) {
    return Base::time_ms(count, [&] { run(exchanges); });
  }
  void give_outputs() {
    Base::give_outputs([this](Member& m) {
      this->put(m, m.query_pieces, problem().query_heads, whole_.o, whole_.o_strides, m.o,
                problem().output_dim());
      this->copy_lse(m, whole_.lse, m.lse, false);
    });
  }

 private:
  void take_inputs(Member& m) {
    const Problem& p = problem();
    this->take(m, m.query_pieces, p.query_heads, whole_.q, whole_.q_strides, m.q, p.head_dim);
    this->take(m, m.key_pieces, p.kv_heads, whole_.k, whole_.k_strides, m.own.k, p.head_dim);
    this->take(m, m.key_pieces, p.kv_heads, whole_.v, whole_.v_strides, m.own.v, p.output_dim());
  }

  /// All launches of a rank, and where their results go.
  void prepare(Member& m) {
    m.merge.heads = this->query_heads();
    m.merge.rows = m.queries;
    m.merge.pitch = this->v_columns();
    m.merge.columns = problem().output_dim();
    m.merge.o = m.o;
    m.merge.lse = m.lse;
    for (std::size_t s = 0; s < m.steps.size(); ++s) {
      m.launches.emplace_back();
      if (m.steps[s].launches.empty()) continue;
      std::byte* const o = this->add_rows(
          m, "partial O", bytes_of(this->query_heads() * m.queries * this->v_columns()));
      for (const RingLaunch& launch : m.steps[s].launches) {
        m.launches.back().push_back(arguments(m, launch, this->keys_of(m, s), o));
      }
    }
    this->add_extra_memory(m);
  }

  /// Arguments of a launch, whose result is one more part of the merge.
  [[nodiscard]] Arguments arguments(Member& m, const RingLaunch& launch, const RingKeys& keys,
                                    std::byte* o) {
    ForwardArguments a;
    a.problem = problem_of(problem(), launch);
    a.plan = forward_ring_plan<home>(a.problem).value();
    a.q = m.q + bytes_of(launch.first_query * this->k_columns());
    a.k = keys.k;
    a.v = keys.v;
    a.o = o + bytes_of(launch.first_query * this->v_columns());
    a.lse = reinterpret_cast<float*>(this->add_rows(
        m, "partial LSE", bytes_of(this->query_heads() * launch.queries, sizeof(float))));
    a.q_strides = strides(problem().query_heads, m.queries, this->k_columns());
    a.k_strides = strides(problem().kv_heads, keys.rows, this->k_columns());
    a.v_strides = strides(problem().kv_heads, keys.rows, this->v_columns());
    a.o_strides = strides(problem().query_heads, m.queries, this->v_columns());
    m.merge.parts[m.merge.count++] =
        RingPart{.first_row = launch.first_query, .rows = launch.queries, .o = o, .lse = a.lse};
    return a;
  }

  const ForwardArguments whole_;
};

}  // namespace attest
