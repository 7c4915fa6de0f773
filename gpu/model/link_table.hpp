#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gpu/model/device_table.hpp"

namespace attest {

/// Facts about a way between GPUs. Nothing here is measured on the machine at hand.
struct LinkModel {
  std::string_view name;   ///< on the command line: `nvlink4`
  std::string_view title;  ///< `NVLink 4`
  double bytes_per_s;      ///< of a GPU in one direction, data sheet
  /// Bytes of long messages that others saw, of a GPU in one direction while the other is as busy
  /// where the source says that.
  double reached_bytes_per_s;
  std::int64_t most_gpus;   ///< that it joins in common machines; 0: any number
  std::string_view source;  ///< where the numbers are from
};

[[nodiscard]] std::span<const LinkModel> all_link_models();
/// Names of all links, as a sentence lists them.
[[nodiscard]] std::string names_of_links();
/// Link of a name. Throws InvalidInput for an unknown name.
[[nodiscard]] const LinkModel& link_model_from_name(std::string_view name);

/// Slowest link of a ring of so many GPUs: the device's own while that joins them all, else what
/// joins hosts, one network card a GPU, if that is slower.
[[nodiscard]] const LinkModel& slowest_link(const GpuModel& gpu, std::int64_t gpus);

}  // namespace attest
