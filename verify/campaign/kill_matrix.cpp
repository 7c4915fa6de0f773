#include "verify/campaign/kill_matrix.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <optional>
#include <ranges>
#include <set>

#include "core/base/error.hpp"
#include "core/base/glob.hpp"
#include "core/base/on_threads.hpp"
#include "core/run/mutants.hpp"
#include "core/run/registry.hpp"
#include "verify/campaign/regressions.hpp"
#include "verify/cases/generators.hpp"
#include "verify/judge/law.hpp"

namespace attest {
namespace {

/// Once a mutant has hung for the full time limit, the next of its cases need not wait as long.
constexpr double seconds_for_a_known_hang = 0.5;

/// Cases of the campaigns that look for one kill of each mutant. Most bugs die in the first cases
/// that are drawn for them, and then get no more: those that live longer may. A bug that needs one
/// large size, or a rare feature, meets it in one case of a hundred or two; most such bugs are
/// planted in kernels of the CPU, where a case costs milliseconds.
constexpr std::int64_t campaign_cases = 500;
constexpr std::int64_t campaign_cases_on_cpu = 2000;

/// A case as the peers' own tests would choose its values: contiguous, or in shuffled pages.
Case with_usual_input(Case c) {
  c.problem.scale = default_scale(c.problem.head_dim);
  const Paging& paging = c.layouts.paging;
  Layouts usual;
  if (paging.is_used()) {
    usual.paging = {.page_size = paging.page_size, .shuffle_seed = paging.shuffle_seed};
  }
  c.layouts = usual;
  c.inputs.magnitude = 1;
  return c;
}

/// A case of a correct kernel, and what was said of the kernel in it. Mutants of one kernel share
/// it when they draw the same.
struct CorrectCase {
  const KernelInfo* kernel = nullptr;
  Case the_case;
  bool is_usual = false;
  std::set<std::string> named_laws{};  ///< that need further launches; always asked
  Judgement judgement{};
};

class Judge {
 public:
  explicit Judge(const KillMatrixOptions& options) : options_(options) {}

  KillMatrix run() {
    choose_kernels();
    std::vector<const KernelInfo*> mutants;
    for (const MatrixRow& row : matrix_.mutants) mutants.push_back(row.kernel);
    matrix_.campaign = kill_each(mutants, options_);
    draw_cases();
    if (options_.on_drawn) options_.on_drawn(std::ssize(correct_cases_) + std::ssize(drawn_));
    parallel(correct_cases_.size(), [&](std::size_t task, CaseRunner& runner) {
      CorrectCase& correct = correct_cases_[task];
      correct.judgement = judge(*correct.kernel, correct.the_case, correct, runner);
      count(row_of(matrix_.correct, *correct.kernel), correct, correct.the_case, correct.judgement,
            nullptr);
    });
    parallel(drawn_.size(), [&](std::size_t task, CaseRunner& runner) {
      MatrixRow& row = matrix_.mutants[drawn_[task].mutant];
      const CorrectCase& correct = correct_cases_[drawn_[task].correct_case];
      Case c = correct.the_case;
      c.kernel = row.kernel->name;
      c.plan = drawn_[task].plan;
      count(row, correct, c, judge(*row.kernel, c, correct, runner), &correct.judgement);
    });
    name_killing_features();
    matrix_.options = options_;
    return std::move(matrix_);
  }

 private:
  void choose_kernels() {
    for (const KernelInfo* mutant : mutants_of(options_)) {
      matrix_.mutants.push_back(row_for(*mutant));
      const KernelInfo* host = find_kernel(mutant->planted_in, mutant->executor);
      if (std::ranges::find(matrix_.correct, host, &MatrixRow::kernel) == matrix_.correct.end()) {
        matrix_.correct.push_back(row_for(*host));
      }
    }
  }

  [[nodiscard]] MatrixRow row_for(const KernelInfo& kernel) const {
    return {.kernel = &kernel,
            .columns = std::vector<Tally>(columns_),
            .on_normal = std::vector<Tally>(peers_)};
  }

  /// Draws for each mutant what a campaign draws for it: of a family it has some variants only. The
  /// case by which its campaign killed it is among them, however late it came.
  void draw_cases() {
    for (std::size_t mutant = 0; mutant < matrix_.mutants.size(); ++mutant) {
      const KernelResult& campaign = matrix_.campaign[mutant];
      for (std::int64_t i = 0; i < options_.cases; ++i) draw_case_of(mutant, i, false);
      if (campaign.failure && campaign.failing_case >= options_.cases) {
        draw_case_of(mutant, campaign.failing_case, false);
      }
      if (peers_ == 0) continue;  // nobody would judge the others
      for (std::int64_t i = 0; i < options_.normal_cases; ++i) {
        draw_case_of(mutant, options_.cases + i, true);
      }
    }
    for (const MatrixRow& row : matrix_.correct) {
      const std::int64_t correct_cases =
          row.kernel->executor == Executor::cpu
              ? options_.correct_cases
              : options_.correct_cases * campaign_cases / campaign_cases_on_cpu;
      for (std::int64_t i = options_.cases; i < correct_cases; ++i) {
        if (auto c = draw(*row.kernel, i, false)) {
          correct_cases_.push_back({.kernel = row.kernel, .the_case = *std::move(c)});
        }
      }
    }
  }

