#include "verify/judge/page_diagnosis.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>

#include "core/attention/storage.hpp"
#include "core/base/counted.hpp"
#include "core/base/error_ratio.hpp"
#include "core/inputs/input_family.hpp"
#include "core/operations/forward.hpp"
#include "cpu_reference/device_reference.hpp"
#include "verify/judge/compare.hpp"

namespace attest {
namespace {

// Of one of some 30 exact answers, and of what a pool spans.
constexpr double most_work = 1e7;
constexpr std::int64_t most_elements = std::int64_t{1} << 24;
// Where more than these fit, it is anybody's guess.
constexpr std::size_t most_names = 3;

/// An input that lies in pages, as a kernel finds it.
struct Pool {
  InputIndex input;
  std::string_view label;
  Shape shape{};
  Strides strides{};
  std::int64_t first = 0;                           ///< element of the memory
  std::shared_ptr<std::vector<float>> memory = {};  ///< NaN where nothing lies

  /// Value at an offset; nothing outside of the memory.
  [[nodiscard]] std::optional<float> at(std::int64_t offset) const {
    const std::int64_t place = first + offset;
    if (place < 0 || place >= std::ssize(*memory)) return std::nullopt;
    return (*memory)[static_cast<std::size_t>(place)];
  }
};

/// One way to be wrong about where a key lies.
struct Misreading {
  std::string how;
  std::function<Strides(const Pool&)> strides = [](const Pool& pool) { return pool.strides; };
  std::int64_t entry_step = 0, key_step = 0;
  bool reads_table = true;  ///< false: pages follow each other in the order of the entries
};

std::vector<Misreading> misreadings(const std::vector<Pool>& pools, std::int64_t page_size) {
  std::vector<Misreading> all;
  for (const Pool& other : pools) {
    all.push_back({.how = fmt::format("with the strides of {}", other.label),
                   .strides = [strides = other.strides](const Pool&) { return strides; }});
  }
  for (const DimOrder order : {DimOrder::bhnd, DimOrder::bnhd}) {
    all.push_back({.how = fmt::format("as if its pool were contiguous {}", name_of(order)),
                   .strides = [order](const Pool& pool) {
                     return strides_of(pool.shape, {.order = order});
                   }});
  }
  all.push_back({.how = "without the table", .reads_table = false});
  for (const int step : {1, -1}) {
    const std::string_view where = step > 0 ? "next" : "previous";
    all.push_back({.how = fmt::format("at the {} page", where), .key_step = step * page_size});
    all.push_back({.how = fmt::format("at the {} key", where), .key_step = step});
    all.push_back({.how = fmt::format("at the {} entry's pages", where), .entry_step = step});
  }
  return all;
}

/// Page of the pool in which a kernel finds the key, or nothing.
class PageFinder {
 public:
  PageFinder(const Problem& problem, const Paging& paging)
      : page_size_(paging.page_size), arrays_(page_table_arrays(problem, paging)) {
    std::int64_t pages = 0;
    const PageMap map = page_map(problem, paging);
    for (std::size_t b = 0; b < map.pages.size(); ++b) {
      const std::int64_t row =
          arrays_.columns > 0 ? static_cast<std::int64_t>(b) * arrays_.columns : arrays_.starts[b];
      rows_.push_back(row);
      in_order_.push_back(pages);
      pages += std::ssize(map.pages[b]);
    }
  }

  [[nodiscard]] std::optional<std::int64_t> page_of(std::int64_t entry, std::int64_t key,
                                                    bool reads_table) const {
    if (entry < 0 || entry >= std::ssize(rows_)) return std::nullopt;
    const auto b = static_cast<std::size_t>(entry);
    const std::int64_t page = (key < 0 ? key - page_size_ + 1 : key) / page_size_;  // rounded down
    if (!reads_table) return in_order_[b] + page;
    const std::int64_t at = rows_[b] + page;
    if (at < 0 || at >= std::ssize(arrays_.pages)) return std::nullopt;
    return arrays_.pages[static_cast<std::size_t>(at)];
  }

