#pragma once

#include <CLI/CLI.hpp>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cli/output.hpp"
#include "core/base/error.hpp"
#include "core/records/record.hpp"
#include "core/run/ranks.hpp"
#include "verify/campaign/campaign.hpp"
#include "verify/campaign/kernel_result.hpp"
#include "verify/campaign/large.hpp"
#include "verify/campaign/shared_campaign.hpp"
#include "verify/workers/isolated_runner.hpp"

namespace attest {
/// Options of `attest verify`.
struct VerifyOptions {
  std::string kernels = "*";
  std::string executor = "auto";
  std::string operation;             ///< empty: all
  std::vector<std::string> plugins;  ///< without --kernel only theirs are verified
  bool names_kernels = false;
  bool is_large = false;
  bool has_cases = false;  ///< --cases was given
  bool has_jobs = false;   ///< --jobs was given
  bool has_shard = false;  ///< --shard was given
  bool is_thorough = false;
  std::string inputs_file;
  std::string time_limit;
  std::string lengths = to_string(LengthWeights{});
  std::string shard = "1/1";
  std::string timeout = "60s";
  std::string memory_limit = "8GiB";
  std::string minimize;
  std::filesystem::path out = "out";
  std::string junit, sarif;  ///< files; empty: none
  bool prints_json = false;
  bool names_coverage = false;
  bool in_process = false;
  bool resumes = false;
  bool without_regressions = false;
  bool is_strict = false;
  CampaignOptions campaign;

  /// Setup of a worker: what it loads.
  [[nodiscard]] WorkerSetup setup() const;
  /// Isolation of workers by the options. Throws InvalidInput for a time-out or memory limit that
  /// is none.
  [[nodiscard]] Isolation isolation() const;
};

void add_verify_options(CLI::App& command, VerifyOptions& options);

/// Sets names_kernels and what was given, after parsing.
void note_typed_options(const CLI::App& command, VerifyOptions& options);

/// Throws InvalidInput where several options say how many cases there are.
void require_one_number(const VerifyOptions& options);

/// Throws InvalidInput where a file for a CI is asked for and no campaign is.
void require_a_campaign_for_files(const VerifyOptions& options);

/// The options that were typed, one string each, so that parse_verify_options reads them again.
[[nodiscard]] std::vector<std::string> typed_options(const CLI::App& command);
/// Options of arguments as typed_options() gives them. Throws InvalidInput for options that this
/// program does not know.
[[nodiscard]] VerifyOptions parse_verify_options(const std::vector<std::string>& typed);

/// The options of an interrupted campaign, with those that may change when it is resumed taken
/// from `now`. `typed` are the options of now; others among them than those that may change throw
/// InvalidInput.
[[nodiscard]] VerifyOptions resumed_options(const VerifyOptions& now,
                                            const std::vector<std::string>& typed,
                                            const std::vector<std::string>& typed_then);

/// `attest verify --large`: runs, prints the table, writes records and counterexamples below `out`.
[[nodiscard]] ExitCode verify_large(const std::vector<const KernelInfo*>& kernels,
                                    LargeOptions options, const std::filesystem::path& out,
                                    const std::string& inputs_file);

/// Rank of this process; nothing without a launcher of several, or with --shard. A rank takes its
/// GPU, by CUDA_VISIBLE_DEVICES: CUDA looks at it once, so this comes before anything asks for a
/// GPU. Throws InvalidInput for what ranks cannot share.
[[nodiscard]] std::optional<Rank> take_rank(VerifyOptions& options);
/// Does this rank's part of the campaign. Returns the exit code of a rank that is done then, after
/// a line that says so; nothing for the one that goes on with `state`, which holds what all ranks
/// found: to shrink, to write, to report.
[[nodiscard]] std::optional<ExitCode> work_as_rank(const Rank& rank, SharedCampaign& shared,
                                                   const VerifyOptions& options,
                                                   const std::vector<const KernelInfo*>& kernels,
                                                   CampaignState& state);

/// One line a kernel: cases, checks by layer, how much of the bounds was used, and the verdict with
/// the law and layer that decided. Columns that are 0 everywhere (vacuous, crashed, timed out) are
/// left out. Of a campaign that is not complete a kernel with cases left to judge has no verdict.
void print_table(const std::vector<KernelResult>& results, const CampaignOptions& campaign,
                 bool is_complete);
/// Origin of a failure, of the case with this index in a campaign: `case 7`, or the stored one.
[[nodiscard]] std::string origin_of(std::int64_t failing_case,
                                    const std::vector<Regression>& regressions);
/// Prints, for each kernel, what was refused, fell short of a pass or was never judged; of many
/// kernels only how many were not judged in all that they claim, unless with `names_coverage`.
void print_shortfalls(const std::vector<KernelResult>& results, bool names_coverage);
/// Files of counterexamples by the failure, which is one of the results'.
using Counterexamples = std::map<const Failure*, std::filesystem::path>;
/// Writes the counterexample of every failure, once; `trouble` gets what could not be written.
[[nodiscard]] Counterexamples keep_counterexamples(const std::vector<KernelResult>& results,
                                                   const VerifyOptions& options, Trouble& trouble);
/// The line that says how to replay it; empty where it could not be written.
[[nodiscard]] std::string replay_of(const Failure& failure, const Counterexamples& kept);
/// Writes --junit: a suite for each kernel and executor, a case for each layer of laws. Failed is a
/// failure; crashed and timed out are errors; what is inconclusive or was not asked is skipped.
/// Throws MachineError with path and reason.
void write_junit(const std::vector<KernelResult>& results, const VerifyOptions& options,
                 const Counterexamples& kept);
/// Writes --junit and --sarif, and prints annotations where a workflow of GitHub runs this.
/// `trouble` gets what could not be written.
void write_for_ci(const std::vector<KernelResult>& results, const VerifyOptions& options,
                  const Counterexamples& kept, Trouble& trouble);
/// Failures with their evidence and how to replay them, of planted bugs and negative controls or of
/// the others.
void print_failures(const std::vector<KernelResult>& results, const VerifyOptions& options,
                    bool planted, const Counterexamples& kept);
/// Failures that are known findings, with the report and the smallest case; findings that did not
/// show; and how many cases they were.
void print_known_findings(const std::vector<KernelResult>& results, const VerifyOptions& options,
                          const Counterexamples& kept);
/// Cases, time, where the time went, what the oracle said of the reference, and which features the
/// cases had; all that they had not with `names_coverage`, otherwise a line.
void print_summary(const std::vector<KernelResult>& results, double seconds, bool names_coverage);

/// `seconds` is the wall time of the whole campaign.
[[nodiscard]] Record record_of(const KernelResult& result, const VerifyOptions& options,
                               double seconds, const Provenance& provenance);

}  // namespace attest
