#include "experiments/explain/mask_picture.hpp"

#include <gtest/gtest.h>

namespace attest {
namespace {

constexpr std::int64_t many = 1000;

TEST(MaskPicture, HasACharacterForEachPair) {
  const Problem problem{.query_len = 3, .key_len = 5, .mask = Mask::causal_bottom_right};
  const MaskPicture picture = mask_picture(problem, 0, many, many);
  EXPECT_EQ(mask_text(picture), "###..\n####.\n#####\n");
  EXPECT_EQ(mask_counts(picture),
            "3 queries, 5 keys: 12 of 15 pairs see each other; 0 queries see no key, 0 keys are "
            "seen by no query");
}

TEST(MaskPicture, TellsRowsWithoutKeysAndKeysWithoutRows) {
  const Problem problem{.query_len = 4, .key_len = 2, .mask = Mask::causal_bottom_right};
  EXPECT_EQ(mask_text(mask_picture(problem, 0, many, many)), "..\n..\n#.\n##\n");
  EXPECT_EQ(mask_picture(problem, 0, many, many).empty_queries, 2);
  const Problem window{.query_len = 2,
                       .key_len = 6,
                       .mask = Mask::window_bottom_right,
                       .window = {.left = 1, .right = 0}};
  EXPECT_EQ(mask_text(mask_picture(window, 0, many, many)), "...##.\n....##\n");
  EXPECT_EQ(mask_picture(window, 0, many, many).unseen_keys, 3);
}

TEST(MaskPicture, SumsPairsWhereThereIsNoRoomForEach) {
  const Problem problem{.query_len = 64, .key_len = 64, .mask = Mask::causal_top_left};
  const MaskPicture picture = mask_picture(problem, 0, 4, 4);
  EXPECT_EQ(mask_text(picture), "+...\n#+..\n##+.\n###+\n");
  EXPECT_EQ(picture.pairs, 64 * 65 / 2);
}

TEST(MaskPicture, DrawsTheEntryThatIsAskedFor) {
  const Problem problem{.batch = 8, .query_len = 30, .key_len = 30, .length_seed = 3};
  bool differ = false;
  for (std::int64_t entry = 0; entry < problem.batch; ++entry) {
    const MaskPicture picture = mask_picture(problem, entry, many, many);
    EXPECT_EQ(picture.keys, problem.key_len_of(entry));
    EXPECT_EQ(picture.queries, problem.query_len_of(entry));
    differ = differ || picture.keys != problem.key_len;
  }
  EXPECT_TRUE(differ);
}

TEST(MaskPicture, AnEntryWithoutRowsIsNoPicture) {
  const Problem problem{.query_len = 0, .key_len = 5};
  EXPECT_EQ(mask_text(mask_picture(problem, 0, many, many)), "");
  EXPECT_NE(mask_svg(mask_picture(problem, 0, many, many), "none").find("</svg>"),
            std::string::npos);
}

TEST(MaskPicture, AnSvgHasARectangleForARunOfCells) {
  const Problem problem{.query_len = 2, .key_len = 3, .mask = Mask::causal_bottom_right};
  const std::string svg = mask_svg(mask_picture(problem, 0, many, many), "a < b");
  EXPECT_NE(svg.find("<rect x=\"0\" y=\"0\" width=\"2\" height=\"1\"/>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("<rect x=\"0\" y=\"1\" width=\"3\" height=\"1\"/>"), std::string::npos) << svg;
  EXPECT_NE(svg.find("a &lt; b"), std::string::npos);
}

}  // namespace
}  // namespace attest
