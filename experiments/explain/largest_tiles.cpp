#include "experiments/explain/largest_tiles.hpp"

#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <string_view>

#include "core/base/text.hpp"
#include "gpu/model/block_size.hpp"

namespace attest {
namespace {

struct NamedLayout {
  std::string_view name, key;
  BlockLayout layout;
};

std::array<NamedLayout, 3> layouts_of(const FitQuestion& q) {
  const auto e = static_cast<std::int64_t>(format_of(q.element_type).size_bytes);
  const BlockLayout document{.head_dim = q.head_dim, .element_bytes = e, .score_bytes = e};
  BlockLayout everything = document;
  everything.score_bytes = everything.output_bytes = 4;
  everything.statistics_bytes = 8;
  BlockLayout registers = document;
  registers.stages = 2;
  registers.score_bytes = 0;
  return {{{"Q, K, V and S in the element type: e (Br D + 2 Bc D + Br Bc)", "document", document},
           {"Q, K, V; S, O, m and l in fp32", "everything", everything},
           {"Q and two stages of K and V; S and O in registers", "two_stages", registers}}};
}

struct NamedRule {
  std::string_view name, key;
  BlockSizeRule rule;
};
constexpr std::array<NamedRule, 4> rules{
    {{"integers", "integers", BlockSizeRule::integers},
     {"multiples of 16", "multiples_of_16", BlockSizeRule::multiples_of_16},
     {"square, multiples of 16", "squares_of_16", BlockSizeRule::squares_of_16},
     {"powers of two", "powers_of_two", BlockSizeRule::powers_of_two}}};

ContinuousBlock continuous_of(const FitQuestion& q) {
  return continuous_block(
      q.head_dim, static_cast<std::int64_t>(format_of(q.element_type).size_bytes), q.budget_bytes);
}

BlockSize paper_rule(const FitQuestion& q) {
  return flash_attention_1_block(
      q.head_dim, static_cast<std::int64_t>(format_of(q.element_type).size_bytes), q.budget_bytes);
}

void print_row(std::string& to, std::string_view rule, std::string_view tiles,
               std::string_view product, std::string_view bytes) {
  append(to, "  {:<24} {:>15} {:>10} {:>10}\n", rule, tiles, product, bytes);
}

}  // namespace

std::string largest_tiles_text(const FitQuestion& q) {
  std::string to;
  append(to, "largest Br x Bc for {} bytes of shared memory, head_dim {}, {}\n", q.budget_bytes,
         q.head_dim, format_of(q.element_type).name);
  for (const NamedLayout& layout : layouts_of(q)) {
    append(to, "\n{}\n", layout.name);
    print_row(to, "", "Br x Bc", "product", "bytes");
    if (layout.key == "document") {
      const ContinuousBlock c = continuous_of(q);
      print_row(to, "real numbers, Br = 2 Bc",
                fmt::format("{:.1f} x {:.1f}", c.query_tile, c.key_tile),
                fmt::format("{:.0f}", c.query_tile * c.key_tile), std::to_string(q.budget_bytes));
    }
    for (const NamedRule& rule : rules) {
      const auto best = largest_block(layout.layout, q.budget_bytes, rule.rule);
      if (!best) {
        print_row(to, rule.name, "none fits", "", "");
        continue;
      }
      print_row(to, rule.name, fmt::format("{} x {}", best->query_tile, best->key_tile),
                std::to_string(best->query_tile * best->key_tile),
                std::to_string(shared_bytes(layout.layout, *best)));
    }
  }
  const BlockSize paper = paper_rule(q);
  append(to, "\nFlashAttention's rule, Bc = ceil(M / 4 D), Br = min(Bc, D): {} x {}\n",
         paper.query_tile, paper.key_tile);
  append(to, "Of equal products the one with fewest bytes wins, then the most square one.\n");
  return to;
}

Json largest_tiles_json(const FitQuestion& q) {
  const ContinuousBlock c = continuous_of(q);
  const BlockSize paper = paper_rule(q);
  Json json{
      {"budget_bytes", q.budget_bytes},
      {"head_dim", q.head_dim},
      {"element_type", format_of(q.element_type).name},
      {"continuous", {{"query_tile", c.query_tile}, {"key_tile", c.key_tile}}},
      {"flash_attention_1", {{"query_tile", paper.query_tile}, {"key_tile", paper.key_tile}}}};
  for (const NamedLayout& layout : layouts_of(q)) {
    for (const NamedRule& rule : rules) {
      const auto best = largest_block(layout.layout, q.budget_bytes, rule.rule);
      Json& cell = json["layouts"][std::string(layout.key)][std::string(rule.key)];
      if (!best) continue;  // null
      cell = {{"query_tile", best->query_tile},
              {"key_tile", best->key_tile},
              {"bytes", shared_bytes(layout.layout, *best)}};
    }
  }
  return json;
}

}  // namespace attest
