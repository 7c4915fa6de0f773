#include "experiments/explain/mask_picture.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace attest {
namespace {

/// Cell of one of `count` things in `cells` cells, all of nearly as many.
std::int64_t cell_of(std::int64_t index, std::int64_t count, std::int64_t cells) {
  return index * cells / count;
}

/// Text inside an element of XML.
std::string escaped(const std::string& text) {
  std::string result;
  for (const char c : text) {
    result += c == '&' ? "&amp;" : c == '<' ? "&lt;" : c == '>' ? "&gt;" : std::string(1, c);
  }
  return result;
}

}  // namespace

MaskPicture mask_picture(const Problem& problem, std::int64_t entry, std::int64_t most_rows,
                         std::int64_t most_columns) {
  MaskPicture picture{.queries = problem.query_len_of(entry), .keys = problem.key_len_of(entry)};
  picture.rows = std::min(picture.queries, most_rows);
  picture.columns = std::min(picture.keys, most_columns);
  const auto cells = static_cast<std::size_t>(picture.rows * picture.columns);
  std::vector<double> pairs(cells);
  picture.seen.resize(cells);
  std::vector<bool> is_seen(static_cast<std::size_t>(picture.keys));
  for (std::int64_t query = 0; query < picture.queries; ++query) {
    const std::int64_t row = cell_of(query, picture.queries, picture.rows);
    std::int64_t keys_seen = 0;
    for (std::int64_t key = 0; key < picture.keys; ++key) {
      const auto cell = static_cast<std::size_t>(row * picture.columns +
                                                 cell_of(key, picture.keys, picture.columns));
      pairs[cell] += 1;
      if (!problem.sees(entry, query, key)) continue;
      picture.seen[cell] += 1;
      is_seen[static_cast<std::size_t>(key)] = true;
      ++keys_seen;
    }
    picture.pairs += keys_seen;
    picture.empty_queries += keys_seen == 0 ? 1 : 0;
  }
  for (std::size_t cell = 0; cell < cells; ++cell) picture.seen[cell] /= pairs[cell];
  picture.unseen_keys = std::ranges::count(is_seen, false);
  return picture;
}

std::string mask_text(const MaskPicture& picture) {
  std::string text;
  for (std::int64_t row = 0; row < picture.rows; ++row) {
    for (std::int64_t column = 0; column < picture.columns; ++column) {
      const double seen = picture.at(row, column);
      text += seen == 1 ? '#' : seen > 0 ? '+' : '.';
    }
    text += '\n';
  }
  return text;
}

std::string mask_counts(const MaskPicture& picture) {
  return fmt::format(
      "{} queries, {} keys: {} of {} pairs see each other; {} queries see no key, {} keys are seen "
      "by no query",
      picture.queries, picture.keys, picture.pairs, picture.queries * picture.keys,
      picture.empty_queries, picture.unseen_keys);
}

std::string mask_svg(const MaskPicture& picture, const std::string& title) {
  // A cell is a square of side 1; text is as large as a twentieth of the longer side.
  const auto side =
      static_cast<double>(std::max<std::int64_t>(1, std::max(picture.rows, picture.columns)));
  const double text = side / 20, margin = 2.5 * text;
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"{} {} {} {}\" role=\"img\" "
      "font-family=\"sans-serif\" font-size=\"{}\">\n<title>{}</title>\n"
      "<rect x=\"{}\" y=\"{}\" width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n"
      "<rect width=\"{}\" height=\"{}\" fill=\"#e9ecef\"/>\n<g fill=\"#1f5fa8\">\n",
      -margin, -margin, static_cast<double>(picture.columns) + 2 * margin,
      static_cast<double>(picture.rows) + 2 * margin, text, escaped(title), -margin, -margin,
      picture.columns, picture.rows);
  for (std::int64_t row = 0; row < picture.rows; ++row) {
    // Neighbours that are seen alike are one rectangle.
    for (std::int64_t begin = 0, end = 0; begin < picture.columns; begin = end) {
      const double seen = picture.at(row, begin);
      for (end = begin; end < picture.columns && picture.at(row, end) == seen; ++end) {
      }
      if (seen == 0) continue;
      svg +=
          fmt::format("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"1\"{}/>\n", begin, row,
                      end - begin, seen == 1 ? "" : fmt::format(" fill-opacity=\"{:.3f}\"", seen));
    }
  }
  svg += fmt::format(
      "</g>\n<text y=\"{}\">{} keys</text>\n<text transform=\"translate({} 0) rotate(90)\">{} "
      "queries</text>\n</svg>\n",
      -text / 2, picture.keys, -text * 1.3, picture.queries);
  return svg;
}

}  // namespace attest
