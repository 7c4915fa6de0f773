#include "verify/cases/key_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <numeric>
#include <vector>

#include "core/base/error.hpp"
#include "core/base/text.hpp"
#include "core/operations/forward.hpp"

namespace attest {
namespace {

constexpr std::array<std::string_view, 4> order_names{"drawn", "reversed", "rising", "falling"};

/// Sum over the queries that use key head (b, h), which orders keys as their mean does.
std::vector<double> query_sum(const Problem& problem, const Inputs& inputs, std::int64_t b,
                              std::int64_t h) {
  std::vector<double> sum(static_cast<std::size_t>(problem.head_dim));
  for (std::int64_t head = 0; head < problem.query_heads; ++head) {
    if (problem.kv_head_of(head) != h) continue;
    for (std::int64_t n = 0; n < problem.query_len; ++n) {
      const auto row = inputs[forward::q].row(b, head, n);
      for (std::size_t d = 0; d < row.size(); ++d) sum[d] += row[d];
    }
  }
  return sum;
}

/// order[j]: which key comes j-th.
std::vector<std::int64_t> order_of(const Problem& problem, const Inputs& inputs, KeyOrder order,
                                   std::int64_t b, std::int64_t h) {
  std::vector<std::int64_t> keys(static_cast<std::size_t>(problem.key_len));
  std::iota(keys.begin(), keys.end(), 0);
  if (order == KeyOrder::reversed) std::ranges::reverse(keys);
  if (order == KeyOrder::drawn || order == KeyOrder::reversed) return keys;
  const std::vector<double> queries = query_sum(problem, inputs, b, h);
  std::vector<double> score(keys.size());
  for (const std::int64_t j : keys) {
    const auto row = inputs[forward::k].row(b, h, j);
    score[static_cast<std::size_t>(j)] =
        static_cast<double>(problem.scale) *
        std::inner_product(row.begin(), row.end(), queries.begin(), 0.0);
  }
  std::ranges::stable_sort(keys, {}, [&](std::int64_t j) {
    const double value = score[static_cast<std::size_t>(j)];
    return order == KeyOrder::rising ? value : -value;
  });
  return keys;
}

}  // namespace

std::string_view name_of(KeyOrder order) {
  return order_names.at(static_cast<std::size_t>(order));
}

KeyOrder key_order_from_name(std::string_view name) {
  const auto found = std::ranges::find(order_names, name);
  if (found == order_names.end()) {
    throw InvalidInput(
        fmt::format("key order '{}'; allowed: {}", printable(name), fmt::join(order_names, ", ")));
  }
  return static_cast<KeyOrder>(found - order_names.begin());
}

void require_same_answer(const Problem& problem, KeyOrder order) {
  if (order == KeyOrder::drawn) return;
  Problem attention = problem;
  take_away_epilogue(attention);
  const bool tells_keys_apart =
      has_modifications(attention) || problem.document_seed != 0 || problem.list_seed != 0;
  if (problem.mask != Mask::none || problem.length_seed != 0 || problem.padding_seed != 0 ||
      tells_keys_apart) {
    throw InvalidInput(
        fmt::format("key order '{}': the rows of '{}' see different keys, so it would change the "
                    "answer; allowed: no mask",
                    name_of(order), to_string(problem)));
  }
}

Inputs with_key_order(const Problem& problem, const Inputs& inputs, KeyOrder order) {
  require_same_answer(problem, order);
  if (order == KeyOrder::drawn) return inputs;
  Inputs ordered = inputs;
  for (std::int64_t b = 0; b < problem.batch; ++b) {
    for (std::int64_t h = 0; h < problem.kv_heads; ++h) {
      std::int64_t place = 0;
      for (const std::int64_t j : order_of(problem, inputs, order, b, h)) {
        std::ranges::copy(inputs[forward::k].row(b, h, j),
                          ordered[forward::k].row(b, h, place).begin());
        std::ranges::copy(inputs[forward::v].row(b, h, j),
                          ordered[forward::v].row(b, h, place).begin());
        ++place;
      }
    }
  }
  return ordered;
}

}  // namespace attest
