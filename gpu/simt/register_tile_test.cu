#include "gpu/primitives/launch.cuh"
#include "gpu/primitives/row_shuffle.cuh"
#include "gpu/primitives/shared_tile.cuh"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

__global__ void load_tile_of(const float* from, LoadCase c, TileLoad load, float* out) {
  const RowView<const float> rows{from, c.stride, c.count};
  const SharedTile tile{dynamic_shared<float>(), c.pitch};
  if (load == TileLoad::widest) {
    load_widest(rows, c.begin, c.rows, c.columns, c.filled, tile);
  } else {
    load_zeroed(rows, c.begin, c.rows, c.columns, c.filled, tile);
  }
  __syncthreads();
  for_each_element(c.rows, c.filled, [&](int row, int column) {
    out[row * c.filled + column] = tile.row(row)[column];
  });
}

__global__ void visit(int* counts, int rows, int columns) {
  for_each_element(rows, columns,
                   [&](int row, int column) { counts[row * columns + column] += 1; });
}

__global__ void row_sums(const float* values, float* sums, int row_threads) {
  sums[threadIdx.x] =
      over_row(values[threadIdx.x], row_threads, [](float a, float b) { return a + b; });
}

}  // namespace

void launch_load(Device& device, const float* from, const LoadCase& c, TileLoad load, float* out,
                 int threads) {
  launch(load_tile_of, dim3(1), dim3(static_cast<unsigned>(threads)),
         static_cast<std::size_t>(c.rows) * static_cast<std::size_t>(c.pitch) * sizeof(float),
         device, from, c, load, out);
}

void launch_visit(Device& device, int* counts, int rows, int columns, int threads) {
  launch(visit, dim3(1), dim3(static_cast<unsigned>(threads)), 0, device, counts, rows, columns);
}

void launch_row_sums(Device& device, const float* values, float* sums, int row_threads,
                     int threads) {
  launch(row_sums, dim3(1), dim3(static_cast<unsigned>(threads)), 0, device, values, sums,
         row_threads);
}

}  // namespace attest
