#include "experiments/tuning/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <span>

#include "core/error.hpp"
#include "core/random.hpp"
#include "core/stored_shapes.hpp"
#include "cpu_reference/reference_f64.hpp"
#include "experiments/tuning/tiled_normals.hpp"
#include "verify/compare.hpp"

namespace attest {
namespace {

constexpr std::int64_t sampled_rows = 4;
constexpr double shortest_timing_ms = 2;  // far above the clock's half microsecond
enum Seed : std::uint64_t { seed_q = 1, seed_k, seed_v, seed_rows };

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

DeviceBench::DeviceBench(const KernelInfo& kernel, const Problem& problem, Device& device,
                         SmallCases& small_cases)
    : kernel_(kernel), problem_(problem), device_(device), small_cases_(small_cases) {
  const auto [q, k, v, o, lse] = stored_shapes(problem);
  const auto input = [&](const Shape& shape, Seed seed) {
    const auto bytes = tiled_normals(problem.element_type, seed).bytes(elements_of(shape));
    buffers_.push_back(device_.upload_values(bytes));
    return buffers_.back();
  };
  arguments_.problem = problem;
  arguments_.q_strides = strides_of(q, {});
  arguments_.k_strides = strides_of(k, {});
  arguments_.v_strides = strides_of(v, {});
  arguments_.o_strides = strides_of(o, {});
  arguments_.q = input(q, seed_q);
  arguments_.k = input(k, seed_k);
  arguments_.v = input(v, seed_v);
  indices_.upload(problem, device_, arguments_);
  unwritten_o_ = poison(problem.element_type, elements_of(o));
  unwritten_lse_ = poison(ElementType::fp32, elements_of(lse));
  sample_rows();
}

DeviceBench::~DeviceBench() {
  indices_.release(device_);
  for (std::byte* const buffer : buffers_) device_.release(buffer);
  for (std::byte* const buffer : {o_, lse_, workspace_}) {
    if (buffer != nullptr) device_.release(buffer);
  }
}

/// The first and the last query among them: masks and tails go wrong at the ends.
void DeviceBench::sample_rows() {
  for (std::int64_t number = 0; number < sampled_rows; ++number) {
    const auto draw = [&](std::uint64_t axis, std::int64_t below) {
      return random_below(seed_rows, axis, static_cast<std::uint64_t>(number), below);
    };
    std::int64_t entry = draw(0, problem_.batch), without = 0;
    for (; problem_.query_len_of(entry) == 0 && without < problem_.batch; ++without) {
      entry = (entry + 1) % problem_.batch;
    }
    const std::int64_t queries = problem_.query_len_of(entry);
    if (queries == 0) return;  // there is no row at all
    const std::int64_t query = number == 0 ? 0 : number == 1 ? queries - 1 : draw(2, queries);
    rows_.push_back(sampled_row(entry, draw(1, problem_.query_heads), query));
  }
}

DeviceBench::Row DeviceBench::sampled_row(std::int64_t entry, std::int64_t head,
                                          std::int64_t query) const {
  const Problem& p = problem_;
  const std::vector<std::int64_t> keys = visible_keys_of(p, entry, query);
  Row row{.at = {entry, head, query, 0}, .problem = p};
  Problem& one = row.problem;
  one.batch = one.query_heads = one.kv_heads = one.query_len = 1;
  one.key_len = static_cast<std::int64_t>(keys.size());
  one.mask = Mask::none;
  one.window = {};
  one.length_seed = one.padding_seed = 0;
  // Packed entries follow each other along the sequence of one.
  const bool is_packed = p.length_seed != 0;
  const std::int64_t batch = is_packed ? 0 : entry, kv_head = p.kv_head_of(head);
  const auto start = [&](const auto& starts) {
    return is_packed ? std::int64_t{starts(p)[static_cast<std::size_t>(entry)]} : 0;
  };
  const std::int64_t query_row = start(query_starts) + query, first_key = start(key_starts);
  const auto copy = [&](std::int64_t element, Seed seed, std::span<float> to) {
    const TiledNormals& values = tiled_normals(p.element_type, seed);
    for (float& x : to) x = values.value(element++);
  };
  row.inputs = {Tensor<float>(query_shape(one)), Tensor<float>(key_shape(one)),
                Tensor<float>(value_shape(one))};
  copy(arguments_.q_strides.offset(batch, head, query_row), seed_q, row.inputs.q.values());
  for (std::size_t j = 0; j < keys.size(); ++j) {
    const auto to = static_cast<std::int64_t>(j);
    const std::int64_t key = first_key + keys[j];
    copy(arguments_.k_strides.offset(batch, kv_head, key), seed_k, row.inputs.k.row(0, 0, to));
    copy(arguments_.v_strides.offset(batch, kv_head, key), seed_v, row.inputs.v.row(0, 0, to));
  }
  row.o_offset = arguments_.o_strides.offset(batch, head, query_row);
  row.lse_offset = row.o_offset / p.output_dim();  // of tensors alike but for the last dimension
  return row;
}

std::optional<std::string> DeviceBench::why_row_is_wrong(const Row& row,
                                                         const PrecisionPlan& precision,
                                                         const Outputs& got) {
  const Answer answer = exact_answer(row.problem, row.inputs, precision);
  for (const auto& [name, comparison] :
       {std::pair("O", compare(got.o, answer.o, answer.o_bound)),
        std::pair("LSE", compare(got.lse, answer.lse, answer.lse_bound))}) {
    if (comparison.is_within()) continue;
    const WorstElement& worst = comparison.worst;
    return fmt::format("{} at {} is {:.9g}, want {:.9g} within {:.3g}", name,
                       to_string(Shape{row.at[0], row.at[1], row.at[2], worst.index[3]}), worst.got,
                       worst.want, worst.bound);
  }
  return std::nullopt;
}

void DeviceBench::prepare(const Plan& plan) {
  arguments_.plan = plan;
  const std::size_t needed = kernel_.workspace_bytes ? kernel_.workspace_bytes(problem_, plan) : 0;
  if (needed > workspace_bytes_) {
    if (workspace_ != nullptr) device_.release(workspace_);
    workspace_ = nullptr;
    workspace_ = device_.allocate(needed);
    workspace_bytes_ = needed;
  }
  arguments_.workspace = workspace_;
}

std::optional<std::string> DeviceBench::why_wrong(const Plan& plan) {
  if (auto reason = small_cases_.why_wrong(kernel_, problem_, plan)) return reason;
  const ElementType type = problem_.element_type;
  const auto refresh = [&](std::byte*& buffer, const std::vector<std::byte>& unwritten) {
    if (buffer != nullptr) device_.release(buffer);
    buffer = nullptr;
    buffer = device_.upload_values(unwritten);
  };
  refresh(o_, unwritten_o_);
  refresh(lse_, unwritten_lse_);
  arguments_.o = o_;
  arguments_.lse = reinterpret_cast<float*>(lse_);
  prepare(plan);
  try {
    kernel_.launch(arguments_, device_);
    device_.synchronize();
  } catch (const KernelError& error) {
    return error.what();
  } catch (const MachineError& error) {  // what the device is worth now nobody knows
    throw MachineError(fmt::format("{} {} of {}: {}", kernel_.name, to_string(plan),
                                   to_string(problem_), error.what()));
  }

  std::vector<std::byte> lse_bytes(unwritten_lse_.size());
  device_.download(lse_, lse_bytes);
  const std::vector<float> lse = decoded(ElementType::fp32, lse_bytes);
  const auto unwritten = std::ranges::find_if(lse, [](float x) { return std::isnan(x); });
  if (unwritten != lse.end()) {
    return fmt::format("LSE of row {} was not written or is NaN", unwritten - lse.begin());
  }
  const PrecisionPlan precision = kernel_.precision(problem_, plan);
  std::vector<std::future<std::optional<std::string>>> answers;
  for (const Row& row : rows_) {
    const std::size_t size = format_of(type).size_bytes;
    std::vector<std::byte> bytes(static_cast<std::size_t>(problem_.output_dim()) * size);
    device_.download(o_ + static_cast<std::size_t>(row.o_offset) * size, bytes);
    Outputs got{Tensor<float>(output_shape(row.problem)), Tensor<float>(Shape{1, 1, 1, 1})};
    std::ranges::copy(decoded(type, bytes), got.o.values().begin());
    got.lse.values()[0] = lse[static_cast<std::size_t>(row.lse_offset)];
    answers.push_back(std::async(std::launch::async, [&row, precision, got = std::move(got)] {
      return why_row_is_wrong(row, precision, got);
    }));
  }
  std::optional<std::string> reason;
  for (auto& answer : answers) {
    if (auto wrong = answer.get(); wrong && !reason) reason = std::move(wrong);
  }
  return reason;
}

double DeviceBench::time_ms(const Plan& plan) {
  prepare(plan);
  const auto timed = [&](int launches) {
    return time_launches(kernel_, arguments_, device_, launches);
  };
  const auto [launches, is_first] = launches_.try_emplace(to_string(plan), 1);
  if (is_first) {
    (void)timed(1);  // the first launch loads its machine code
    const double once = std::max(timed(1), 1e-3);
    launches->second = static_cast<int>(std::max(1.0, std::ceil(shortest_timing_ms / once)));
  }
  return timed(launches->second);
}

}  // namespace attest
