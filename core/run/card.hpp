#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace attest {

/// GPU, as far as default Plans tell cards apart. 0 or below: not known.
struct Card {
  std::string_view name;       ///< as the driver says it: `NVIDIA H200`
  int compute_capability = 0;  ///< 90 stands for 9.0
  int sms = 0;                 ///< streaming multiprocessors
  double terabytes_per_s = 0;  ///< of its memory, 10^12 bytes

  friend bool operator==(const Card&, const Card&) = default;
};

/// SMs of the card on which kernels' own rules and first Plans were made, an H200.
inline constexpr int sms_of_rules = 132;

/// Cards whose facts are known before any of them is asked: every Hopper card that is sold, and
/// those of gpu/model/device_table.
[[nodiscard]] std::span<const Card> known_cards();

/// Card of a Device::description(), or of its name alone. Where the description tells `sm_90`,
/// `78 SMs`, that counts: a GPU may be lent in part. Memory is what known_cards() say, for its rows
/// are data sheets' alike, else `4.0 TB/s` of the description. `description` outlives the card.
[[nodiscard]] Card card_in(std::string_view description);

/// Distance of two cards in octaves: of their numbers of SMs, and of memory bandwidth for each SM,
/// added up; what one of them does not know is no distance. Nothing where compute capabilities
/// differ or are not known, unless the names are the same.
[[nodiscard]] std::optional<double> octaves_between(const Card& a, const Card& b);

/// Short line: `NVIDIA H20 (sm_90, 78 SMs, 4.0 TB/s)`, without what is not known.
[[nodiscard]] std::string to_string(const Card& card);

}  // namespace attest
