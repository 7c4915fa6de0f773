#include <cuda.h>
#include <fmt/format.h>

#include "gpu/microbench/benchmarks.hpp"
#include "gpu/microbench/kernels.hpp"
#include "gpu/runtime/device_buffer.hpp"
#include "gpu/runtime/tensor_map.hpp"

namespace attest::microbench {
namespace {

struct Stream {
  int ranges, range_tiles;  ///< tiles of 16 KB: 64 columns and 128 rows of bf16
  int blocks;
};

void read_stream(std::vector<Reading>& readings, const Stream& s, bool multicast) {
  const int tiles = 4096;
  const std::int64_t rows = std::int64_t{s.ranges} * s.range_tiles * stream_tile_rows;
  const DeviceBuffer<std::uint16_t> data(static_cast<std::size_t>(rows) * 64);
  ATTEST_CUDA_CHECK(cudaMemset(data.data(), 0x3c, data.size() * 2));
  const CUtensorMap map =
      tensor_map({.first = data.data(),
                  .rows = rows,
                  .columns = 64,
                  .strides = {.row = 64},
                  .box_rows = multicast ? stream_tile_rows / 2 : stream_tile_rows});
  const double bytes = 1.0 * tiles * stream_tile_bytes;
  read_into(
      readings,
      fmt::format("{} x {:.3g} MiB, {} SMs{}", s.ranges,
                  s.range_tiles * stream_tile_bytes / 1048576.0, s.blocks,
                  multicast ? ", multicast to pairs" : ""),
      {s.blocks, 5},
      [&](SmSpan* spans) {
        launch_stream(multicast, map, s.blocks, tiles, s.range_tiles, s.ranges, spans);
      },
      {{"B/clk/SM", [&](const LaunchTime& time) { return bytes / time.clk; }},
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
    read_stream(readings, s, false);
    read_stream(readings, s, true);
  }
  for (const Stream& s : {Stream{sms, 8, sms}, {1, 256, 1}, {1, 256, 16}, {1, 256, sms / 2}}) {
    read_stream(readings, s, false);
  }
  return readings;
}

}  // namespace attest::microbench
