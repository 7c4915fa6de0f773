#include "experiments/timing/sampled_rows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <future>
#include <map>
#include <span>
#include <string_view>
#include <utility>

#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/select.hpp"
#include "cpu_reference/reference.hpp"
#include "experiments/timing/sampled_heads.hpp"
#include "experiments/timing/sampled_lists.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed_rows = 4;
constexpr std::size_t most_rows_at_a_time = 8;
/// Up to here every row is compared: about a tenth of a second of an H200 for O, some three for
/// gradients (gpu/reference/README.md).
constexpr double most_reference_work_gpu = 0x1p36, most_reference_work_executor = 0x1p20;

/// reference_work() with partial tiles counted whole: the device reference takes 64 queries at
/// once.
double work_in_tiles(const Problem& problem) {
  constexpr std::int64_t tile = 64;
  const std::int64_t queries = std::max<std::int64_t>(problem.query_len, 1);
  const std::int64_t tiles = (queries + tile - 1) / tile;
  return reference_work(problem) * static_cast<double>(tiles * tile) / static_cast<double>(queries);
}

/// A query or a key whose rows of the outputs are compared.
struct Place {
  Rows kind = Rows::queries;
  std::int64_t entry = 0, head = 0, row = 0;
};
/// It as a problem of its own: one query that sees all of its keys, or one key that all of its
/// rows see, those of all query heads that share it.
struct OneRow {
  Problem problem{};
  Inputs inputs{};
};
/// Heads of inputs that are made, brought from the device.
using MadeHeads = std::map<std::pair<std::size_t, std::int64_t>, std::vector<float>>;

std::string sentence(std::string_view tensor, const Shape& at, double got, double want,
                     double bound) {
  return fmt::format("{} at {} is {:.9g}, want {:.9g} within {:.3g}", tensor, to_string(at), got,
                     want, bound);
}

/// The first and the last query or key among them: masks and tails go wrong at the ends.
std::vector<Place> sampled_places(const Problem& problem, Rows kind, std::int64_t rows) {
  const bool is_query = kind == Rows::queries;
  const auto length_of = [&](std::int64_t entry) {
    return is_query ? problem.query_len_of(entry) : problem.key_len_of(entry);
  };
  std::vector<Place> places;
  for (std::int64_t number = 0; number < rows; ++number) {
    const auto draw = [&](std::uint64_t axis, std::int64_t below) {
      return random_below(seed_rows, axis, static_cast<std::uint64_t>(number), below);
    };
    std::int64_t entry = draw(0, problem.batch), without = 0;
    for (; length_of(entry) == 0 && without < problem.batch; ++without) {
      entry = (entry + 1) % problem.batch;
    }
    const std::int64_t length = length_of(entry);
    if (length == 0) break;  // there is no row at all
    const std::int64_t row = number == 0 ? 0 : number == 1 ? length - 1 : draw(2, length);
    const std::int64_t heads = is_query ? problem.query_heads : problem.kv_heads;
    places.push_back({kind, entry, draw(1, heads), row});
  }
  return places;
}

MadeHeads made_heads(const ResidentProblem& resident, const Place& place) {
  const Problem& problem = resident.problem();
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  const bool is_query = place.kind == Rows::queries;
  const std::int64_t first = is_query ? place.head : place.head * group;
  MadeHeads heads;
  for (std::size_t i = 0; i < problem.operation->inputs().size(); ++i) {
    if (!has_tensor(problem, InputIndex{i}) || !resident.is_made({i})) continue;
    for (std::int64_t head = first; head < first + (is_query ? 1 : group); ++head) {
      heads[{i, head}] = resident.head_of({i}, place.entry, head);
    }
  }
  return heads;
}

