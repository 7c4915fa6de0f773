#include "experiments/timing/tiled_values.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <mutex>
#include <tuple>
#include <utility>

#include "core/attention/storage.hpp"
#include "core/attention/stored_row.hpp"
#include "core/inputs/input_family.hpp"
#include "core/inputs/random.hpp"
#include "core/operations/forward.hpp"
#include "core/operations/quantised.hpp"

namespace attest {
namespace {

using Shared = std::shared_ptr<const TiledValues>;

Shared normals(ElementType type, std::uint64_t seed, std::uint64_t stream, double size) {
  static std::mutex mutex;
  static std::map<std::tuple<ElementType, std::uint64_t, std::uint64_t, double>, Shared> drawn;
  const std::scoped_lock lock(mutex);
  Shared& kept = drawn[{type, seed, stream, size}];
  if (kept) return kept;
  constexpr std::size_t period = 1048573;
  std::vector<float> values(period);
  for (std::size_t i = 0; i < period; ++i) {
    values[i] = static_cast<float>(round_to(type, size * random_normal(seed, stream, i)));
  }
  return kept = std::make_shared<TiledValues>(type, std::move(values));
}

/// Scales of codes that are normal: within a factor of four of 2^-7.
Shared scales(ElementType type, std::uint64_t seed, std::uint64_t stream) {
  constexpr std::size_t period = 65521;
  std::vector<float> values(period);
  for (std::size_t i = 0; i < period; ++i) {
    values[i] =
        static_cast<float>(round_to(type, std::exp2(random_normal(seed, stream, i) / 4 - 7)));
  }
  return std::make_shared<TiledValues>(type, std::move(values));
}

/// Whether codes of input `i` of a problem have scales beside them.
bool has_scales(const Problem& problem, std::size_t i) {
  if (problem.operation != &quantised_operation) return true;
  if (i == quantised::q.number) return problem.codes.q_scales != Scales::none;
  if (i == quantised::k.number) return problem.codes.k_scales != Scales::none;
  return problem.codes.v_scales != Scales::none;
}

/// Rows begin at units.
Shared repeated(ElementType type, const Tensor<float>& head) {
  const auto columns = static_cast<std::size_t>(head.shape()[3]);
  const auto in_unit = static_cast<std::size_t>(format_of(type).elements_in_unit);
  std::vector<float> copy;
  for (std::size_t at = 0; at < head.values().size(); at += columns) {
    const auto row = head.values().subspan(at, columns);
    copy.insert(copy.end(), row.begin(), row.end());
    copy.resize((copy.size() + in_unit - 1) / in_unit * in_unit);
  }
  if (copy.empty()) copy.push_back(0);
  return std::make_shared<TiledValues>(type, std::move(copy));
}

}  // namespace

TiledValues::TiledValues(ElementType type, std::vector<float> values)
    : type_(type), values_(std::move(values)) {
  // As many units as numbers: where a unit holds two and the numbers are odd, they go round twice.
  const ElementFormat& format = format_of(type);
  encoded_.resize(values_.size() * format.size_bytes);
  store_row(encoded_.data(), type,
            values_.size() * static_cast<std::size_t>(format.elements_in_unit),
            [&](std::size_t i) { return encode(type, values_[i % values_.size()]); });
}

TiledValues TiledValues::times(float factor) const {
  std::vector<float> scaled = values_;
  for (float& value : scaled) value = static_cast<float>(round_to(type_, factor * value));
  return {type_, std::move(scaled)};
}

void TiledValues::copy(std::int64_t first, std::span<float> to) const {
  std::size_t at =
      static_cast<std::size_t>(first * format_of(type_).elements_in_unit) % values_.size();
  while (!to.empty()) {
    const std::size_t count = std::min(to.size(), values_.size() - at);
    std::copy_n(values_.begin() + static_cast<std::ptrdiff_t>(at), count, to.begin());
    to = to.subspan(count);
    at = 0;
  }
}

bool follows_from_others(const Operation& operation, InputIndex input) {
  if (operation.complete == nullptr || operation.extends == nullptr) return false;
  const auto outputs = operation.extends->outputs();
  return std::ranges::find(outputs, operation[input].name, &TensorSpec::name) != outputs.end();
}

TiledInputs tiled_inputs(const Problem& problem, const InputSpec& spec) {
  const Operation& operation = *problem.operation;
  TiledInputs tiled(operation.inputs().size());
  if (spec.family == "normal" && !spec.round_to_integers) {
    for (std::size_t i = 0; i < tiled.size(); ++i) {
      if (follows_from_others(operation, {i})) continue;
      const TensorSpec& tensor = operation[InputIndex{i}];
      // A bias has a number a pair: too many to draw each.
      const bool is_small = tensor.rows == Rows::neither && !tensor.is_of_pairs;
      if (is_small && tensor.draw != nullptr) {
        tiled[i] = repeated(tensor.format(problem), tensor.draw(problem, spec));
        continue;
      }
      if (is_small) {
        tiled[i] = scales(tensor.format(problem), spec.seed, i + 1);
        continue;
      }
      const ElementType type = tensor.format(problem);
      // Codes as a scale that the largest of many numbers decides leaves them, if there is one.
      const double size =
          is_code(type) && has_scales(problem, i) ? format_of(type).max_finite / 4 : 1;
      tiled[i] = normals(type, spec.seed, i + 1, i == 0 ? spec.magnitude * size : size);
    }
    return tiled;
  }
  Problem head = problem;
  head.batch = head.kv_heads = 1;
  head.query_heads = problem.query_heads / problem.kv_heads;
  head.query_len = stored_shape(problem, forward::q, {})[2];
  head.key_len = stored_shape(problem, forward::k, {})[2];
  take_away_seeds(head);
  const Inputs inputs = make_inputs(head, spec);
  for (std::size_t i = 0; i < tiled.size(); ++i) {
    tiled[i] = repeated(operation[InputIndex{i}].format(problem), inputs[InputIndex{i}]);
  }
  return tiled;
}

}  // namespace attest
