#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/run/launch_trace.hpp"
#include "gpu/simt/shadow.hpp"

namespace attest::simt {
/// Puts the accesses of a warp's lanes, which the executor makes one lane after the other, back
/// together into requests.
///
/// Between two meetings of the whole warp each lane leaves a list of instructions. They are
/// replayed together as hardware would run them that lets lanes wait for each other at the end of
/// branches and loops: the instruction that stands first in the source is next, for all lanes that
/// are about to execute it [minimum-PC scheduling: Collange, Stack-less SIMT reconvergence at low
/// cost, 2011]. A lane whose next instruction stands before its last one goes round a loop, and
/// waits at the loop's end until the others have come so far. Where that end is, accesses alone do
/// not say: after the lane's last instruction, or after the last one from which any lane went back
/// to the same place. Both are tried, and the replay with fewer requests is taken.
class RequestBuilder {
 public:
  /// One load or store instruction and what it has done so far.
  struct Site {
    ProgramPoint point = 0;
    MemorySpace space{};
    AccessKind kind{};
    unsigned size_bytes = 0;
    std::uintptr_t lowest = ~std::uintptr_t{0}, highest = 0;  ///< bytes [lowest, highest)
    AccessCounts counts;
    int worst_ways = 0;
    std::vector<std::string> lines;  ///< of the source, innermost inlined function first
  };

  /// Lanes in any order, the accesses of each in its own.
  void add(ProgramPoint point, MemorySpace space, AccessKind kind, unsigned size_bytes,
           std::uintptr_t address, unsigned lane);
  /// A request that no lanes make: at most 128 bytes in a row that a copy by TMA moves, by 16.
  void add_copied_row(ProgramPoint point, MemorySpace space, AccessKind kind,
                      std::uintptr_t address, std::size_t size_bytes);
  /// The warp has met: everything added so far becomes requests. `alive`: lanes of the warp that
  /// could have taken part.
  void flush(unsigned alive);
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }

 private:
  using SiteIndex = std::uint32_t;
  struct Event {
    std::uintptr_t address;
    SiteIndex site;
  };
  /// Lanes that execute together, one mask a request.
  using Schedule = std::vector<unsigned>;
  enum class LoopEnd { own, common };

  [[nodiscard]] SiteIndex site_of(ProgramPoint point, MemorySpace space, AccessKind kind,
                                  unsigned size_bytes);
  void rank_sites();
  void find_loops();
  [[nodiscard]] bool lanes_agree() const;
  [[nodiscard]] Schedule schedule(LoopEnd loop_end) const;
  void take(const Schedule& schedule, unsigned alive);

  std::vector<Site> sites_;
  std::unordered_map<std::uint64_t, SiteIndex> index_;
  struct Recent {
    std::uint64_t key = ~std::uint64_t{0};
    SiteIndex site = 0;
  };
  std::array<Recent, 256> recent_;  ///< spares the map most of the time

  std::array<std::vector<Event>, 32> events_;  ///< of each lane
  unsigned busy_lanes_ = 0;                    ///< those that have any
  std::vector<std::uint64_t> rank_;            ///< of a site in the order of the source
  std::vector<SiteIndex> loop_end_;  ///< the last site from which a lane went back to this one
};

/// Accesses that the lanes of a warp make together by one instruction.
struct WarpRequest {
  MemorySpace space = MemorySpace::shared;
  AccessKind kind = AccessKind::read;
  unsigned size_bytes = 4;                   ///< of one lane: 1, 2, 4, 8 or 16
  unsigned lanes = 0;                        ///< a bit for each that takes part
  std::array<std::uintptr_t, 32> address{};  ///< of the lanes that take part
};

struct RequestCost {
  AccessCounts counts;  ///< of this one request
  int worst_ways = 0;   ///< shared memory only
};

/// Shared memory [CUDA C++ Programming Guide, compute capability 5.x and later]: word w, of 4
/// bytes, lies in bank w mod 32; a pass reads one word of each bank and hands it to any number of
/// lanes. Lanes go through in groups: 32 at once when each wants 4 bytes or less, 16 for 8 bytes, 8
/// for 16 bytes. Loads of 8 and 16 bytes take groups twice as large when lanes 2k and 2k + 1 want
/// the same, for all k, or lanes that differ in the second bit do [G. Smith, NVIDIA developer
/// forums, thread 77228]. Global memory: distinct sectors of 32 bytes.
[[nodiscard]] RequestCost cost_of(const WarpRequest& request);

}  // namespace attest::simt
