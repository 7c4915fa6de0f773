#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "gpu/simt/test_buffer.hpp"
#include "gpu/simt/test_kernels.hpp"

namespace attest {
namespace {

template <typename Word>
constexpr ElementType type_of = sizeof(Word) == 2 ? ElementType::bf16 : ElementType::fp32;

/// Boxes as tensors hold them: a tensor in memory, NaN wherever no element is.
template <typename Word>
struct Picture {
  static constexpr int columns_of_a_box = 128 / sizeof(Word), chunk = 16 / sizeof(Word);
  Shape shape;
  Strides strides;
  int box_rows;
  std::int64_t first = 64;  // words of the memory before the tensor
  std::vector<Word> words;

  Picture(const Shape& s, const TensorLayout& layout, int rows)
      : shape(s), strides(strides_of(s, layout)), box_rows(rows) {
    words.assign(static_cast<std::size_t>(first + span_of(shape, layout) + 64), Word(~0U));
    for (int b = 0; b < shape[0]; ++b)
      for (int h = 0; h < shape[1]; ++h)
        for (int n = 0; n < shape[2]; ++n)
          for (int c = 0; c < shape[3]; ++c) words[place(b, h, n, c)] = value(place(b, h, n, c));
  }
  [[nodiscard]] std::size_t place(int b, int h, int n, int c) const {
    return static_cast<std::size_t>(first + strides.offset(b, h, n) + c);
  }
  static Word value(std::size_t place) { return static_cast<Word>((place + 1) * 40507U % 0xff00U); }
  [[nodiscard]] BoxedTensor tensor(const Word* memory) const {
    return {memory + first, type_of<Word>, shape[0], shape[1],
            shape[2],       shape[3],      strides,  box_rows};
  }
  [[nodiscard]] bool has(const BoxAt& at) const {
    return at[3] >= 0 && at[3] < shape[0] && at[2] >= 0 && at[2] < shape[1] && at[1] >= 0 &&
           at[1] < shape[2] && at[0] < shape[3];
  }
  /// Place of an element of a box in shared memory: 16-byte chunks of row r permuted by XOR with r
  /// mod 8.
  static std::size_t place_in_box(int r, int c) {
    return static_cast<std::size_t>(r * columns_of_a_box + ((c / chunk) ^ (r % 8)) * chunk +
                                    c % chunk);
  }
};

template <typename Word>
std::vector<Picture<Word>> pictures() {
  return {{{2, 3, 20, 72}, {.row_gap = 8, .plane_gap = 16}, 16},
          {{2, 2, 9, 128}, {.order = DimOrder::bnhd}, 8},
          {{1, 2, 33, 100}, {.row_gap = 4, .outer_gap = 8}, 32},
          {{1, 1, 1, 41}, {.row_gap = 7}, 8}};
}

/// Corners of boxes that cover a tensor; with `outside` also some that begin before or past it.
template <typename Word>
std::vector<BoxAt> corners(const Picture<Word>& p, bool outside) {
  std::vector<BoxAt> all;
  const auto [batch, heads, rows, columns] = p.shape;
  for (int b = 0; b < batch; ++b)
    for (int h = 0; h < heads; ++h)
      for (int c = 0; c < columns; c += Picture<Word>::columns_of_a_box)
        for (int n = 0; n < rows; n += p.box_rows) all.push_back({c, n, h, b});
  const auto [b, h, n, c] = std::array{int(batch), int(heads), int(rows), int(columns)};
  all.push_back({0, n, 0, 0});
  all.push_back({0, 0, h, 0});
  all.push_back({0, 0, 0, b});
  all.push_back({(c + 7) / 8 * 8, 0, 0, 0});
  if (outside)
    for (int d = 1; d < 4; ++d) all.push_back({0, d == 1 ? -3 : 0, -(d == 2), -(d == 3)});
  return all;
}

template <typename Word>
void expect_that_boxes_arrive() {
  simt::SimtDevice device;
  constexpr int after = 1024;
  for (const Picture<Word>& p : pictures<Word>()) {
    const TestBuffer<Word> memory(device, "tensor", p.words);
    const int bytes = p.box_rows * 128 + after;
    for (const BoxAt& at : corners(p, true)) {
      const TestBuffer<Word> out(device, "out", std::vector<Word>(bytes / sizeof(Word)));
      launch_load_box(device, p.tensor(memory.data()), at, 0, bytes,
                      reinterpret_cast<unsigned*>(out.data()));
      std::vector<Word> want(bytes / sizeof(Word), Word(~0U));
      for (int r = 0; r < p.box_rows; ++r)
        for (int c = 0; c < p.columns_of_a_box; ++c) {
          const BoxAt element{at[0] + c, at[1] + r, at[2], at[3]};
          want[p.place_in_box(r, c)] =
              p.has(element) ? p.words[p.place(at[3], at[2], element[1], element[0])] : Word(0);
        }
      ASSERT_EQ(out.read(), want) << fmt::format("{} at {}", fmt::join(p.shape, "x"),
                                                 fmt::join(at, ", "));
      ASSERT_EQ(text_of(device.take_findings()), "");
    }
  }
}

TEST(LoadBox, BringsSwizzledRowsAndZerosForWhatIsOutsideAndNothingElse) {
  expect_that_boxes_arrive<std::uint16_t>();
  expect_that_boxes_arrive<std::uint32_t>();
}

template <typename Word>
void expect_that_boxes_leave() {
  simt::SimtDevice device;
  for (const Picture<Word>& p : pictures<Word>()) {
    for (const BoxAt& at : corners(p, false)) {
      const TestBuffer<Word> memory(device, "tensor", p.words);
      std::vector<Word> image(static_cast<std::size_t>(p.box_rows) * p.columns_of_a_box);
      for (std::size_t i = 0; i < image.size(); ++i) image[i] = Word(0x1000 + i);
      const TestBuffer<Word> in(device, "in", image);
      launch_store_box(device, p.tensor(memory.data()), at,
                       reinterpret_cast<const unsigned*>(in.data()));
      std::vector<Word> want = p.words;
      for (int r = 0; r < p.box_rows; ++r)
        for (int c = 0; c < p.columns_of_a_box; ++c) {
          // Columns are clipped in units of 16 bytes.
          const BoxAt chunk{at[0] + c / p.chunk * p.chunk, at[1] + r, at[2], at[3]};
          if (p.has(chunk))
            want[p.place(at[3], at[2], chunk[1], at[0] + c)] = image[p.place_in_box(r, c)];
        }
      ASSERT_EQ(memory.read(), want)
          << fmt::format("{} at {}", fmt::join(p.shape, "x"), fmt::join(at, ", "));
      ASSERT_EQ(text_of(device.take_findings()), "");
    }
  }
}

TEST(StoreBox, WritesItsRowsInTheTensorAndNothingElse) {
  expect_that_boxes_leave<std::uint16_t>();
  expect_that_boxes_leave<std::uint32_t>();
}

TEST(Boxes, OfAMapThatIsLargerThanItsBufferAreOutOfBounds) {
  simt::SimtDevice device;
  const TestBuffer<std::uint16_t> memory(device, "tensor", std::vector<std::uint16_t>(16 * 64));
  const TestBuffer<unsigned> box(device, "box", std::vector<unsigned>(2048));
  for (const int rows : {16, 17}) {
    const BoxedTensor map{memory.data(), ElementType::bf16, 1, 1, rows, 64, {0, 0, 64}, 8};
    const auto judge = [&] {
      if (rows == 16)
        EXPECT_EQ(text_of(device.take_findings()), "");
      else
        expect_one(device, "out of bounds", {"buffer tensor, byte 2048 of 2048"});
    };
    launch_load_box(device, map, {0, 16 - 7, 0, 0}, 0, 1024, box.data());
    judge();
    launch_store_box(device, map, {0, 16 - 7, 0, 0}, box.data());
    judge();
  }
}

TEST(Boxes, BeginAtMultiplesOf128Bytes) {
  simt::SimtDevice device;
  const Picture<std::uint16_t> p = pictures<std::uint16_t>().front();
  const TestBuffer<std::uint16_t> memory(device, "tensor", p.words);
  const TestBuffer<unsigned> out(device, "out", std::vector<unsigned>(1024));
  launch_load_box(device, p.tensor(memory.data()), {}, 64, 4096, out.data());
  expect_one(device, "misaligned access", {});
}

}  // namespace
}  // namespace attest
