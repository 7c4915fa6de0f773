#include "experiments/tuning/device_bench.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <future>
#include <span>

#include "core/error.hpp"
#include "core/random.hpp"
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

/// Memory that no launch has written.
std::vector<std::byte> poison(ElementType type, std::size_t elements) {
  const std::size_t size = format_of(type).size_bytes;
  const std::uint32_t bits = poison_bits(type);
  std::vector<std::byte> bytes(elements * size);
  for (std::size_t i = 0; i < elements; ++i) std::memcpy(&bytes[i * size], &bits, size);
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
  const Shape queries = query_shape(problem), keys = key_shape(problem);
  const auto input = [&](const Shape& shape, Seed seed) {
    const auto bytes = tiled_normals(problem.element_type, seed).bytes(elements_of(shape));
    buffers_.push_back(device_.upload_values(bytes));
    return buffers_.back();
  };
  arguments_ = {.problem = problem,
                .plan = {},
                .q_strides = strides_of(queries, {}),
                .k_strides = strides_of(keys, {}),
                .v_strides = strides_of(keys, {}),
                .o_strides = strides_of(queries, {})};
  arguments_.q = input(queries, seed_q);
  arguments_.k = input(keys, seed_k);
  arguments_.v = input(keys, seed_v);
  for (std::int64_t i = 0; i < sampled_rows; ++i) rows_.push_back(sampled_row(i));
}

DeviceBench::~DeviceBench() {
  for (std::byte* const buffer : buffers_) device_.release(buffer);
  for (std::byte* const buffer : {o_, lse_, workspace_}) {
    if (buffer != nullptr) device_.release(buffer);
  }
}

DeviceBench::Row DeviceBench::sampled_row(std::int64_t number) const {
  const Problem& p = problem_;
  const auto draw = [&](std::uint64_t axis, std::int64_t below) {
    return random_below(seed_rows, axis, static_cast<std::uint64_t>(number), below);
  };
  // The ends are where masks and tails go wrong.
  const std::int64_t query = number == 0 ? 0 : number == 1 ? p.query_len - 1 : draw(2, p.query_len);
  Row row{.at = {draw(0, p.batch), draw(1, p.query_heads), query, 0}, .problem = p};
  Problem& one = row.problem;
  one.batch = one.query_heads = one.kv_heads = one.query_len = 1;
  one.key_len = p.visible_keys(query);
  one.mask = Mask::none;
  const auto fill = [&](std::int64_t length, std::int64_t first_element, Seed seed) {
    Tensor<float> tensor(Shape{1, 1, length, p.head_dim});
    const TiledNormals& values = tiled_normals(p.element_type, seed);
    for (std::int64_t i = 0; i < tensor.size(); ++i) {
      tensor.values()[static_cast<std::size_t>(i)] = values.value(first_element + i);
    }
    return tensor;
  };
  const auto first = [&](const Strides& strides, std::int64_t head, std::int64_t n) {
    return strides.offset(row.at[0], head, n);
  };
  const std::int64_t kv_head = p.kv_head_of(row.at[1]);
  row.inputs = {fill(1, first(arguments_.q_strides, row.at[1], query), seed_q),
                fill(one.key_len, first(arguments_.k_strides, kv_head, 0), seed_k),
                fill(one.key_len, first(arguments_.v_strides, kv_head, 0), seed_v)};
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
  const auto fresh = [&](std::byte*& buffer, ElementType of, std::size_t elements) {
    if (buffer != nullptr) device_.release(buffer);
    buffer = nullptr;
    buffer = device_.upload_values(poison(of, elements));
  };
  fresh(o_, type, elements_of(query_shape(problem_)));
  fresh(lse_, ElementType::fp32, static_cast<std::size_t>(problem_.rows()));
  arguments_.o = o_;
  arguments_.lse = reinterpret_cast<float*>(lse_);
  prepare(plan);
  try {
    kernel_.launch(arguments_, device_);
  } catch (const KernelError& error) {
    return error.what();
  }
  device_.synchronize();

  std::vector<std::byte> lse_bytes(static_cast<std::size_t>(problem_.rows()) * sizeof(float));
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
    const auto [b, h, n, unused] = row.at;
    std::vector<std::byte> bytes(static_cast<std::size_t>(problem_.head_dim) * size);
    device_.download(o_ + static_cast<std::size_t>(arguments_.o_strides.offset(b, h, n)) * size,
                     bytes);
    Outputs got{Tensor<float>(query_shape(row.problem)), Tensor<float>(Shape{1, 1, 1, 1})};
    std::ranges::copy(decoded(type, bytes), got.o.values().begin());
    got.lse.values()[0] =
        lse[static_cast<std::size_t>((b * problem_.query_heads + h) * problem_.query_len + n)];
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
    return device_.time_ms([&] {
      for (int i = 0; i < launches; ++i) kernel_.launch(arguments_, device_);
    }) / launches;
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
