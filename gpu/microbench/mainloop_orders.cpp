#include <fmt/format.h>

#include <array>
#include <cmath>

#include "core/base/error.hpp"
#include "gpu/microbench/benchmark.hpp"
#include "gpu/microbench/bf16_values.hpp"
#include "gpu/microbench/kernels.hpp"

namespace attest::microbench {
namespace {

constexpr std::array order_names{"serial", "turns", "overlap", "turns and overlap"};
constexpr std::array maximum_names{"", ", lazy", ", unchecked"};

std::string name_of(const Mainloop& form) {
  return fmt::format(
      "D{} {}x{}, {}{}{}", form.head_dim, form.groups * 64, form.key_rows,
      order_names[static_cast<std::size_t>(form.order)],
      maximum_names[static_cast<std::size_t>(form.maximum)],
      form.emulated > 0 ? fmt::format(", {:.1f} % emulated", form.emulated * 12.5) : "");
}

bool same_tile(const Mainloop& a, const Mainloop& b) {
  return a.head_dim == b.head_dim && a.key_rows == b.key_rows && a.groups == b.groups;
}

/// Throws MachineError unless two forms of one tile computed the same outputs, as far as weights
/// rounded to bf16 let them: what computes nothing is fast.
void check(const std::vector<float>& got, const std::vector<float>& want, const std::string& name) {
  constexpr double bf16_roundoff = 0x1p-8;
  double square = 0, square_difference = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double w = want[i], difference = got[i] - w;
    square += w * w;
    square_difference += difference * difference;
  }
  if (!(square > 0 && std::sqrt(square_difference / square) <= bf16_roundoff)) {
    throw MachineError(
        fmt::format("mainloop '{}' computes something else than the first form of its tile: root "
                    "mean square {} off {}",
                    name, std::sqrt(square_difference), std::sqrt(square)));
  }
}

}  // namespace

std::vector<Reading> mainloop_orders() {
  constexpr double flops_a_launch = 6e10;  // of an SM: about 10 ms
  const int blocks = sm_count();
  std::vector<Reading> readings;
  std::vector<float> first;
  Mainloop first_form{};
  for (const Mainloop& form : mainloops()) {
    const DeviceBuffer<float> sink(static_cast<std::size_t>(blocks * form.groups) * 128);
    const auto values = bf16_values(
        static_cast<std::size_t>((form.groups * 64 + 4 * form.key_rows) * form.head_dim),
        Values::normal);
    const double flops = 4.0 * 64 * form.groups * form.key_rows * form.head_dim;
    const int tiles = static_cast<int>(flops_a_launch / flops);
    read_into(readings, name_of(form), {blocks, 3},
              [&](SmSpan* spans) { form.launch(blocks, tiles, values.data(), sink.data(), spans); },
              {{"FLOP/clk/SM", [&](const LaunchTime& time) { return flops * tiles / time.clk; }},
               {"TFLOP/s", [&](const LaunchTime& time) {
                  return 1e-12 * flops * tiles * blocks / time.seconds;
                }}});
    std::vector<float> outputs(sink.size());
    sink.copy_to(outputs);
    if (!same_tile(form, first_form)) {
      first = outputs;
      first_form = form;
    }
    check(outputs, first, name_of(form));
  }
  return readings;
}

}  // namespace attest::microbench
