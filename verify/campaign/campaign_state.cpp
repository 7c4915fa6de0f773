#include "verify/campaign/campaign_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text_file.hpp"

namespace attest {
namespace {

CampaignState read(const std::filesystem::path& folder, bool with_results) {
  const std::filesystem::path path = campaign_state_path(folder);
  std::ifstream file(path);
  if (!file) {
    throw InvalidInput(fmt::format("{}: no campaign to resume here; attest verify --out writes one",
                                   path.string()));
  }
  const std::string text{std::istreambuf_iterator<char>(file), {}};
  try {
    const Json json = parse_json(text);
    CampaignState state{.program = json.at("program"),
                        .arguments = json.at("arguments").get<std::vector<std::string>>(),
                        .seconds = json.at("seconds"),
                        .is_finished = json.at("is_finished")};
    if (with_results) {
      for (const Json& result : json.at("results")) {
        state.results.push_back(kernel_result_from_json(result));
      }
    }
    return state;
  } catch (const Json::exception& error) {
    throw InvalidInput(
        fmt::format("{}: not the state of a campaign ({})", path.string(), error.what()));
  }
}

}  // namespace

std::filesystem::path campaign_state_path(const std::filesystem::path& folder) {
  return folder / "campaign.json";
}

void write_campaign_state(const std::filesystem::path& folder, const CampaignState& state) {
  Json results = Json::array();
  for (const KernelResult& result : state.results) results.push_back(to_json(result));
  const Json json = {{"program", state.program},
                     {"arguments", state.arguments},
                     {"seconds", state.seconds},
                     {"is_finished", state.is_finished},
                     {"results", results}};
  write_whole_file(campaign_state_path(folder),
                   json.dump(1, ' ', false, Json::error_handler_t::replace) + "\n");
}

CampaignState read_campaign_header(const std::filesystem::path& folder) {
  return read(folder, false);
}

CampaignState read_campaign_state(const std::filesystem::path& folder) {
  return read(folder, true);
}

bool has_nothing_left(const CampaignState& state, const std::vector<const KernelInfo*>& kernels,
                      const CampaignOptions& options) {
  if (!state.is_finished) return false;
  if (options.time_limit) return state.seconds >= options.time_limit->count();
  return std::ranges::all_of(kernels, [&](const KernelInfo* kernel) {
    const auto result = std::ranges::find(state.results, kernel, &KernelResult::kernel);
    if (result == state.results.end()) return false;
    return result->failure || result->asked() >= cases_of_shard(*kernel, options);
  });
}

}  // namespace attest
