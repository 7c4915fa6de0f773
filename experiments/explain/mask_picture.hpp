#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/attention/problem.hpp"

namespace attest {

/// The pairs of a query and a key of one entry that see each other, in cells of neighbouring
/// queries and keys. Heads do not differ in them.
struct MaskPicture {
  std::int64_t queries = 0, keys = 0;  ///< of the entry
  std::int64_t rows = 0, columns = 0;  ///< cells; row r has queries [r queries / rows, ...)
  std::vector<double> seen;            ///< [rows, columns], the share of a cell's pairs
  std::int64_t pairs = 0;              ///< that see each other, of queries * keys
  std::int64_t empty_queries = 0;      ///< that see no key: O is 0
  std::int64_t unseen_keys = 0;        ///< that no query sees

  [[nodiscard]] double at(std::int64_t row, std::int64_t column) const {
    return seen[static_cast<std::size_t>(row * columns + column)];
  }
};

/// At most `most_rows` by `most_columns` cells, one a pair where there are no more.
/// `entry` in [0, problem.batch).
[[nodiscard]] MaskPicture mask_picture(const Problem& problem, std::int64_t entry,
                                       std::int64_t most_rows, std::int64_t most_columns);

/// A line of characters for a row of cells: `#` all pairs see each other, `+` some, `.` none.
[[nodiscard]] std::string mask_text(const MaskPicture& picture);
/// The numbers of the picture in one line.
[[nodiscard]] std::string mask_counts(const MaskPicture& picture);
/// An SVG document: keys from left to right, queries from top to bottom, with `title`.
[[nodiscard]] std::string mask_svg(const MaskPicture& picture, const std::string& title);

}  // namespace attest
