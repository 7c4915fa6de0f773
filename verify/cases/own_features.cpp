// Fields that one operation has: codes and scales of quantised attention and of quantisers, parts
// of a merge, keys that are chosen.
#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "core/operations/combine.hpp"
#include "core/operations/quantise.hpp"
#include "core/operations/quantised.hpp"
#include "core/operations/select.hpp"
#include "verify/cases/feature_list.hpp"

namespace attest {
namespace {

/// Adds features of one operation's cases.
class OwnAdder {
 public:
  OwnAdder(std::vector<Feature>& list, const Operation& operation, std::string needs)
      : list_(list), operation_(operation), needs_(std::move(needs)) {}
  void operator()(std::string name, Predicate holds) const {
    list_.push_back(feature(std::move(name), {}, std::move(holds)));
    list_.back().needs = needs_;
    list_.back().operations = {&operation_};
  }

 private:
  std::vector<Feature>& list_;
  const Operation& operation_;
  std::string needs_;
};

constexpr auto all_codes = {Code::e4m3, Code::e5m2, Code::int8, Code::e2m1, Code::int4};

bool is_half_a_byte(const Case& c, Code code) {
  return format_of(format_with(code, c.problem.element_type)).elements_in_unit > 1;
}

/// Codes and scales of one tensor of an operation: `holder` is what features call it.
void add_codes(const OwnAdder& add, std::string_view holder, Code Codes::*code,
               Scales Codes::*scales, bool may_share_columns) {
  for (const Code one : all_codes) {
    add(fmt::format("{} in codes {}", holder, name_of(one)),
        [=](const Case& c) { return c.problem.codes.*code == one; });
  }
  for (const Scales kind :
       {Scales::none, Scales::head, Scales::block, Scales::row, Scales::column}) {
    if (kind == Scales::column && !may_share_columns) continue;
    add(fmt::format("{} in codes with scales: {}", holder, name_of(kind)), [=](const Case& c) {
      return c.problem.codes.*code != Code::none && c.problem.codes.*scales == kind;
    });
  }
  add(fmt::format("{} in codes of 4 bits, a half byte left over", holder), [=](const Case& c) {
    const Problem& p = c.problem;
    const std::int64_t columns = code == &Codes::v ? p.output_dim() : p.head_dim;
    return is_half_a_byte(c, p.codes.*code) && columns % 2 != 0;
  });
}

void add_quantised(std::vector<Feature>& list) {
  const OwnAdder add(list, quantised_operation, "a kernel of codes");
  add_codes(add, "Q", &Codes::q, &Codes::q_scales, false);
  add_codes(add, "K", &Codes::k, &Codes::k_scales, false);
  add_codes(add, "V", &Codes::v, &Codes::v_scales, true);
  add("scales of ue8m0",
      [](const Case& c) { return c.problem.codes.scale_format == ScaleFormat::ue8m0; });
  add("K and V in codes of unlike widths", [](const Case& c) {
    const Codes& codes = c.problem.codes;
    return is_half_a_byte(c, codes.k) != is_half_a_byte(c, codes.v);
  });
  add("blocks of scales, the last with a tail", [](const Case& c) {
    const Problem& p = c.problem;
    const bool has_blocks = p.codes.k_scales == Scales::block || p.codes.v_scales == Scales::block;
    return has_blocks && p.key_len > scale_block && p.key_len % scale_block != 0;
  });
  add("codes of 4 bits of packed entries", [](const Case& c) {
    return is_half_a_byte(c, c.problem.codes.k) && c.problem.length_seed != 0;
  });
  add("codes of 4 bits in pages", [](const Case& c) {
    return is_half_a_byte(c, c.problem.codes.k) && c.layouts.paging.is_used();
  });
}

void add_quantisers(std::vector<Feature>& list) {
  const OwnAdder add(list, quantise_operation, "a kernel that makes codes");
  add_codes(add, "a tensor made", &Codes::k, &Codes::k_scales, true);
  add("scales of ue8m0 are made",
      [](const Case& c) { return c.problem.codes.scale_format == ScaleFormat::ue8m0; });
}

void add_parts(std::vector<Feature>& list) {
  const OwnAdder add(list, combine_operation, "a kernel that merges parts");
  add("one part", [](const Case& c) { return c.problem.parts == 1; });
  add("more parts than a warp has lanes", [](const Case& c) { return c.problem.parts > 32; });
  for (const ElementType type : all_element_types()) {
    add(fmt::format("parts in {}", format_of(type).name),
        [type](const Case& c) { return c.problem.partial_type == type; });
  }
}

void add_choices(std::vector<Feature>& list) {
  const OwnAdder add(list, select_operation, "a kernel that chooses keys");
  add("no key is chosen", [](const Case& c) { return c.problem.top_k == 0; });
  add("one key is chosen", [](const Case& c) { return c.problem.top_k == 1; });
  add("all keys but one are chosen", [](const Case& c) {
    return c.problem.top_k > 0 && c.problem.top_k == c.problem.key_len - 1;
  });
  add("as many keys as there are are chosen",
      [](const Case& c) { return c.problem.top_k > 0 && c.problem.top_k == c.problem.key_len; });
  add("room for more keys than there are",
      [](const Case& c) { return c.problem.top_k > c.problem.key_len; });
  add("some of many keys are chosen", [](const Case& c) {
    return c.problem.top_k > 1 && c.problem.key_len > 256 && c.problem.top_k < c.problem.key_len;
  });
}

}  // namespace

void add_own_features(std::vector<Feature>& list) {
  add_quantised(list);
  add_quantisers(list);
  add_parts(list);
  add_choices(list);
}

}  // namespace attest
