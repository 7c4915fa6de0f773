// Where plugin.h keeps the fields of a Problem: the only place that says so.
#include "plugin/problem.hpp"

#include <algorithm>
#include <array>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "core/attention/problem_field.hpp"
#include "plugin/format.hpp"

namespace attest {
namespace {

using Value = decltype(FieldForKernels::value);

template <auto member>
void number(AttestProblem& problem, const Value& value) {
  using Member = std::remove_reference_t<decltype(problem.*member)>;
  problem.*member = std::visit([](auto x) { return static_cast<Member>(x); }, value);
}

/// A choice of which kernels claim sets.
template <auto member>
void bit(AttestProblem& problem, const Value& value) {
  problem.*member = 1U << static_cast<unsigned>(std::get<std::int64_t>(value));
}
static_assert(1U << static_cast<unsigned>(Mask::window_bottom_right) == ATTEST_WINDOW_BOTTOM_RIGHT);

template <auto member>
void format(AttestProblem& problem, const Value& value) {
  problem.*member = to_c(static_cast<ElementType>(std::get<std::int64_t>(value)));
}

/// AttestKernel says it.
void nowhere(AttestProblem& /*problem*/, const Value& /*value*/) {}

struct Place {
  std::string_view field;  ///< FieldForKernels::name
  void (*put)(AttestProblem&, const Value&);
};
using P = AttestProblem;
constexpr std::array<Place, 18> places{{{"operation", nowhere},
                                        {"batch", number<&P::batch>},
                                        {"query_heads", number<&P::query_heads>},
                                        {"kv_heads", number<&P::kv_heads>},
                                        {"query_len", number<&P::query_len>},
                                        {"key_len", number<&P::key_len>},
                                        {"head_dim", number<&P::head_dim>},
                                        {"value_dim", number<&P::value_dim>},
                                        {"mask", bit<&P::mask>},
                                        {"window_left", number<&P::window_left>},
                                        {"window_right", number<&P::window_right>},
                                        {"element_type", format<&P::element_type>},
                                        {"scale", number<&P::scale>},
                                        {"softcap", number<&P::softcap>},
                                        {"lengths", number<&P::has_lengths>},
                                        {"padding", number<&P::has_padding>},
                                        {"parts", number<&P::parts>},
                                        {"partial_type", format<&P::partial_type>}}};

}  // namespace

AttestProblem to_c(const Problem& problem, void* user_data) {
  AttestProblem result{};
  result.size = sizeof result;
  result.user_data = user_data;
  for (const ProblemField& field : problem_fields()) {
    const FieldForKernels told = for_kernels(field, problem);
    const auto* const place = std::ranges::find(places, told.name, &Place::field);
    if (place == places.end()) {
      throw std::logic_error("plugin.h has no place for the field " + std::string(told.name));
    }
    place->put(result, told.value);
  }
  return result;
}

}  // namespace attest
