#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/base/shared_claims.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/campaign_state.hpp"

namespace attest {

/// Share of one process in a campaign that several share.
struct Share {
  std::int64_t chunks = 0;
  std::int64_t cases = 0;
  double seconds = 0;
  bool is_interrupted = false;
  /// Findings of all processes, nothing shrunk yet. Only one process gets them: it goes on as if it
  /// resumed the campaign.
  std::optional<std::vector<KernelResult>> whole{};
};

/// A campaign that several processes do together; all that they share is a folder. Chunks of some
/// tasks of one kernel are claimed (SharedClaims) and left there, each a file, whole or not at all.
/// What a case comes to is a function of seed and index, so put together they are what one process
/// with one job finds, whoever judged what, and a chunk that two judged is the same file. A process
/// that is killed loses the chunks it was at; others take them.
class SharedCampaign {
 public:
  /// `folder`: of the records. `kernels` and `options` outlive this object. Throws MachineError if
  /// the folder cannot be used.
  SharedCampaign(const std::filesystem::path& folder, const std::vector<const KernelInfo*>& kernels,
                 const CampaignOptions& options);

  /// Begins the campaign, or joins the one that another process began: its state as it stands.
  /// Throws InvalidInput if that is another one: by another program, with other options or of
  /// other kernels.
  [[nodiscard]] CampaignState join(CampaignState mine);
  /// Judges chunks until none is left and nobody is at one. Throws what run_campaign throws.
  [[nodiscard]] Share take_part();

 private:
  [[nodiscard]] double seconds() const;
  [[nodiscard]] bool is_over() const;
  [[nodiscard]] bool is_interrupted() const;
  void work();
  void judge(std::int64_t chunk, CaseRunner& runner);
  /// A chunk that is this process's now; nothing when all are done or time is over.
  [[nodiscard]] std::optional<std::int64_t> next();
  [[nodiscard]] std::optional<std::int64_t> take_one(bool& is_any_left);
  /// True if the chunk exists and nobody has judged it, nor an earlier one in which its kernel
  /// failed.
  [[nodiscard]] bool is_open(std::int64_t chunk);
  [[nodiscard]] bool are_others_at_work();
  [[nodiscard]] std::filesystem::path path_of(std::int64_t chunk, bool has_failed) const;

  std::filesystem::path folder_, chunks_;
  const std::vector<const KernelInfo*>& kernels_;
  const CampaignOptions& options_;
  SharedClaims claims_;
  std::mutex mutex_;
  std::int64_t first_open_ = 0;          ///< none before it is
  std::set<std::int64_t> closed_;        ///< of those behind it, as far as seen
  std::vector<std::int64_t> failed_in_;  ///< by kernel: round of the chunk in which it failed
  Share share_;
  std::atomic<bool> stop_ = false;
  std::exception_ptr error_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// Adds the chunks that processes left in a campaign's folder and that `results` do not hold yet.
void absorb_chunks(const std::filesystem::path& folder, std::vector<KernelResult>& results);
/// Removes a campaign's chunks, before another one begins in the folder.
void remove_chunks(const std::filesystem::path& folder);

}  // namespace attest
