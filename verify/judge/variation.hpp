#pragma once

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "verify/judge/agreement.hpp"
#include "verify/judge/streams.hpp"

// A law that compares a case with another call is a row: the row says what the other call is and
// what it owes; support, launches, comparison and randomness are the judge's.
namespace attest {

/// A row of a tensor [batch, heads, rows, columns].
struct RowPlace {
  std::int64_t b = 0, h = 0, n = 0;
};
/// The row of the case's output that a row of the other call's output owes; nothing: the row is not
/// compared.
using RowOwed = std::function<std::optional<RowPlace>(OutputIndex, const RowPlace&)>;
/// The inputs of another call, from those of the case.
using InputsFrom = std::function<Inputs(const Inputs&)>;

/// Another call of the kernel.
struct OtherCall {
  Case the_case;
  InputsFrom inputs = {};       ///< empty: those of the case
  SessionOptions options = {};  ///< of the session that it is launched in
};

/// Another call whose outputs follow from those of the case.
struct Variation {
  OtherCall call;
  RowOwed row_owed = {};  ///< empty: the same row
  /// The other call's error has a bound of its own; false: that of the row that it owes.
  bool has_own_bound = false;
  /// Call that the other one is compared with in the case's place.
  std::optional<OtherCall> reference = {};
  std::string failure = {};  ///< empty: the law's
};

/// Refusal of a kernel from outside to take what a law would ask for.
struct Declined {
  std::string why;
};
/// Result of VariationLaw::vary; monostate: the law says nothing of the case.
using Varied = std::variant<std::monostate, Variation, Declined>;

/// The random choices of one law in one case: pure functions of the case's seed and the law's own
/// stream, so that asking again draws the same.
class LawDraws {
 public:
  LawDraws(const Case& c, std::optional<JudgeStream> stream) : case_(c), stream_(stream) {}
  /// A number in [0, limit), of draw number `index`. The law's row names a stream.
  [[nodiscard]] std::int64_t below(std::int64_t limit, std::uint64_t index = 0) const;
  /// One of the entries for which is_eligible(b) holds; nothing when there is none.
  [[nodiscard]] std::optional<std::int64_t> entry(
      const std::function<bool(std::int64_t b)>& is_eligible) const;

 private:
  const Case& case_;
  std::optional<JudgeStream> stream_;
};

/// A law that is no more than a variation.
struct VariationLaw {
  std::string name;
  std::string statement;  ///< the law in plain words
  Layer layer = Layer::exact;
  std::vector<const Operation*> operations = {};  ///< as in Law
  bool needs_own_values = false;                  ///< as in Law
  /// Differences between the two calls: they agree in bits where the kernel claims them for these,
  /// else within the sum of the two bounds. Nothing: within the bounds.
  std::optional<Differences> same_bits_but_for = {};
  std::string failure = {};                ///< one sentence; empty: each Variation has its own
  std::optional<JudgeStream> stream = {};  ///< of its draws, if it makes any
  /// The other call in a case. A call that the kernel does not support is not made. It is asked
  /// twice and gives the same again; inputs are only made for the launch.
  std::function<Varied(Run&, const LawDraws&)> vary;
};

/// Registers the rows of a table as laws that launch again.
struct VariationLaws {
  explicit VariationLaws(std::vector<VariationLaw> rows);
};

/// A tensor of `shape` whose rows are rows of `from`: row_of(b, h, n) says which.
template <typename T, typename RowOf>
[[nodiscard]] Tensor<T> gathered(const Tensor<T>& from, const Shape& shape, const RowOf& row_of) {
  Tensor<T> to(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const RowPlace row = row_of(b, h, n);
        std::ranges::copy(from.row(row.b, row.h, row.n), to.row(b, h, n).begin());
      }
    }
  }
  return to;
}

/// The inputs of `to`, with the heads, rows and columns of `from`, whose entry b is entry
/// entry_of(b) of `from`. What all entries share stays.
template <typename EntryOf>
[[nodiscard]] Inputs gathered_entries(const Problem& to, const Inputs& from,
                                      const EntryOf& entry_of) {
  Inputs inputs;
  for (std::size_t i = 0; i < from.size(); ++i) {
    const InputIndex input{i};
    Shape shape = from[input].shape();
    const std::int64_t entries = shape[0];
    shape[0] = (*to.operation)[input].shape(to)[0];
    inputs[input] = gathered(from[input], shape, [&](auto b, auto h, auto n) {
      return RowPlace{entries == 1 ? 0 : entry_of(b), h, n};
    });
  }
  return inputs;
}

