#include "gpu/model/link_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/base/error.hpp"
#include "core/base/text.hpp"

namespace attest {
namespace {

constexpr std::string_view between_hosts = "ndr";

constexpr std::array links{
    LinkModel{.name = "nvlink4",
              .title = "NVLink 4",
              .bytes_per_s = 450e9,
              .reached_bytes_per_s = 374e9,
              .most_gpus = 8,
              .source = "H100 data sheet; half of 749 GB/s both ways by copy engines, nccl#1264"},
    LinkModel{.name = "nvlink3",
              .title = "NVLink 3",
              .bytes_per_s = 300e9,
              .reached_bytes_per_s = 230e9,
              .most_gpus = 8,
              .source = "A100 data sheet; what NCCL reaches by its authors, nccl-tests#149"},
    LinkModel{.name = "nvlink_bridge",
              .title = "NVLink bridge of two A6000",
              .bytes_per_s = 56.25e9,
              .reached_bytes_per_s = 50.8e9,
              .most_gpus = 2,
              .source = "GA102 white paper; half of 101.6 GB/s both ways of A40, nccl-tests#74"},
    LinkModel{.name = "pcie5",
              .title = "PCIe 5.0 x16",
              .bytes_per_s = 63e9,
              .reached_bytes_per_s = 54.3e9,
              .most_gpus = 8,
              .source = "PCI-SIG; one way at a time, lukealonso/p2pmark"},
    LinkModel{.name = "pcie4",
              .title = "PCIe 4.0 x16",
              .bytes_per_s = 31.5e9,
              .reached_bytes_per_s = 25e9,
              .most_gpus = 8,
              .source = "PCI-SIG; half of 50 GB/s both ways of A40, nccl-tests#74"},
    LinkModel{.name = "pcie3",
              .title = "PCIe 3.0 x16",
              .bytes_per_s = 15.75e9,
              .reached_bytes_per_s = 15.75e9,
              .most_gpus = 8,
              .source = "PCI-SIG; as if all of it were reached"},
    LinkModel{.name = between_hosts,
              .title = "InfiniBand NDR, a card of 400 Gb/s a GPU",
              .bytes_per_s = 50e9,
              .reached_bytes_per_s = 47e9,
              .most_gpus = 0,
              .source = "400 Gb/s; 46 to 48 GB/s by NCCL's authors, nccl-tests#290"}};

}  // namespace

std::span<const LinkModel> all_link_models() {
  return links;
}

std::string names_of_links() {
  std::string names;
  for (const LinkModel& link : links) {
    names += fmt::format("{}{}", names.empty() ? "" : ", ", link.name);
  }
  return names;
}

const LinkModel& link_model_from_name(std::string_view name) {
  const auto found = std::ranges::find(links, name, &LinkModel::name);
  if (found != links.end()) return *found;
  throw InvalidInput(
      fmt::format("link '{}' is unknown; allowed: {}", printable(name), names_of_links()));
}

const LinkModel& slowest_link(const GpuModel& gpu, std::int64_t gpus) {
  const LinkModel& own = link_model_from_name(gpu.link);
  if (gpus <= own.most_gpus) return own;
  const LinkModel& network = link_model_from_name(between_hosts);
  return network.reached_bytes_per_s < own.reached_bytes_per_s ? network : own;
}

}  // namespace attest
