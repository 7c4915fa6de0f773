#include "gpu/simt/hardware_exp2.hpp"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

namespace attest::simt {
namespace {

/// Coefficients of segment s; with t = f - s / 64: 2^f - 1 = value 2^-25 + slope 2^-16 t +
/// curvature 2^-11 t^2.
struct Coefficients {
  std::int64_t value, slope, curvature;
};
constexpr std::array<Coefficients, 64> segments{
    {{3, 45426, 494},        {365386, 45920, 501},   {734750, 46420, 506},
     {1108133, 46926, 511},  {1485586, 47436, 518},  {1867145, 47954, 521},
     {2252860, 48476, 527},  {2642777, 49004, 532},  {3036940, 49536, 541},
     {3435393, 50076, 546},  {3838184, 50622, 551},  {4245365, 51172, 559},
     {4656977, 51730, 564},  {5073072, 52294, 568},  {5493699, 52862, 577},
     {5918905, 53438, 583},  {6348741, 54020, 589},  {6783258, 54608, 596},
     {7222505, 55204, 600},  {7666538, 55804, 609},  {8115404, 56412, 615},
     {8569160, 57026, 622},  {9027854, 57648, 627},  {9491545, 58276, 633},
     {9960285, 58910, 641},  {10434129, 59552, 647}, {10913133, 60200, 655},
     {11397354, 60856, 661}, {11886846, 61518, 670}, {12381669, 62188, 677},
     {12881882, 62864, 686}, {13387539, 63550, 691}, {13898703, 64242, 699},
     {14415435, 64942, 705}, {14937793, 65648, 715}, {15465837, 66364, 721},
     {15999633, 67086, 730}, {16539242, 67816, 739}, {17084727, 68554, 748},
     {17636150, 69302, 753}, {18193579, 70056, 763}, {18757078, 70818, 773},
     {19326714, 71590, 779}, {19902551, 72370, 787}, {20484659, 73158, 796},
     {21073106, 73954, 806}, {21667961, 74760, 813}, {22269293, 75574, 822},
     {22877175, 76396, 833}, {23491674, 77228, 842}, {24112865, 78070, 849},
     {24740822, 78920, 858}, {25375616, 79778, 870}, {26017322, 80648, 877},
     {26666015, 81526, 887}, {27321773, 82414, 896}, {27984672, 83310, 909},
     {28654788, 84218, 917}, {29332202, 85136, 925}, {30016992, 86062, 938},
     {30709240, 87000, 946}, {31409026, 87946, 959}, {32116431, 88904, 969},
     {32831540, 89872, 980}}};
// In units of 2^-39, added before the sum is cut: about what the square and the cut lose on
// average.
constexpr std::int64_t bias = 12228;

/// The hardware's square of 17 bits: without the partial products below 2^19. In units of 2^19.
std::int64_t truncated_square(std::uint32_t x) {
  // The upper 8 bits meet at 2^19 and above, except the lowest of them with itself.
  const std::uint32_t high = x >> 9U, low = x & 0x1ffU;
  std::uint32_t square = (high * high - (high & 1U)) / 2;
  for (std::uint32_t j = 10; j < 17; ++j) {
    const std::uint32_t partners = low >> (18 - j) << (18 - j);  // bits i with i + j + 1 >= 19
    square += (x >> j & 1U) * (partners << (j + 1) >> 19U);
  }
  return square;
}

/// The 23 bits of fraction of 2^(f 2^-23), f < 2^23: 6 bits name the segment, 17 the place in it.
std::uint32_t significand(std::uint32_t f) {
  const Coefficients& c = segments[f >> 17U];
  const std::uint32_t x = f & 0x1ffffU;
  const std::int64_t sum =
      c.value * (1 << 14) + bias + c.slope * x + c.curvature * 2 * truncated_square(x);
  return static_cast<std::uint32_t>(sum >> 16U);
}

}  // namespace

float hardware_exp2(float x) noexcept {
  if (x != x) return std::bit_cast<float>(0x7fffffffU);
  if (x >= 128) return std::numeric_limits<float>::infinity();
  if (x < -126) return 0;  // flushed
  // Cut toward zero, not rounded.
  const auto size = static_cast<std::uint32_t>((x < 0 ? -x : x) * 0x1p23F);
  std::int32_t exponent = static_cast<std::int32_t>(size >> 23U);
  std::uint32_t fraction = size & 0x7fffffU;
  if (x < 0) {
    // The complement of the bits, not the negative number: one too low, but whole numbers are
    // right.
    exponent = -exponent - (fraction == 0 ? 0 : 1);
    fraction = fraction == 0 ? 0 : significand(0x7fffffU - fraction);
  } else {
    fraction = significand(fraction);
  }
  return std::bit_cast<float>(static_cast<std::uint32_t>(exponent + 127) << 23U | fraction);
}

}  // namespace attest::simt