  void draw_case_of(std::size_t mutant, std::int64_t index, bool usual) {
    const KernelInfo& kernel = *matrix_.mutants[mutant].kernel;
    const KernelInfo& host = *find_kernel(kernel.planted_in, kernel.executor);
    const std::optional<Case> c = draw(kernel, index, usual);
    if (!c) return;
    // Of a family the mutant's variant may be one that the kernel has no Plan for: smaller, so that
    // short problems reach what is planted. The kernel then runs the nearest that it has.
    const std::optional<Case> correct = fitted_case(*c, host);
    if (!correct) return;
    const auto [at, is_new] = known_cases_.try_emplace(
        fmt::format("{} {}", usual, to_json(*correct)), correct_cases_.size());
    if (is_new) {
      correct_cases_.push_back({.kernel = &host, .the_case = *correct, .is_usual = usual});
    }
    drawn_.push_back({.mutant = mutant, .plan = c->plan, .correct_case = at->second});
    const Law* named = find_law(kernel.killed_by);
    if (named != nullptr && named->cost == Law::Cost::more_launches) {
      correct_cases_[at->second].named_laws.insert(named->name);
    }
  }

  static MatrixRow& row_of(std::vector<MatrixRow>& rows, const KernelInfo& kernel) {
    return *std::ranges::find(rows, &kernel, &MatrixRow::kernel);
  }

  [[nodiscard]] std::optional<Case> draw(const KernelInfo& kernel, std::int64_t index,
                                         bool usual) const {
    GeneratorOptions generator;
    if (usual) generator.families = "normal";
    const auto c = draw_case(kernel, generator, options_.seed, static_cast<std::uint64_t>(index));
    return c && usual ? std::optional(with_usual_input(*c)) : c;
  }

  [[nodiscard]] Judgement judge(const KernelInfo& kernel, const Case& c, const CorrectCase& correct,
                                CaseRunner& runner) {
    const CaseTask task{.executor = kernel.executor,
                        .the_case = c,
                        .laws = {.glob = fmt::format("{}", fmt::join(correct.named_laws, ","))},
                        .judges = correct.is_usual ? Judges::peers : Judges::all_rules};
    Judgement without_answer;  // any test program would have ended here
    without_answer.rejected.assign(columns_, true);
    try {
      runner.hurry(is_known_to_hang(kernel) ? seconds_for_a_known_hang : 0);
      const CaseAnswer answer = runner.run(kernel, task);
      if (answer.judgement) return *answer.judgement;
      if (answer.verdict.verdict == Verdict::timed_out) remember_hang(kernel);
      // The judge was late, not the kernel.
      if (answer.verdict.verdict == Verdict::vacuous) {
        return {.rejected = std::vector<bool>(columns_, false)};
      }
      without_answer.laws.emplace_back(name_of(answer.verdict.verdict));
    } catch (const KernelFault&) {
      without_answer.laws.emplace_back(name_of(Verdict::crashed));
    }
    return without_answer;
  }

  [[nodiscard]] bool is_known_to_hang(const KernelInfo& kernel) {
    const std::scoped_lock lock(mutex_);
    return hanging_.contains(&kernel);
  }

  void remember_hang(const KernelInfo& kernel) {
    const std::scoped_lock lock(mutex_);
    hanging_.insert(&kernel);
  }

  /// `c` is the correct case as this kernel ran it. `without_bug` is what the rules say of the
  /// kernel without the bug; null for that kernel itself.
  void count(MatrixRow& row, const CorrectCase& correct, const Case& c, const Judgement& judgement,
             const Judgement* without_bug) {
    const std::scoped_lock lock(mutex_);
    if (options_.on_case_done) options_.on_case_done();
    const bool usual = correct.is_usual;
    bool is_killed = false;
    ++(usual ? row.normal_cases : row.cases);
    for (std::size_t column = 0; column < columns_; ++column) {
      if (!judgement.rejected[column] || (usual && column >= peers_)) continue;
      Tally& tally = usual ? row.on_normal[column] : row.columns[column];
      ++tally.rejected;
      if (without_bug != nullptr && without_bug->rejected[column]) continue;
      ++tally.kills;
      ++tally.families[correct.the_case.inputs.family];
      is_killed = is_killed || column >= peers_;
    }
    if (!usual && without_bug != nullptr) row.features.add(features_of(*row.kernel, c), is_killed);
    for (const std::string& law : judgement.laws) ++row.laws[law];
  }

