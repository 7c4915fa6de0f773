#include "experiments/tuning/resident_problem.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <span>

#include "core/attention/storage.hpp"
#include "core/base/error.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

constexpr std::uint64_t seed_rows = 4;
constexpr std::size_t most_rows_at_a_time = 8;

std::size_t elements_of(const Shape& shape) {
  return static_cast<std::size_t>(shape[0] * shape[1] * shape[2] * shape[3]);
}

/// Memory that no launch has written. By doubling: an element at a time takes longer than a launch.
std::vector<std::byte> poison(ElementType type, std::size_t elements) {
  const std::size_t size = format_of(type).size_bytes;
  const std::uint32_t bits = poison_bits(type);
  std::vector<std::byte> bytes(elements * size);
  if (bytes.empty()) return bytes;
  std::memcpy(bytes.data(), &bits, size);
  for (std::size_t done = size; done < bytes.size(); done *= 2) {
    std::memcpy(&bytes[done], bytes.data(), std::min(done, bytes.size() - done));
  }
  return bytes;
}

std::vector<float> decoded(ElementType type, std::span<const std::byte> bytes) {
  const std::size_t size = format_of(type).size_bytes;
  std::vector<float> values(bytes.size() / size);
  for (std::size_t i = 0; i < values.size(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, &bytes[i * size], size);
    values[i] = decode(type, bits);
  }
  return values;
}

}  // namespace

std::optional<std::string> SampledRows::why_wrong() const {
  if (!failure.empty()) return failure;
  for (const Row& row : rows) {
    for (const auto& [name, comparison] :
         {std::pair("O", compare(row.got[forward::o], row.answer[forward::o].value,
                                 row.answer[forward::o].bound)),
          std::pair("LSE", compare(row.got[forward::lse], row.answer[forward::lse].value,
                                   row.answer[forward::lse].bound))}) {
      if (comparison.is_within()) continue;
      const WorstElement& worst = comparison.worst;
      return fmt::format("{} at {} is {:.9g}, want {:.9g} within {:.3g}", name,
                         to_string(Shape{row.at[0], row.at[1], row.at[2], worst.index[3]}),
                         worst.got, worst.want, worst.bound);
    }
  }
  return std::nullopt;
}

ResidentProblem::ResidentProblem(const Problem& problem, const InputSpec& inputs, Device& device)
    : problem_(problem), inputs_(tiled_inputs(problem, inputs)), device_(device) {
  const Shape q = stored_shape(problem, forward::q), k = stored_shape(problem, forward::k),
              v = stored_shape(problem, forward::v), o = stored_shape(problem, forward::o),
              lse = stored_shape(problem, forward::lse);
  const auto upload = [&](const Shape& shape, const TiledValues& values) {
    buffers_.push_back(device_.upload_values(values.bytes(elements_of(shape))));
    return buffers_.back();
  };
  arguments_.problem = problem;
  arguments_.q_strides = strides_of(q, {});
  arguments_.k_strides = strides_of(k, {});
  arguments_.v_strides = strides_of(v, {});
  arguments_.o_strides = strides_of(o, {});
  arguments_.q = upload(q, *inputs_.q);
  arguments_.k = upload(k, *inputs_.k);
  arguments_.v = upload(v, *inputs_.v);
  Arguments indices;
  indices_.upload(problem, device_, indices);
  arguments_.query_starts = indices.query_starts;
  arguments_.key_starts = indices.key_starts;
  arguments_.key_mask = indices.key_mask;
  unwritten_o_ = poison(problem.element_type, elements_of(o));
  unwritten_lse_ = poison(ElementType::fp32, elements_of(lse));
}

ResidentProblem::~ResidentProblem() {
  indices_.release(device_);
  for (std::byte* const buffer : buffers_) device_.release(buffer);
  for (std::byte* const buffer : {o_, lse_, workspace_}) {
    if (buffer != nullptr) device_.release(buffer);
  }
}

/// The first and the last query among them: masks and tails go wrong at the ends.
std::vector<ResidentProblem::Place> ResidentProblem::sampled_places(std::int64_t rows) const {
  std::vector<Place> places;
  for (std::int64_t number = 0; number < rows; ++number) {
    const auto draw = [&](std::uint64_t axis, std::int64_t below) {
      return random_below(seed_rows, axis, static_cast<std::uint64_t>(number), below);
    };
    std::int64_t entry = draw(0, problem_.batch), without = 0;
    for (; problem_.query_len_of(entry) == 0 && without < problem_.batch; ++without) {
      entry = (entry + 1) % problem_.batch;
    }
    const std::int64_t queries = problem_.query_len_of(entry);
    if (queries == 0) break;  // there is no row at all
    const std::int64_t query = number == 0 ? 0 : number == 1 ? queries - 1 : draw(2, queries);
    places.push_back(place_of(entry, draw(1, problem_.query_heads), query));
  }
  return places;
}

ResidentProblem::Place ResidentProblem::place_of(std::int64_t entry, std::int64_t head,
                                                 std::int64_t query) const {
  // Packed entries follow each other along the sequence of one.
  const bool is_packed = problem_.length_seed != 0;
  const auto start = [&](const auto& starts) {
    return is_packed ? std::int64_t{starts(problem_)[static_cast<std::size_t>(entry)]} : 0;
  };
  Place place{.at = {entry, head, query, 0},
              .query_row = start(query_starts) + query,
              .first_key = start(key_starts)};
  place.o_offset = arguments_.o_strides.offset(is_packed ? 0 : entry, head, place.query_row);
  // Of tensors alike but for the last dimension.
  place.lse_offset = place.o_offset / problem_.output_dim();
  return place;
}