/// Input `input` of `to`, whose entries, queries and keys are those of `from` that the three name:
/// entry_of(b), query_of(n) and keys[n]. What all entries share stays, and so do rows that are
/// neither queries nor keys.
template <typename EntryOf, typename QueryOf>
[[nodiscard]] Tensor<float> selected(const Problem& to, InputIndex input, const Inputs& from,
                                     const EntryOf& entry_of, const QueryOf& query_of,
                                     const std::vector<std::int64_t>& keys) {
  const TensorSpec& tensor = (*to.operation)[input];
  const Shape shape = tensor.shape(to);
  const bool is_shared = from[input].shape()[0] == 1;
  const auto row_of = [&](std::int64_t b, std::int64_t h, std::int64_t n) {
    const std::int64_t entry = is_shared ? 0 : entry_of(b);
    if (tensor.rows == Rows::keys) return RowPlace{entry, h, keys[static_cast<std::size_t>(n)]};
    const bool is_query = tensor.rows == Rows::queries || tensor.is_of_pairs;
    return RowPlace{entry, h, is_query ? query_of(n) : n};
  };
  if (!tensor.is_of_pairs) return gathered(from[input], shape, row_of);
  Tensor<float> pairs(shape);
  for (std::int64_t b = 0; b < shape[0]; ++b) {
    for (std::int64_t h = 0; h < shape[1]; ++h) {
      for (std::int64_t n = 0; n < shape[2]; ++n) {
        const RowPlace place = row_of(b, h, n);
        const auto row = from[input].row(place.b, place.h, place.n);
        for (std::int64_t j = 0; j < shape[3]; ++j) {
          pairs.at(b, h, n, j) = row[static_cast<std::size_t>(keys[static_cast<std::size_t>(j)])];
        }
      }
    }
  }
  return pairs;
}

/// True if what an entry's rows see, or which of their weights fall, hangs on the entry's place in
/// the batch or on the places of its rows and keys: it is not the same of the entry alone.
[[nodiscard]] inline bool depends_on_places(const Problem& problem) {
  return problem.prefix_seed != 0 || problem.document_seed != 0 || problem.list_seed != 0 ||
         problem.dropout > 0;
}

/// True of an output whose rows are queries: what a key has is summed over all queries that see it.
[[nodiscard]] inline bool is_of_queries(const Problem& problem, OutputIndex output) {
  return (*problem.operation)[output].rows == Rows::queries;
}

/// True of an output that entries share, which it sums over.
[[nodiscard]] inline bool sums_over_entries(Problem problem, OutputIndex output) {
  problem.batch = 2;
  return (*problem.operation)[output].shape(problem)[0] == 1;
}

/// True of an output that query heads share, which it sums over, other than those that KV heads
/// have.
[[nodiscard]] inline bool sums_over_heads(Problem problem, OutputIndex output) {
  problem.query_heads = problem.kv_heads = 2;
  return (*problem.operation)[output].shape(problem)[1] == 1;
}

/// True of an output without rows of queries, which it sums over or does not know.
[[nodiscard]] inline bool has_no_queries(Problem problem, OutputIndex output) {
  problem.query_len = 2;
  return (*problem.operation)[output].shape(problem)[2] != 2;
}

/// The first seed that makes of every entry what holds(problem, entry) says; nothing among the
/// first ones.
template <typename Holds>
std::optional<std::uint64_t> seed_for(Problem p, std::uint64_t Problem::*seed, const Holds& holds) {
  for (std::uint64_t candidate = 1; candidate < 2000; ++candidate) {
    p.*seed = candidate;
    bool all = true;
    for (std::int64_t b = 0; b < p.batch && all; ++b) all = holds(p, b);
    if (all) return candidate;
  }
  return std::nullopt;
}

/// Outputs that the other call owes, in their shapes, from the case's; a row that is not compared
/// holds 0.
[[nodiscard]] Outputs owed(const Variation& variation, const Outputs& of_case);

/// Entry b alone, with `keys` of its keys, ascending, under the case's Plan: mask, softcap, sinks,
/// slopes, bias and pages stay, layouts become contiguous, lengths, padding, prefix, documents,
/// lists and dropout are gone. What sums over entries is not owed, nor what pairs have, whose keys
/// are fewer.
[[nodiscard]] Variation entry_alone(const Case& c, std::int64_t b, std::vector<std::int64_t> keys);

}  // namespace attest
