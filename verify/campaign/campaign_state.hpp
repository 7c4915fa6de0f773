#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "verify/campaign/campaign.hpp"
#include "verify/campaign/kernel_result.hpp"

namespace attest {

/// A campaign as it stands on disk, so that it can go on after it was interrupted or killed.
struct CampaignState {
  std::string program{};                 ///< commit of the program that made it
  std::vector<std::string> arguments{};  ///< the command line that began it
  double seconds = 0;                    ///< spent so far
  bool is_finished = false;              ///< and its records are written
  std::vector<KernelResult> results{};
};

/// The file in a campaign's folder.
[[nodiscard]] std::filesystem::path campaign_state_path(const std::filesystem::path& folder);
/// Replaces the file in one step, after its data have reached the disk: whoever is killed while
/// writing leaves the state before. Throws MachineError with the path.
void write_campaign_state(const std::filesystem::path& folder, const CampaignState& state);
/// Reads only program, arguments, seconds and is_finished of a campaign's state. Throws
/// InvalidInput naming the file if there is none or it is none.
[[nodiscard]] CampaignState read_campaign_header(const std::filesystem::path& folder);
/// Reads the whole state of a campaign; the kernels must be registered. Throws as
/// read_campaign_header().
[[nodiscard]] CampaignState read_campaign_state(const std::filesystem::path& folder);

/// True if the campaign is finished and these options ask for nothing beyond it. A campaign that is
/// resumed may get more cases or more time than it was finished with.
[[nodiscard]] bool has_nothing_left(const CampaignState& state,
                                    const std::vector<const KernelInfo*>& kernels,
                                    const CampaignOptions& options);

}  // namespace attest