ResidentProblem::OneRow ResidentProblem::row_at(const Place& place) const {
  const auto [entry, head, query, none] = place.at;
  const std::vector<std::int64_t> keys = visible_keys_of(problem_, entry, query);
  OneRow row{.problem = problem_};
  Problem& one = row.problem;
  one.batch = one.query_heads = one.kv_heads = one.query_len = 1;
  one.key_len = static_cast<std::int64_t>(keys.size());
  one.mask = Mask::none;
  one.window = {};
  one.length_seed = one.padding_seed = 0;
  const std::int64_t batch = problem_.length_seed != 0 ? 0 : entry;
  const std::int64_t kv_head = problem_.kv_head_of(head);
  row.inputs = {Tensor<float>(query_shape(one)), Tensor<float>(key_shape(one)),
                Tensor<float>(value_shape(one))};
  inputs_.q->copy(arguments_.q_strides.offset(batch, head, place.query_row),
                  row.inputs[forward::q].values());
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const auto to = static_cast<std::int64_t>(j);
    const std::int64_t key = place.first_key + keys[j];
    inputs_.k->copy(arguments_.k_strides.offset(batch, kv_head, key),
                    row.inputs[forward::k].row(0, 0, to));
    inputs_.v->copy(arguments_.v_strides.offset(batch, kv_head, key),
                    row.inputs[forward::v].row(0, 0, to));
  }
  return row;
}

void ResidentProblem::prepare(const KernelInfo& kernel, const Plan& plan) {
  arguments_.plan = plan;
  const std::size_t needed = kernel.workspace_bytes ? kernel.workspace_bytes(problem_, plan) : 0;
  if (needed > workspace_bytes_) {
    if (workspace_ != nullptr) device_.release(workspace_);
    workspace_ = nullptr;
    workspace_bytes_ = 0;
    workspace_ = device_.allocate(needed);
    workspace_bytes_ = needed;
  }
  arguments_.workspace = workspace_;
  if (o_ == nullptr) renew_outputs();
}

void ResidentProblem::renew_outputs() {
  const auto renew = [&](std::byte*& buffer, const std::vector<std::byte>& unwritten) {
    if (buffer != nullptr) device_.release(buffer);
    buffer = nullptr;
    buffer = device_.upload_values(unwritten);
  };
  renew(o_, unwritten_o_);
  renew(lse_, unwritten_lse_);
  arguments_.o = o_;
  arguments_.lse = reinterpret_cast<float*>(lse_);
}

SampledRows ResidentProblem::sample(const KernelInfo& kernel, const Plan& plan,
                                    std::int64_t count) {
  renew_outputs();
  SampledRows sampled;
  try {
    launch(kernel, plan);
    device_.synchronize();
  } catch (const KernelError& error) {
    sampled.failure = error.what();
    return sampled;
  } catch (const MachineError& error) {  // what the device is worth now nobody knows
    throw MachineError(fmt::format("{} {} of {}: {}", kernel.name, to_string(plan),
                                   to_string(problem_), error.what()));
  }
  std::vector<std::byte> lse_bytes(unwritten_lse_.size());
  device_.download(lse_, lse_bytes);
  const std::vector<float> lse = decoded(ElementType::fp32, lse_bytes);
  const auto unwritten = std::ranges::find_if(lse, [](float x) { return std::isnan(x); });
  if (unwritten != lse.end()) {
    sampled.failure =
        fmt::format("LSE of row {} was not written or is NaN", unwritten - lse.begin());
    return sampled;
  }
  const PrecisionPlan precision = kernel.precision(problem_, plan).as<PrecisionPlan>();
  const ElementType type = problem_.element_type;
  const std::size_t size = format_of(type).size_bytes;
  std::vector<std::future<SampledRows::Row>> rows;
  for (const Place& place : sampled_places(count)) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(problem_.output_dim()) * size);
    device_.download(o_ + static_cast<std::size_t>(place.o_offset) * size, bytes);
    const float lse_of_row = lse[static_cast<std::size_t>(place.lse_offset)];
    // A row of a long problem holds all of its keys: few at a time.
    if (rows.size() >= most_rows_at_a_time + sampled.rows.size()) {
      sampled.rows.push_back(rows[sampled.rows.size()].get());
    }
    // Where no thread can be had, get() does the work.
    rows.push_back(std::async(
        std::launch::async | std::launch::deferred,
        [this, place, precision, type, lse_of_row, bytes = std::move(bytes)] {
          const OneRow one = row_at(place);
          SampledRows::Row row{
              .at = place.at,
              .answer = exact_answer(one.problem, one.inputs, precision),
              .got = {Tensor<float>(output_shape(one.problem)), Tensor<float>(Shape{1, 1, 1, 1})}};
          std::ranges::copy(decoded(type, bytes), row.got[forward::o].values().begin());
          row.got[forward::lse].values()[0] = lse_of_row;
          return row;
        }));
  }
  while (sampled.rows.size() < rows.size()) {
    sampled.rows.push_back(rows[sampled.rows.size()].get());
  }
  return sampled;
}

void ResidentProblem::launch(const KernelInfo& kernel, const Plan& plan) {
  prepare(kernel, plan);
  kernel.launch(arguments_, device_);
}

double ResidentProblem::time_ms(const KernelInfo& kernel, const Plan& plan, int launches) {
  prepare(kernel, plan);
  return time_launches(kernel, arguments_, device_, launches);
}

double ResidentProblem::cold_time_ms(const KernelInfo& kernel, const Plan& plan, int launches) {
  prepare(kernel, plan);
  double sum = 0;
  for (int i = 0; i < launches; ++i) {
    device_.flush_cache();
    sum += time_launches(kernel, arguments_, device_, 1);
  }
  return sum / launches;
}

}  // namespace attest
