#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "gpu/primitives/boxed_test.hpp"
#include "gpu/primitives/test_kernels.hpp"
#include "gpu/runtime/test_device.hpp"

namespace attest {
namespace {

class GpuTma : public OnHopper {
 protected:
  template <typename Word>
  std::string wrong_load(const Boxed& t) {
    const auto memory = on_device(picture_of<Word>(t));
    const std::vector<BoxCorner> corners = covering_boxes<Word>(t);
    const auto on_gpu = on_device(corners);
    const std::size_t box_words =
        static_cast<std::size_t>(t.box_rows * panel_row_bytes + bytes_after_box) / sizeof(Word);
    DeviceBuffer<Word> out{box_words * corners.size()};
    launch_load_boxes(map_of(t, memory), on_gpu.data(), static_cast<int>(corners.size()),
                      t.box_rows, bytes_of(out), device());
    const std::vector<Word> got = read_back(out, device());

    std::vector<Word> want(got.size(), poison<Word>);
    for (std::size_t i = 0; i < corners.size(); ++i) {
      for_each_element<Word>(t, corners[i], [&](std::size_t place, std::optional<std::size_t> at) {
        want[i * box_words + place] = at ? value_of<Word>(*at) : Word{0};
      });
    }
    const auto [g, w] = std::ranges::mismatch(got, want);
    if (g == got.end()) return "";
    const auto at = static_cast<std::size_t>(g - got.begin());
    return fmt::format("{}: box from {}: word {}: {:x} instead of {:x}", t.words(),
                       fmt::join(corners[at / box_words], ","), at % box_words, *g, *w);
  }