OneRow row_at(const ResidentProblem& resident, const Place& place, const MadeHeads& made) {
  const Problem& problem = resident.problem();
  const std::int64_t group = problem.query_heads / problem.kv_heads;
  std::vector<std::pair<std::int64_t, std::int64_t>> queries;  // head and row
  std::vector<std::int64_t> keys;
  std::int64_t kv_head = place.head;
  if (place.kind == Rows::queries) {
    kv_head = problem.kv_head_of(place.head);
    queries.emplace_back(place.head, place.row);
    keys = visible_keys_of(problem, place.entry, place.row);
  } else {
    keys.push_back(place.row);
    for (std::int64_t h = kv_head * group; h < (kv_head + 1) * group; ++h) {
      for (std::int64_t i = 0; i < problem.query_len_of(place.entry); ++i) {
        if (problem.sees(place.entry, i, place.row)) queries.emplace_back(h, i);
      }
    }
  }
  OneRow row{.problem = problem};
  Problem& one = row.problem;
  one.batch = one.query_heads = one.kv_heads = 1;
  one.query_len = static_cast<std::int64_t>(queries.size());
  one.key_len = static_cast<std::int64_t>(keys.size());
  one.mask = Mask::none;
  one.window = {};
  take_away_seeds(one);
  one.shared_keys = 0;
  const Operation& operation = *problem.operation;
  for (std::size_t number = 0; number < operation.inputs().size(); ++number) {
    const InputIndex input{number};
    const TensorSpec& tensor = operation[input];
    Tensor<float>& to = row.inputs[input] = Tensor<float>(tensor.shape(one));
    if (to.size() == 0) continue;
    // A number a query head, of all entries.
    const bool is_of_scores =
        tensor.rows == Rows::neither && tensor.draw != nullptr && !tensor.is_of_pairs;
    if (is_of_scores) {
      resident.copy_row(input, 0, place.head, 0, to.row(0, 0, 0));
      continue;
    }
    if (tensor.is_of_pairs) {  // of the keys that are seen, which follow each other
      const Shape whole = tensor.shape(problem);
      std::vector<float> of_all(static_cast<std::size_t>(whole[3]));
      resident.copy_row(input, std::min(place.entry, whole[0] - 1),
                        std::min(place.head, whole[1] - 1), place.row, of_all);
      std::ranges::transform(keys, to.row(0, 0, 0).begin(), [&](std::int64_t key) {
        return of_all[static_cast<std::size_t>(key)];
      });
      continue;
    }
    for (std::int64_t n = 0; n < to.shape()[2]; ++n) {
      const auto at = static_cast<std::size_t>(n);
      // Scales: of a head, or of the first rows, where these are the ones that are seen.
      const auto [head, from] = tensor.rows == Rows::queries ? queries[at]
                                : tensor.rows == Rows::keys  ? std::pair(kv_head, keys[at])
                                                             : std::pair(kv_head, n);
      const auto row_of_one = to.row(0, 0, n);
      if (const auto found = made.find({number, head}); found != made.end()) {
        const auto begin = found->second.begin() + from * to.shape()[3];
        std::copy_n(begin, to.shape()[3], row_of_one.begin());
      } else {
        resident.copy_row(input, place.entry, head, from, row_of_one);
      }
    }
  }
  return row;
}

}  // namespace

std::optional<std::string> SampledRows::why_wrong() const {
  if (!failure.empty()) return failure;
  for (const Row& row : rows) {
    for (std::size_t i = 0; i < row.got.size(); ++i) {
      const OutputIndex output{i};
      if (row.got[output].values().empty()) continue;
      const Comparison comparison =
          compare(row.got[output], row.answer[output].value, row.answer[output].bound);
      if (comparison.is_within()) continue;
      const WorstElement& worst = comparison.worst;
      return sentence((*operation)[output].label,
                      Shape{row.at[0], row.at[1], row.at[2] + worst.index[2], worst.index[3]},
                      worst.got, worst.want, worst.bound);
    }
  }
  return std::nullopt;
}

namespace {

/// Launches on poisoned outputs; says why that failed.
std::optional<std::string> launch_failure(ResidentProblem& resident, const KernelInfo& kernel,
                                          const Plan& plan) {
  resident.poison_outputs();
  try {
    resident.launch(kernel, plan);
    resident.device().synchronize();
  } catch (const KernelError& error) {
    return error.what();
  } catch (const MachineError& error) {  // what the device is worth now nobody knows
    throw MachineError(fmt::format("{} {} of {}: {}", kernel.name, to_string(plan),
                                   to_string(resident.problem()), error.what()));
  }
  return std::nullopt;
}

}  // namespace

SampledRows launch_and_sample(ResidentProblem& resident, const KernelInfo& kernel, const Plan& plan,
                              std::int64_t rows) {
  if (auto failure = launch_failure(resident, kernel, plan)) {
    return {.rows = {}, .failure = *std::move(failure)};
  }
  return sample_rows(resident, kernel, plan, rows);
}

