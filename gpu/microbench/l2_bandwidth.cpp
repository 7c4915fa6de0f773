#include <cuda.h>
#include <fmt/format.h>

#include "core/base/error.hpp"
#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/bf16_values.hpp"
#include "gpu/microbench/kernels.hpp"
#include "gpu/runtime/tensor_map.hpp"

namespace attest::microbench {
namespace {

struct Stream {
  int ranges, range_tiles;
  int blocks;
};

const char* name_of(Sharing sharing) {
  return sharing == Sharing::none             ? "16 KB boxes"
         : sharing == Sharing::none_in_halves ? "8 KB boxes"
                                              : "8 KB boxes multicast to pairs";
}

void read_stream(std::vector<Reading>& readings, const Stream& s, Sharing sharing) {
  const int tiles = 4096;
  const std::int64_t rows = std::int64_t{s.ranges} * s.range_tiles * stream_tile_rows;
  // Random: equal lines might travel together.
  const auto data = bf16_values(static_cast<std::size_t>(rows) * 64, Values::normal);
  const CUtensorMap map =
      tensor_map({.first = data.data(),
                  .rows = rows,
                  .columns = 64,
                  .strides = {.row = 64},
                  .box_rows = sharing == Sharing::none ? stream_tile_rows : stream_tile_rows / 2});
  const double bytes = 1.0 * tiles * stream_tile_bytes;
  read_into(
      readings,
      fmt::format("{} x {:.3g} MiB, {} SMs, {}", s.ranges,
                  s.range_tiles * stream_tile_bytes / 1048576.0, s.blocks, name_of(sharing)),
      {s.blocks, 5},
      [&](SmSpan* spans) {
        launch_stream(sharing, map, s.blocks, tiles, s.range_tiles, s.ranges,
                      reinterpret_cast<const std::uint32_t*>(data.data()), spans);
      },
      {{"B/clk/SM",
        [&](const LaunchTime& time) {
          if (time.work != 1)
            throw MachineError("tiles brought by TMA are not those that were asked for");
          return bytes / time.clk;
        }},
       {"TB/s", [&](const LaunchTime& time) { return 1e-12 * bytes * s.blocks / time.seconds; }}});
}

}  // namespace

std::vector<Reading> l2_bandwidth() {
  const int sms = sm_count();
  std::vector<Reading> readings;
  // K and V of a head of 8,192 keys and 128 dims are 4 MiB, 256 tiles; blocks of a head read the
  // same ones.
  for (const Stream& s : {Stream{1, 256, sms},
                          {2, 256, sms},
                          {8, 256, sms},
                          {16, 64, sms},
                          {sms / 2, 8, sms},
                          {sms / 2, 32, sms}}) {
    for (const Sharing sharing :
         {Sharing::none, Sharing::none_in_halves, Sharing::halves_for_both}) {
      read_stream(readings, s, sharing);
    }
  }
  for (const Stream& s : {Stream{sms, 8, sms}, {1, 256, 1}, {1, 256, 16}, {1, 256, sms / 2}}) {
    read_stream(readings, s, Sharing::none);
  }
  return readings;
}

}  // namespace attest::microbench
