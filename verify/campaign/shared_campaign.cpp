#include "verify/campaign/shared_campaign.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <map>
#include <system_error>
#include <thread>
#include <utility>

#include "core/base/error.hpp"
#include "core/base/json.hpp"
#include "core/base/text_file.hpp"
#include "core/run/registry.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
namespace {

// Of one kernel: a second or two of work, so that unequal processes end together, and what a
// killed one takes along is little.
constexpr std::int64_t tasks_a_chunk = 8;
constexpr auto between_looks = std::chrono::milliseconds(50);
constexpr auto never_failed = std::numeric_limits<std::int64_t>::max();

std::filesystem::path chunks_in(const std::filesystem::path& folder) {
  return folder / "chunks";
}

/// The number that the name of a file in the folder begins with: of the result of a chunk, or of
/// the claim to one.
std::optional<std::int64_t> number_of(const std::filesystem::path& file) {
  const std::string name = file.filename().string();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || end == name.data() + name.size() || *end != '.') return std::nullopt;
  return number;
}

/// Files of the folder by number, of those whose name has the part.
std::multimap<std::int64_t, std::filesystem::path> files_with(const std::filesystem::path& folder,
                                                              std::string_view part) {
  std::multimap<std::int64_t, std::filesystem::path> found;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const auto number = number_of(entry.path());
    if (!number || entry.path().filename().string().find(part) == std::string::npos) continue;
    found.emplace(*number, entry.path());
  }
  return found;
}

bool shares_tasks(const DoneTasks& done, const DoneTasks& others) {
  for (std::int64_t task = 0; task < others.below; ++task) {
    if (done.contains(task)) return true;
  }
  return std::ranges::any_of(others.beyond, [&](std::int64_t task) { return done.contains(task); });
}

std::vector<std::string> names_of(const std::vector<KernelResult>& results) {
  std::vector<std::string> names;
  for (const KernelResult& result : results) {
    names.push_back(fmt::format("{} on {}", result.kernel->name, name_of(result.kernel->executor)));
  }
  return names;
}

void require_alike(const CampaignState& begun, const CampaignState& mine,
                   const std::filesystem::path& path) {
  const auto require = [&](const std::string& then, const std::string& now, const char* what) {
    if (then == now) return;
    throw InvalidInput(
        fmt::format("{}: begun {} '{}', here it is '{}'; allowed: the same, for ranks share one "
                    "campaign, or another --out",
                    path.string(), what, then, now));
  };
  require(begun.program, mine.program, "by the program of commit");
  require(fmt::format("{}", fmt::join(begun.arguments, " ")),
          fmt::format("{}", fmt::join(mine.arguments, " ")), "with the options");
  require(fmt::format("{}", fmt::join(names_of(begun.results), ", ")),
          fmt::format("{}", fmt::join(names_of(mine.results), ", ")), "with the kernels");
}

}  // namespace

SharedCampaign::SharedCampaign(const std::filesystem::path& folder,
                               const std::vector<const KernelInfo*>& kernels,
                               const CampaignOptions& options)
    : folder_(folder),
      chunks_(chunks_in(folder)),
      kernels_(kernels),
      options_(options),
      claims_(chunks_),
      failed_in_(kernels.size(), never_failed) {}

CampaignState SharedCampaign::join(CampaignState mine) {
  mine.results.clear();
  for (const KernelInfo* kernel : kernels_) {
    mine.results.emplace_back().kernel = kernel;
  }
  const std::filesystem::path path = campaign_state_path(folder_);
  while (!std::filesystem::exists(path)) {
    if (!claims_.take("begin")) {
      std::this_thread::sleep_for(between_looks);
      continue;
    }
    if (!std::filesystem::exists(path)) write_campaign_state(folder_, mine);
    claims_.give_back("begin");
  }
  CampaignState begun = read_campaign_state(folder_);
  require_alike(begun, mine, path);
  return begun;
}

Share SharedCampaign::take_part() {
  (void)all_kernels();  // sorts on first use: not something for several threads
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < std::max(1, options_.jobs); ++i) threads.emplace_back([this] { work(); });
  }
  if (error_) std::rethrow_exception(error_);
  while (!is_interrupted() && are_others_at_work()) std::this_thread::sleep_for(between_looks);
  share_.seconds = seconds();
  share_.is_interrupted = is_interrupted();
  if (share_.is_interrupted || !claims_.take("report")) return share_;
  // Another may have reported just now.
  if (has_nothing_left(read_campaign_state(folder_), kernels_, options_)) return share_;
  std::vector<KernelResult> whole;
  for (const KernelInfo* kernel : kernels_) whole.emplace_back().kernel = kernel;
  absorb_chunks(folder_, whole);
  share_.whole = std::move(whole);
  return share_;
}

double SharedCampaign::seconds() const {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
}

bool SharedCampaign::is_interrupted() const {
  return options_.is_interrupted && options_.is_interrupted();
}

bool SharedCampaign::is_over() const {
  return stop_ || is_interrupted() ||
         (options_.time_limit && seconds() > options_.time_limit->count());
}

