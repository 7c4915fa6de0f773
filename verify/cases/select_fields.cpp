// How many keys are chosen: none, one, nearly all and all of them, more than there are, and any
// number between. V is no part of it.
#include <rapidcheck.h>

#include <algorithm>

#include "core/operations/select.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

namespace gen = rc::gen;

void draw_top_k(const KernelInfo& /*kernel*/, Problem& problem) {
  const std::int64_t keys = problem.key_len;
  const auto beside = *gen::element<std::int64_t>(-1, 0, 1, 7);
  const auto within = *gen::inRange<std::int64_t>(0, keys + 1);
  const auto usual = *gen::element<std::int64_t>(0, 1, 2, 16, 31, 32, 33, 64, 255, 256, 257, 2048);
  problem.top_k = std::max<std::int64_t>(
      0, *gen::weightedElement<std::int64_t>({{2, keys + beside}, {5, within}, {3, usual}}));
  // Lists of many rows with room that nothing fills would be all that a case holds.
  constexpr std::int64_t most_items = 1 << 20;
  const std::int64_t rows = std::max<std::int64_t>(problem.batch * problem.query_len, 1);
  problem.top_k = std::min(problem.top_k, std::max(keys, most_items / rows));
  problem.value_dim = 0;
}

const OwnFieldsRegistration registration{select_operation, draw_top_k};

}  // namespace
}  // namespace attest