  void name_killing_features() {
    Coverage anywhere;
    for (std::size_t mutant = 0; mutant < matrix_.mutants.size(); ++mutant) {
      add_cases_before_a_late_kill(mutant);
      for (const auto& [name, tally] : matrix_.mutants[mutant].features.by_feature) {
        anywhere[name] += tally.cases;
      }
    }
    for (std::size_t mutant = 0; mutant < matrix_.mutants.size(); ++mutant) {
      MatrixRow& row = matrix_.mutants[mutant];
      const std::optional<Failure>& failure = matrix_.campaign[mutant].failure;
      if (!failure) continue;
      row.killing_feature =
          killing_feature(row.features, features_of(*row.kernel, failure->the_case), anywhere);
    }
  }

  /// One kill among few cases has many features by chance. The cases that the campaign ran before
  /// it had the others of them.
  void add_cases_before_a_late_kill(std::size_t mutant) {
    MatrixRow& row = matrix_.mutants[mutant];
    const KernelResult& campaign = matrix_.campaign[mutant];
    if (!campaign.failure || row.features.all.kills != 1) return;
    for (std::int64_t i = options_.cases; i < campaign.failing_case; ++i) {
      if (const auto c = draw(*row.kernel, i, false)) {
        row.features.add(features_of(*row.kernel, *c), false);
      }
    }
  }

  /// Calls work(task, runner of the thread) for every task, on `jobs` threads.
  template <typename Work>
  void parallel(std::size_t tasks, const Work& work) {
    on_threads(tasks, static_cast<std::size_t>(std::max(1, options_.jobs)), [&] {
      const std::shared_ptr<CaseRunner> runner =
          options_.make_runner ? options_.make_runner() : std::make_unique<InProcessRunner>();
      return [&work, runner](std::size_t task) { work(task, *runner); };
    });
  }

  const KillMatrixOptions& options_;
  const std::size_t peers_ = peer_columns(*options_.operation);
  const std::size_t columns_ = matrix_columns(*options_.operation);
  KillMatrix matrix_;
  std::vector<CorrectCase> correct_cases_;
  struct Drawn {
    std::size_t mutant;
    Plan plan;
    std::size_t correct_case;
  };
  std::map<std::string, std::size_t> known_cases_;
  std::vector<Drawn> drawn_;
  std::set<const KernelInfo*> hanging_;
  std::mutex mutex_;
};

}  // namespace

std::vector<const KernelInfo*> mutants_of(const KillMatrixOptions& options) {
  if (const std::string reason = why_no_mutants(); !reason.empty())
    throw InvalidInput("mutants: " + reason);
  std::vector<std::string> names;
  std::vector<const KernelInfo*> mutants;
  for (const KernelInfo& kernel : all_kernels()) {
    if (kernel.role != KernelRole::mutant) continue;
    names.push_back(kernel.name);
    const bool is_of_operation =
        options.operation == nullptr || kernel.operation == options.operation;
    if (is_of_operation && matches_glob(kernel.name, options.kernels)) mutants.push_back(&kernel);
  }
  require_matches({"--kernel", "mutant", "attest list mutants"}, options.kernels, names);
  if (mutants.empty()) {
    throw InvalidInput(fmt::format(
        "--kernel '{}' matches no mutant{}; see attest list mutants", options.kernels,
        options.operation == nullptr ? ""
                                     : fmt::format(" of operation {}", options.operation->name)));
  }
  return mutants;
}

std::vector<KernelResult> kill_each(const std::vector<const KernelInfo*>& mutants,
                                    const KillMatrixOptions& options) {
  CampaignOptions campaign;
  campaign.cases_per_kernel = std::max(campaign_cases_on_cpu, options.cases);
  campaign.cases_per_simt_kernel = std::max(campaign_cases, options.cases);
  campaign.seed = options.seed;
  campaign.jobs = options.jobs;
  campaign.shrink.calls = options.shrink_calls;
  campaign.make_runner = options.make_runner;
  campaign.shrink.candidate_seconds = seconds_for_a_known_hang;
  campaign.shrink.seconds_without_answer = 15;
  return run_campaign(mutants, campaign);
}

std::string to_kill_lines(const std::vector<KernelResult>& results) {
  std::string lines;
  for (const KernelResult& result : results) {
    if (!result.is_as_expected()) continue;
    const std::string name = result.kernel->name.substr(std::string_view("mutant/").size());
    lines += fmt::format("{}\t{}\t{}\n", name, result.kernel->killed_by, result.failing_case);
  }
  return lines;
}

bool MatrixRow::is_killed_by_us() const {
  return std::ranges::any_of(columns | std::views::drop(on_normal.size()),
                             [](const Tally& tally) { return tally.kills > 0; });
}

bool KillMatrix::is_as_expected() const {
  return std::ranges::all_of(mutants, &MatrixRow::is_killed_by_us) &&
         std::ranges::none_of(correct, &MatrixRow::is_killed_by_us) &&
         std::ranges::all_of(campaign, &KernelResult::is_as_expected);
}

KillMatrix make_kill_matrix(const KillMatrixOptions& options) {
  (void)all_kernels();  // sorts on first use: not something for several threads
  return Judge(options).run();
}

}  // namespace attest