void SharedCampaign::work() {
  try {
    const std::unique_ptr<CaseRunner> runner =
        options_.make_runner ? options_.make_runner() : std::make_unique<InProcessRunner>();
    while (const auto chunk = next()) judge(*chunk, *runner);
  } catch (const Interrupted&) {
    // The chunk is not done, and its claim is given back at the end.
  } catch (...) {
    const std::scoped_lock lock(mutex_);
    if (!error_) error_ = std::current_exception();
    stop_ = true;
  }
}

void SharedCampaign::judge(std::int64_t chunk, CaseRunner& runner) {
  const std::int64_t count = std::ssize(kernels_);
  const KernelInfo& kernel = *kernels_[static_cast<std::size_t>(chunk % count)];
  const std::int64_t begin = chunk / count * tasks_a_chunk;
  CampaignOptions options = options_;
  if (options.time_limit) *options.time_limit -= std::chrono::duration<double>(seconds());
  const KernelResult result =
      judge_tasks(kernel, options, {.begin = begin, .end = begin + tasks_a_chunk}, runner);
  if (!is_interrupted()) {  // what was cut short is nobody's
    write_whole_file(path_of(chunk, result.failure.has_value()),
                     to_json(result).dump(-1, ' ', false, Json::error_handler_t::replace));
    const std::scoped_lock lock(mutex_);
    ++share_.chunks;
    share_.cases += result.cases;
  }
  claims_.give_back(std::to_string(chunk));
}

std::optional<std::int64_t> SharedCampaign::next() {
  while (!is_over()) {
    bool is_any_left = false;
    if (const auto chunk = take_one(is_any_left)) return chunk;
    if (!is_any_left) return std::nullopt;
    std::this_thread::sleep_for(between_looks);  // others are at them; one of them may die
  }
  return std::nullopt;
}

std::optional<std::int64_t> SharedCampaign::take_one(bool& is_any_left) {
  const std::scoped_lock lock(mutex_);
  const std::int64_t count = std::ssize(kernels_);
  std::int64_t rounds = 0;
  for (const KernelInfo* kernel : kernels_) {
    const std::int64_t tasks = tasks_of(*kernel, options_).value_or(never_failed / count / 2);
    rounds = std::max(rounds, (tasks + tasks_a_chunk - 1) / tasks_a_chunk);
  }
  for (std::int64_t chunk = first_open_; chunk < rounds * count && !is_over(); ++chunk) {
    if (!is_open(chunk)) {
      if (chunk == first_open_) closed_.erase(first_open_++);
      continue;
    }
    is_any_left = true;
    const std::string name = std::to_string(chunk);
    if (!claims_.take(name)) continue;
    if (is_open(chunk)) return chunk;
    claims_.give_back(name);  // its owner ended just now
  }
  return std::nullopt;
}

bool SharedCampaign::is_open(std::int64_t chunk) {
  if (chunk < first_open_ || closed_.contains(chunk)) return false;
  const std::int64_t count = std::ssize(kernels_);
  const auto k = static_cast<std::size_t>(chunk % count);
  const std::int64_t round = chunk / count;
  if (round > failed_in_[k]) return false;
  const auto tasks = tasks_of(*kernels_[k], options_);
  if (tasks && round * tasks_a_chunk >= *tasks) return false;
  const bool has_failed = std::filesystem::exists(path_of(chunk, true));
  if (has_failed) failed_in_[k] = round;
  if (!has_failed && !std::filesystem::exists(path_of(chunk, false))) return true;
  closed_.insert(chunk);
  return false;
}

bool SharedCampaign::are_others_at_work() {
  const std::scoped_lock lock(mutex_);
  const auto claims = files_with(chunks_, ".claim");
  return std::ranges::any_of(claims, [&](const auto& claim) {
    return is_open(claim.first) && claims_.is_held(std::to_string(claim.first));
  });
}

std::filesystem::path SharedCampaign::path_of(std::int64_t chunk, bool has_failed) const {
  return chunks_ / fmt::format("{}.{}.json", chunk, has_failed ? "failed" : "judged");
}

void absorb_chunks(const std::filesystem::path& folder, std::vector<KernelResult>& results) {
  constexpr std::size_t most_bytes = 64 << 20;
  for (const auto& [number, path] : files_with(chunks_in(folder), ".json")) {
    if (path.extension() != ".json") continue;  // one that a killed process had not finished
    const KernelResult chunk =
        kernel_result_from_json(parse_json(read_text_file(path, most_bytes)));
    const auto same = std::ranges::find(results, chunk.kernel, &KernelResult::kernel);
    // A kernel that failed gets no later cases.
    if (same == results.end() || same->failure || shares_tasks(same->done, chunk.done)) continue;
    same->absorb(chunk);
  }
}

void remove_chunks(const std::filesystem::path& folder) {
  std::error_code ignored;
  std::filesystem::remove_all(chunks_in(folder), ignored);
}

}  // namespace attest