SampledRows sample_rows(ResidentProblem& resident, const KernelInfo& kernel, const Plan& plan,
                        std::int64_t count) {
  const Problem& problem = resident.problem();
  const Operation& operation = *problem.operation;
  if (&operation == &quantise_operation) return sample_heads(resident, kernel, plan, count);
  if (&operation == &select_operation) return sample_lists(resident, kernel, plan, count);
  SampledRows sampled;
  sampled.operation = &operation;
  std::vector<Rows> kinds;
  for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
    const TensorSpec& tensor = operation[OutputIndex{i}];
    if (!kernel.gives(OutputIndex{i}) || !has_tensor(problem, OutputIndex{i})) continue;
    if (tensor.rows == Rows::neither) continue;  // of all rows of a head together
    if (std::ranges::find(kinds, tensor.rows) == kinds.end()) kinds.push_back(tensor.rows);
    if (tensor.is_strided) continue;
    const std::vector<float> all = resident.all_of({i});  // one number a row
    const auto unwritten = std::ranges::find_if(all, [](float x) { return std::isnan(x); });
    if (unwritten == all.end()) continue;
    sampled.failure = fmt::format("{} of row {} was not written or is NaN", tensor.label,
                                  unwritten - all.begin());
    return sampled;
  }
  for (std::size_t i = 0; i < operation.inputs().size(); ++i) {
    if (!has_tensor(problem, InputIndex{i}) || !resident.is_made({i})) continue;
    resident.put_values_again();
    break;
  }
  const Roundings roundings = kernel.precision(problem, plan);
  std::vector<std::future<SampledRows::Row>> rows;
  for (const Rows kind : kinds) {
    for (const Place& place : sampled_places(problem, kind, count)) {
      SampledRows::Row row{.kind = kind, .at = {place.entry, place.head, place.row, 0}};
      for (std::size_t i = 0; i < operation.outputs().size(); ++i) {
        const OutputIndex output{i};
        row.got[output] = {};
        if (operation[output].rows != kind || !kernel.gives(output)) continue;
        if (!has_tensor(problem, output)) continue;
        const std::vector<float> got = resident.row_of(output, place.entry, place.head, place.row);
        row.got[output] = Tensor<float>(Shape{1, 1, 1, static_cast<std::int64_t>(got.size())});
        std::ranges::copy(got, row.got[output].values().begin());
      }
      // A row of a long problem holds all of its keys: few at a time.
      if (rows.size() >= most_rows_at_a_time + sampled.rows.size()) {
        sampled.rows.push_back(rows[sampled.rows.size()].get());
      }
      // Where no thread can be had, get() does the work.
      rows.push_back(std::async(
          std::launch::async | std::launch::deferred,
          [&resident, place, &operation, &roundings, made = made_heads(resident, place),
           row = std::move(row)]() mutable {
            const OneRow one = row_at(resident, place, made);
            row.answer = reference_of(operation).exact(one.problem, one.inputs, roundings);
            return std::move(row);
          }));
    }
  }
  while (sampled.rows.size() < rows.size()) {
    sampled.rows.push_back(rows[sampled.rows.size()].get());
  }
  return sampled;
}

bool compares_every_row(const ResidentProblem& resident, const KernelInfo& kernel,
                        const Plan& plan) {
  const Problem& problem = resident.problem();
  const DeviceReference* const reference =
      find_device_reference(*problem.operation, kernel.executor);
  const double most_work =
      kernel.executor == Executor::gpu ? most_reference_work_gpu : most_reference_work_executor;
  return reference != nullptr && reference->covers(problem, kernel.precision(problem, plan)) &&
         work_in_tiles(problem) <= most_work;
}

std::optional<std::string> why_any_row_wrong(ResidentProblem& resident, const KernelInfo& kernel,
                                             const Plan& plan) {
  const Problem& problem = resident.problem();
  const Operation& operation = *problem.operation;
  resident.put_values_again();
  const WorstOutputs worst =
      find_device_reference(operation, kernel.executor)
          ->check_resident(resident.device(), problem, resident.inputs_on_device(),
                           kernel.precision(problem, plan), resident.outputs_on_device());
  for (std::size_t i = 0; i < worst.size(); ++i) {
    const OutputIndex output{i};
    const WorstOutput& of = worst[output];
    if (!kernel.gives(output) || within(1.0, of.ratio)) continue;
    return sentence(operation[output].label, of.index, of.got, of.want, of.bound);
  }
  return std::nullopt;
}

std::optional<std::string> why_launch_wrong(ResidentProblem& resident, const KernelInfo& kernel,
                                            const Plan& plan) {
  // Of so few rows a GPU compares all sooner than a CPU answers four, whose keys may be many.
  constexpr double few_rows = 0x1p14;
  const Problem& problem = resident.problem();
  const double rows = work_in_tiles(problem) /
                      std::max<double>(1, static_cast<double>(problem.key_len * problem.head_dim));
  if (kernel.executor != Executor::gpu || rows > few_rows ||
      !compares_every_row(resident, kernel, plan)) {
    return launch_and_sample(resident, kernel, plan).why_wrong();
  }
  if (auto failure = launch_failure(resident, kernel, plan)) return failure;
  return why_any_row_wrong(resident, kernel, plan);
}

}  // namespace attest
