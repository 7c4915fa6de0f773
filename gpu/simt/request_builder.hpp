#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

#include "gpu/simt/request_cost.hpp"
#include "gpu/simt/shadow.hpp"

namespace attest::simt {

/// Puts the accesses of a warp's lanes, which the executor makes one lane after the other, back
/// together into requests: from one meeting of the whole warp to the next, what the lanes do at a
/// place in the program for the i-th time is one request. Lanes that do it less often are missing
/// from the later ones.
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
  };

  void add(ProgramPoint point, MemorySpace space, AccessKind kind, unsigned size_bytes,
           std::uintptr_t address, unsigned lane);
  /// Closes all requests. `alive`: lanes of the warp that could have taken part.
  void flush(unsigned alive);
  [[nodiscard]] const std::vector<Site>& sites() const { return sites_; }

 private:
  struct Lanes {
    unsigned mask = 0;
    std::array<std::uintptr_t, 32> address{};
  };
  struct OpenSite {
    std::array<std::uint32_t, 32> times{};  ///< that each lane was here
    std::vector<Lanes> requests;            ///< kept to be used again
    std::size_t request_count = 0;
  };
  [[nodiscard]] std::size_t site_of(ProgramPoint point, MemorySpace space, AccessKind kind,
                                    unsigned size_bytes);

  std::vector<Site> sites_;
  std::vector<OpenSite> open_;  ///< beside sites_
  std::vector<std::size_t> touched_;
  std::unordered_map<std::uint64_t, std::size_t> index_;
  struct Recent {
    std::uint64_t key = ~std::uint64_t{0};
    std::size_t site = 0;
  };
  std::array<Recent, 256> recent_;  ///< spares the map most of the time
};

}  // namespace attest::simt
