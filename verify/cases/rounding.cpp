#include "verify/cases/rounding.hpp"

#include <algorithm>
#include <array>

#include "core/attention/layout_needs.hpp"
#include "core/inputs/input_family.hpp"
#include "verify/cases/plain.hpp"

namespace attest {
namespace {

struct Rounding {
  std::int64_t length_unit;
  std::int64_t head_dim = 0;  ///< 0: the nearest multiple of 16. Others: and a dense problem
                              ///< without grouped heads
  bool is_square = false;     ///< and one head, as many queries as keys
};

/// Taken in turn: the kernel that refuses least keeps most of what was drawn.
constexpr std::array<Rounding, 10> roundings{
    {{.length_unit = 16},
     {.length_unit = 64},
     {.length_unit = 128},
     {.length_unit = 128, .head_dim = 64},
     {.length_unit = 128, .head_dim = 128},
     {.length_unit = 256, .head_dim = 64},
     {.length_unit = 128, .head_dim = 64, .is_square = true},
     {.length_unit = 128, .head_dim = 128, .is_square = true},
     {.length_unit = 512, .head_dim = 64, .is_square = true},
     {.length_unit = 512, .head_dim = 128, .is_square = true}}};

/// The nearest multiple of `unit` from `unit` to `most`, or the length where there is none.
std::int64_t nearest_multiple(std::int64_t length, std::int64_t unit, std::int64_t most) {
  if (unit > most) return length;
  return std::clamp<std::int64_t>((length + unit / 2) / unit, 1, most / unit) * unit;
}

}  // namespace

Case rounded_case(const KernelInfo& kernel, const GeneratorOptions& options, Case c,
                  std::int64_t refused) {
  if (refused < refusals_as_drawn) return c;
  const auto step = static_cast<std::size_t>(refused - refusals_as_drawn) % roundings.size();
  const Rounding& rounding = roundings[step];
  Problem& p = c.problem;
  if (rounding.head_dim > 0) {
    p = plain_problem(kernel, p);
    p.kv_heads = p.query_heads;
  }
  const SizeLimits most = options.limits(usual_sizes);
  const std::int64_t longest = 4 * most.len;
  p.query_len = nearest_multiple(p.query_len, rounding.length_unit, longest);
  p.key_len = nearest_multiple(p.key_len, rounding.length_unit, longest);
  if (rounding.is_square) {
    p.batch = p.query_heads = p.kv_heads = 1;
    p.key_len = p.query_len;
  }
  if (kernel.head_dims.empty() && input_family(c.inputs.family).head_dims.empty()) {
    p.head_dim = rounding.head_dim > 0 ? std::min(rounding.head_dim, most.head_dim)
                                       : nearest_multiple(p.head_dim, 16, most.head_dim);
    if (p.value_dim == p.head_dim) p.value_dim = 0;
  }
  p = with_needs_of(kernel, p);
  c.layouts = fitted(kernel.layout_needs, p, c.layouts);
  return c;
}

}  // namespace attest