 private:
  std::int64_t page_size_;
  PageTableArrays arrays_;
  std::vector<std::int64_t> rows_, in_order_;  ///< of every entry
};

void write(const Tensor<float>& values, const Pool& pool) {
  const Shape& shape = values.shape();
  for (std::int64_t page = 0; page < shape[0]; ++page) {
    for (std::int64_t head = 0; head < shape[1]; ++head) {
      for (std::int64_t slot = 0; slot < shape[2]; ++slot) {
        std::ranges::copy(values.row(page, head, slot), pool.memory->begin() + pool.first +
                                                            pool.strides.offset(page, head, slot));
      }
    }
  }
}

/// Pools of every input that lies in pages; none where one spans too much memory.
std::vector<Pool> pools_of(const Case& c, const Inputs& inputs) {
  const Paging& paging = c.layouts.paging;
  const auto specs = c.problem.operation->inputs();
  std::vector<Pool> pools;
  for (std::size_t i = 0; i < specs.size(); ++i) {
    if (specs[i].rows != Rows::keys) continue;
    Pool pool{.input = InputIndex{i}, .label = specs[i].label};
    const Tensor<float> values = stored(storage_of(specs[i], c.problem, paging), inputs[pool.input],
                                        unused_value(paging.unused, specs[i].format(c.problem)));
    pool.shape = values.shape();
    const auto holder = std::ranges::find(pools, holder_of(c.problem, pool.input), &Pool::input);
    const TensorLayout& layout = c.layouts[paging.joins_kv ? InputIndex{forward::k} : pool.input];
    const JoinedPool joined = joined_pool(pool.shape, layout);
    const Shape& whole = paging.joins_kv ? joined.shape : pool.shape;
    if (holder != pools.end()) {  // V in columns of K
      pool.strides = holder->strides;
      pool.memory = holder->memory;
    } else if (paging.joins_kv && !pools.empty()) {  // V behind K
      pool.strides = joined.strides;
      pool.first = joined.value_offset;
      pool.memory = pools.front().memory;
    } else {
      const std::int64_t elements = span_of(whole, layout);
      if (elements > most_elements) return {};
      pool.strides = strides_of(whole, layout);
      pool.memory =
          std::make_shared<std::vector<float>>(elements, std::numeric_limits<float>::quiet_NaN());
    }
    write(values, pool);
    pools.push_back(std::move(pool));
  }
  return pools;
}

/// Values that a kernel with that mistake takes for an input. Entries for which it reads what
/// nobody knows, outside of the table or of the memory, are noted and stay as they are.
Tensor<float> misread(const Pool& pool, const Misreading& mistake, const PageFinder& pages,
                      const Problem& problem, const Tensor<float>& right,
                      std::vector<bool>& is_unknown) {
  Tensor<float> values = right;
  const Strides strides = mistake.strides(pool);
  const std::int64_t page_size = pool.shape[2];
  for (std::int64_t b = 0; b < right.shape()[0]; ++b) {
    for (std::int64_t n = 0; n < problem.key_len_of(b); ++n) {
      const std::int64_t key = n + mistake.key_step, slot = (key + page_size) % page_size;
      const auto page = pages.page_of(b + mistake.entry_step, key, mistake.reads_table);
      for (std::int64_t h = 0; h < right.shape()[1]; ++h) {
        for (std::int64_t d = 0; d < right.shape()[3]; ++d) {
          const auto value = page ? pool.at(strides.offset(*page, h, slot) + d) : std::nullopt;
          values.at(b, h, n, d) = value.value_or(right.at(b, h, n, d));
          if (!value) is_unknown[static_cast<std::size_t>(b)] = true;
        }
      }
    }
  }
  return values;
}

/// Every element that the kernel gave, but for those of entries to skip, is proven to be no further
/// from the answer than its bound.
bool is_proven(const KernelInfo& kernel, const Outputs& got, const Answer& answer,
               const std::vector<bool>& skips) {
  for (std::size_t i = 0; i < answer.size(); ++i) {
    const OutputIndex output{i};
    if (!kernel.gives(output)) continue;
    const auto values = got[output].values();
    const auto want = answer[output].value.values(), bound = answer[output].bound.values();
    const std::size_t of_an_entry = values.size() / skips.size();
    for (std::size_t at = 0; at < values.size(); ++at) {
      if (skips[at / of_an_entry]) continue;
      const bool is_decided = std::isnan(want[at]) || std::isfinite(bound[at]);
      if (!is_decided || !within(1.0, error_over_bound(values[at], want[at], bound[at]))) {
        return false;
      }
    }
  }
  return true;
}

/// The mistakes that explain what a launch gave. Nothing of a right answer.
std::vector<std::string> explanations(Run& run, const Case& c, const Inputs& right,
                                      const Outputs& got) {
  if (reference_work(c.problem) > most_work) return {};
  const auto is_answer = [&](const Answer& answer, const std::vector<bool>& skips) {
    return is_proven(run.kernel(), got, answer, skips);
  };
  const std::vector<bool> none(static_cast<std::size_t>(c.problem.batch));
  const std::vector<Pool> pools = pools_of(c, right);
  const Answer wanted = run.answer_to(c.problem, c.plan, right);
  if (pools.empty() || is_answer(wanted, none)) return {};
  const PageFinder pages(c.problem, c.layouts.paging);
  std::vector<std::string> found;
  for (const Misreading& mistake : misreadings(pools, c.layouts.paging.page_size)) {
    const auto ask = [&](std::span<const Pool> wrong, std::string_view who) {
      Inputs inputs = right;
      std::vector<bool> is_unknown = none;
      for (const Pool& pool : wrong) {
        inputs[pool.input] =
            misread(pool, mistake, pages, c.problem, right[pool.input], is_unknown);
      }
      const bool is_found = !is_answer(wanted, is_unknown) &&
                            is_answer(run.answer_to(c.problem, c.plan, inputs), is_unknown);
      if (is_found) found.push_back(fmt::format("{} read {}", who, mistake.how));
      return is_found;
    };
    bool is_of_one = false;
    for (const Pool& pool : pools) is_of_one = ask({&pool, 1}, pool.label) || is_of_one;
    if (!is_of_one) (void)ask(pools, "K and V");
  }
  return found;
}

/// A case of the same kernel and form of pages in which every mistake finds other numbers: heads,
/// entries and pages of each, in a drawn order, and no gaps, whose NaN look alike wherever they are
/// read. Nothing where the kernel takes none, or where it would be large.
std::optional<Case> telling_case(const KernelInfo& kernel, const Case& c) {
  if (!input_family(InputSpec{}.family).serves(*c.problem.operation)) return std::nullopt;
  Case telling = c;
  telling.inputs = {};
  Problem& p = telling.problem;
  p.batch = 3;
  p.query_heads = 2 * c.problem.query_heads / c.problem.kv_heads;
  p.kv_heads = 2;
  p.length_seed = p.padding_seed = 0;
  p.shared_keys = 0;
  const Paging& paging = c.layouts.paging;
  const std::int64_t pages = std::max<std::int64_t>(3, 8 / paging.page_size);
  p.key_len = pages * paging.page_size;
  if (reference_work(p) > most_work) return std::nullopt;
  telling.layouts = {};
  telling.layouts.paging = {.page_size = paging.page_size,
                            .table = paging.table,
                            .joins_kv = paging.joins_kv,
                            .shuffle_seed = 1};
  for (const auto& [k, v] :
       {std::pair{DimOrder::hbnd, DimOrder::nbhd}, std::pair{DimOrder::bhnd, DimOrder::bnhd},
        std::pair{DimOrder::bhnd, DimOrder::bhnd}}) {
    telling.layouts[forward::k].order = k;
    telling.layouts[forward::v].order = v;
    if (!why_unsupported(kernel, telling)) return telling;
  }
  return std::nullopt;
}

}  // namespace

std::string page_form(const Paging& paging) {
  return fmt::format("of {}, a {} table, {}, {}", counted(paging.page_size, "key"),
                     table_form_names()[static_cast<std::size_t>(paging.table)],
                     paging.shuffle_seed == 0 ? "in the order of the entries" : "in a drawn order",
                     paging.joins_kv ? "K and V in one pool" : "K and V apart");
}

std::vector<std::string> misreadings_of(Run& run) {
  const Case& c = run.the_case();
  if (!c.layouts.paging.is_used()) return {};
  std::vector<std::string> found;
  if (const auto telling = telling_case(run.kernel(), c)) {
    try {
      const Inputs inputs = make_inputs(telling->problem, telling->inputs);
      found = explanations(run, *telling, inputs, run.launch(*telling, inputs).outputs);
    } catch (const KernelFault&) {  // another bug, and not asked about
    }
  }
  if (found.empty()) found = explanations(run, c, run.inputs(), run.base().outputs);
  if (found.size() > most_names) found.clear();
  return found;
}

}  // namespace attest
