#include "core/run/card.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

#include "core/run/tuning_key.hpp"

namespace attest {
namespace {

// Names are those of the driver's list of supported GPUs. SMs and bandwidth: NVIDIA's data sheets
// and product briefs of each card; the H100 NVL's SMs follow from its 60 TFLOP/s of fp32 at 1,785
// MHz, and H20's, of which there is no public sheet, from what its owners' programs print.
constexpr Card cards[]{{"NVIDIA H100 80GB HBM3", 90, 132, 3.35},
                       {"NVIDIA H100 PCIe", 90, 114, 2.0},
                       {"NVIDIA H100 NVL", 90, 132, 3.9},
                       {"NVIDIA H800", 90, 132, 3.35},
                       {"NVIDIA H800 PCIe", 90, 114, 2.0},
                       {"NVIDIA H200", 90, 132, 4.8},
                       {"NVIDIA H200 NVL", 90, 132, 4.8},
                       {"NVIDIA H20", 90, 78, 4.0},
                       {"NVIDIA H20-3e", 90, 78, 4.8},
                       {"NVIDIA GH200 120GB", 90, 132, 4.0},  // of the CPU's memory; its own: 96 GB
                       {"NVIDIA GH200 480GB", 90, 132, 4.0},  // likewise
                       {"NVIDIA GH200 144G HBM3e", 90, 132, 4.9},
                       {"NVIDIA A100-SXM4-80GB", 80, 108, 2.039},
                       {"NVIDIA RTX A6000", 86, 84, 0.768},
                       {"Tesla T4", 75, 40, 0.32}};

/// Number between the two; nothing where the text is no such thing.
template <typename Number>
std::optional<Number> number_in(std::string_view text, std::string_view before,
                                std::string_view after) {
  if (!text.starts_with(before) || !text.ends_with(after)) return std::nullopt;
  text.remove_prefix(before.size());
  text.remove_suffix(std::min(after.size(), text.size()));
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return number;
}

double octaves(double a, double b) {
  return a > 0 && b > 0 ? std::abs(std::log2(a) - std::log2(b)) : 0;  // the same either way
}

double bandwidth_of_sm(const Card& card) {
  return card.sms > 0 ? card.terabytes_per_s / card.sms : 0;
}

}  // namespace

std::span<const Card> known_cards() {
  return cards;
}

Card card_in(std::string_view description) {
  Card card{.name = gpu_name_in(description)};
  const auto* const known = std::ranges::find(cards, card.name, &Card::name);
  if (known != std::end(cards)) card = *known;
  for (std::size_t at = card.name.size(); at < description.size();) {
    at += 2;  // past `, `
    const std::size_t end = std::min(description.find(", ", at), description.size());
    const std::string_view part = description.substr(at, end - at);
    at = end;
    if (const auto capability = number_in<int>(part, "sm_", "")) {
      card.compute_capability = *capability;
    } else if (const auto sms = number_in<int>(part, "", " SMs")) {
      card.sms = *sms;
    } else if (const auto bandwidth = number_in<double>(part, "", " TB/s");
               bandwidth && known == std::end(cards)) {
      card.terabytes_per_s = *bandwidth;
    }
  }
  return card;
}

std::optional<double> octaves_between(const Card& a, const Card& b) {
  const bool are_alike = a.compute_capability > 0 && a.compute_capability == b.compute_capability;
  if (!are_alike && a.name != b.name) return std::nullopt;
  return octaves(a.sms, b.sms) + octaves(bandwidth_of_sm(a), bandwidth_of_sm(b));
}

std::string to_string(const Card& card) {
  std::vector<std::string> facts;
  if (card.compute_capability > 0) facts.push_back(fmt::format("sm_{}", card.compute_capability));
  if (card.sms > 0) facts.push_back(fmt::format("{} SMs", card.sms));
  if (card.terabytes_per_s > 0) facts.push_back(fmt::format("{:.1f} TB/s", card.terabytes_per_s));
  return facts.empty() ? std::string(card.name)
                       : fmt::format("{} ({})", card.name, fmt::join(facts, ", "));
}

}  // namespace attest