  /// Boxes i of a tensor of `boxes` * rows rows, as they lie in shared memory.
  static std::vector<std::uint16_t> boxes_in_shared(const Boxed& t, int boxes, int rows) {
    std::vector<std::uint16_t> want;
    Boxed whole = t;
    whole.box_rows = rows;
    for (int i = 0; i < boxes; ++i) {
      const std::size_t begin = want.size();
      want.resize(begin + static_cast<std::size_t>(rows) * 64);
      for_each_element<std::uint16_t>(whole, {0, i * rows, 0, 0},
                                      [&](std::size_t place, std::optional<std::size_t> at) {
                                        want[begin + place] = value_of<std::uint16_t>(at.value());
                                      });
    }
    return want;
  }
};

TEST_F(GpuTma, ABoxArrivesSwizzledWithZerosOutsideTheTensorAndNothingOfItsGapsAndNeighbours) {
  for (const Boxed& t : boxed_tensors()) EXPECT_EQ(wrong_load<std::uint16_t>(t), "");
}

TEST_F(GpuTma, ABoxOf32BitElementsHasHalfAsManyColumns) {
  for (const Boxed& t : boxed_tensors()) EXPECT_EQ(wrong_load<std::uint32_t>(t), "");
}

TEST_F(GpuTma, EntriesMayLieMoreThan4GiBApart) {
  const Boxed t{.shape = {2, 1, 70, 64}, .layout = {.outer_gap = far_elements}};
  const auto entry = [&](int b) {
    std::vector<std::uint16_t> values;
    for (int i = 0; i < 70 * 64; ++i)
      values.push_back(value_of<std::uint16_t>(static_cast<std::size_t>(b * 70 * 64 + i)));
    std::vector<std::byte> bytes(values.size() * 2);
    std::memcpy(bytes.data(), values.data(), bytes.size());
    return bytes;
  };
  const auto second = static_cast<std::size_t>(t.strides().batch) * 2;
  ASSERT_GT(second, std::size_t{1} << 32U);
  std::byte* const memory = device().upload(
      {.name = "far",
       .pieces = {{.begin = 0, .bytes = entry(0)}, {.begin = second, .bytes = entry(1)}}});
  const CUtensorMap map = tensor_map({.first = memory,
                                      .type = ElementType::fp16,
                                      .batch = 2,
                                      .rows = 70,
                                      .columns = 64,
                                      .strides = t.strides(),
                                      .box_rows = 64});
  const auto corners = on_device(std::vector<BoxCorner>{{0, 6, 0, 1}});
  constexpr std::size_t box_words = 64 * 64;
  DeviceBuffer<std::uint16_t> out{box_words + bytes_after_box / 2};
  launch_load_boxes(map, corners.data(), 1, 64, bytes_of(out), device());
  device().release(memory);
  const std::vector<std::uint16_t> got = read_back(out, device());
  for (int r = 0; r < 64; ++r) {
    for (int c = 0; c < 64; ++c) {
      const auto place = static_cast<std::size_t>(swizzled_chunk(r, c / 8) / 2 + c % 8);
      const auto element = static_cast<std::size_t>(70 * 64 + (6 + r) * 64 + c);
      ASSERT_EQ(got[place], value_of<std::uint16_t>(element)) << r << ' ' << c;
    }
  }
}

// Where rows are no multiple of 16 bytes, what the box holds beyond them is stored as far as the
// next one: the hardware's, not ours, but whoever stores must know it.
TEST_F(GpuTma, AStoredBoxIsClippedAfterTheLast16BytesOfARowAndWritesNothingElse) {
  for (const Boxed& t : boxed_tensors()) {
    // The memory is a picture whose elements are all poison too, so that each must be written.
    std::vector<std::uint16_t> want = picture_of<std::uint16_t>(t);
    const auto memory = on_device(std::vector<std::uint16_t>(want.size(), poison<std::uint16_t>));
    const auto [batch, heads, rows, columns] = t.shape;
    for (int b = 0; b < batch; ++b)
      for (int h = 0; h < heads; ++h)
        for (int n = 0; n < rows; ++n)
          for (auto c = columns; c % 8 != 0; ++c) want[t.place(b, h, n, c)] = 0;
    std::vector<BoxCorner> corners = covering_boxes<std::uint16_t>(t);
    std::erase_if(corners, [](const BoxCorner& corner) { return corner[1] < 0; });
    const auto on_gpu = on_device(corners);
    const std::size_t box_words = static_cast<std::size_t>(t.box_rows) * 64;
    // What must not be stored is 0: it would be seen on the poison.
    std::vector<std::uint16_t> boxes(box_words * corners.size());
    for (std::size_t i = 0; i < corners.size(); ++i) {
      for_each_element<std::uint16_t>(
          t, corners[i], [&](std::size_t place, std::optional<std::size_t> at) {
            if (at) boxes[i * box_words + place] = value_of<std::uint16_t>(*at);
          });
    }
    const auto in = on_device(boxes);
    launch_store_boxes(map_of(t, memory), on_gpu.data(), static_cast<int>(corners.size()),
                       t.box_rows, bytes_of(in), device());
    const std::vector<std::uint16_t> got = read_back(memory, device());
    const auto [g, w] = std::ranges::mismatch(got, want);
    ASSERT_EQ(g, got.end()) << t.words() << ": element " << g - got.begin() << " is " << *g
                            << " instead of " << *w;
  }
}

TEST_F(GpuTma, ABoxSentToASetOfBlocksArrivesInEachOfThemAndNowhereElse) {
  constexpr int rows = 16;
  const Boxed t{.shape = {1, 1, 2 * rows, 64}, .box_rows = rows};
  const auto memory = on_device(picture_of<std::uint16_t>(t));
  const std::vector<std::uint16_t> boxes = boxes_in_shared(t, 2, rows);
  constexpr std::size_t box_words = rows * 64;
  for (const std::array<unsigned, 2>& targets :
       {std::array{3U, 3U}, {1U, 2U}, {2U, 1U}, {3U, 0U}, {2U, 3U}}) {
    DeviceBuffer<std::uint16_t> out{4 * box_words};
    launch_multicast(map_of(t, memory), targets, rows, bytes_of(out), device());
    std::vector<std::uint16_t> want(out.size(), poison<std::uint16_t>);
    for (std::size_t block = 0; block < 2; ++block) {
      for (std::size_t box = 0; box < 2; ++box) {
        if ((targets[box] >> block & 1U) == 0) continue;
        std::ranges::copy(
            std::span(boxes).subspan(box * box_words, box_words),
            want.begin() + static_cast<std::ptrdiff_t>((2 * block + box) * box_words));
      }
    }
    EXPECT_EQ(read_back(out, device()), want) << targets[0] << ' ' << targets[1];
  }
}

using GpuMbarrier = GpuTma;

constexpr int boxes_through_rings = 23;

// Rounds are several times the stages, so that every barrier goes through both parities often; each
// side in turn is slow, so that the other would run ahead if it did not wait.
TEST_F(GpuMbarrier, ARingPassesEveryBoxOnceInOrderWhicheverSideIsSlow) {
  const Boxed t{.shape = {1, 1, boxes_through_rings * 8, 64}, .box_rows = 8};
  const auto memory = on_device(picture_of<std::uint16_t>(t));
  const std::vector<std::uint16_t> want = boxes_in_shared(t, boxes_through_rings, 8);
  for (int stages = 1; stages <= 4; ++stages) {
    for (const SlowSide slow : {SlowSide::none, SlowSide::producer, SlowSide::consumers}) {
      DeviceBuffer<std::uint16_t> out{want.size()};
      launch_ring(map_of(t, memory), boxes_through_rings, stages, slow, bytes_of(out), device());
      EXPECT_EQ(read_back(out, device()), want)
          << stages << " stages, slow: " << static_cast<int>(slow);
    }
  }
}

TEST_F(GpuMbarrier, ARingOfAClusterWaitsForTheConsumersOfBothBlocks) {
  const Boxed t{.shape = {1, 1, boxes_through_rings * 8, 64}, .box_rows = 4};
  const auto memory = on_device(picture_of<std::uint16_t>(t));
  std::vector<std::uint16_t> want = boxes_in_shared(t, boxes_through_rings, 8);
  want.insert(want.end(), want.begin(), want.begin() + std::ssize(want));
  for (int stages = 1; stages <= 4; ++stages) {
    for (const SlowSide slow : {SlowSide::none, SlowSide::producer, SlowSide::consumers}) {
      DeviceBuffer<std::uint16_t> out{want.size()};
      launch_cluster_ring(map_of(t, memory), boxes_through_rings, stages, slow, bytes_of(out),
                          device());
      EXPECT_EQ(read_back(out, device()), want)
          << stages << " stages, slow: " << static_cast<int>(slow);
    }
  }
}

}  // namespace
}  // namespace attest
