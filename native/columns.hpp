// Columns of text: one token a line, blank lines between sequences.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "encoder.hpp"

namespace scansion {

// Something is wrong with a line of the input.
struct LineError : std::runtime_error {
  LineError(int64_t at, const std::string& message) : std::runtime_error(message), line(at) {}
  int64_t line;
};

inline bool is_blank(char c) { return c == ' ' || c == '\t'; }

// How lines are cut into cells. separator: empty for runs of spaces and tabs. comment: lines that begin so are passed
// over; empty: those that begin with # and have another number of cells than tokens (a token may be #) end a sequence,
// as -DOCSTART- does always.
struct ColumnFormat {
  std::string separator, comment;
};

class Columns {
 public:
  struct Cell {
    int64_t begin, end;
  };
  // A line of the text: what it holds, and where the next one begins. row: the token that it is, or -1.
  struct Line {
    int64_t begin, end, eol, next, row;
  };

  // The lines of a block, which ends where a sequence ends. expected: number of columns, or -1 for that of the first
  // token. line: the number of the first line, for errors.
  static Columns parse(std::string_view block, const ColumnFormat& format, int64_t expected, int64_t line) {
    Columns out;
    out.text.assign(block);
    out.first_line = line;
    out.width_ = expected;
    const std::string_view text = out.text;
    const auto size = static_cast<int64_t>(text.size());
    if (expected < 0 && format.comment.empty()) out.width_ = width_behind_notes(text, format);
    for (int64_t at = 0; at < size; ++line) {
      const size_t found = text.find('\n', static_cast<size_t>(at));
      const int64_t next = found == std::string_view::npos ? size : static_cast<int64_t>(found) + 1;
      int64_t eol = found == std::string_view::npos ? size : static_cast<int64_t>(found);
      if (eol > at && text[static_cast<size_t>(eol - 1)] == '\r') --eol;
      out.add_line(at, eol, next, format, line);
      at = next;
    }
    out.end_sequence();
    return out;
  }

  // A token given as its cells, for `end_sequence` to follow.
  void begin_row() { row_begins_.push_back(static_cast<int64_t>(cells.size())); }
  void add_cell(std::string_view cell) {
    const auto begin = static_cast<int64_t>(text.size());
    text.append(cell);
    cells.push_back({begin, static_cast<int64_t>(text.size())});
  }
  void set_width(int64_t width) { width_ = width; }

  void end_sequence() {
    if (rows() > offsets.back()) offsets.push_back(rows());
  }
  void end_any_sequence() { offsets.push_back(rows()); }

  int64_t rows() const { return static_cast<int64_t>(row_begins_.size()); }
  int64_t width() const { return width_; }
  std::string_view cell(int64_t row, int64_t column) const {
    const Cell& c = cells[static_cast<size_t>(row_begins_[static_cast<size_t>(row)] + column)];
    return std::string_view(text).substr(static_cast<size_t>(c.begin), static_cast<size_t>(c.end - c.begin));
  }

  std::string text;
  std::vector<Cell> cells;
  std::vector<Line> lines;
  std::vector<int64_t> offsets = {0};  // (B + 1,) tokens of each sequence
  int64_t first_line = 1;              // the number of the first of `lines`

 private:
  void add_line(int64_t begin, int64_t eol, int64_t next, const ColumnFormat& format, int64_t number) {
    const std::string_view line =
        std::string_view(text).substr(static_cast<size_t>(begin), static_cast<size_t>(eol - begin));
    size_t spaces = 0;
    while (spaces < line.size() && is_blank(line[spaces])) ++spaces;
    const bool blank = spaces == line.size();
    const bool comment = !format.comment.empty() && line.substr(0, format.comment.size()) == format.comment;
    const bool document = is_document(line);
    if (blank || comment || document) {
      lines.push_back({begin, eol, eol, next, -1});
      if (blank || document) end_sequence();
      return;
    }
    if (!is_utf8(line))
      throw LineError(number, "the line is not valid UTF-8: name its encoding, as in --encoding latin-1");
    const auto first = static_cast<int64_t>(cells.size());
    const int64_t width = cut(line, begin, format);
    if (width_ < 0) width_ = width;
    // inside a sequence, a # must stand alone: the line of a hashtag that lacks a cell is an error
    const bool opens = rows() == offsets.back() || line.size() == 1 || is_blank(line[1]);
    if (width != width_ && line[0] == '#' && opens && format.comment.empty()) {
      cells.resize(static_cast<size_t>(first));
      lines.push_back({begin, eol, eol, next, -1});
      end_sequence();
      return;
    }
    if (width != width_)
      throw LineError(number, "the line has " + std::to_string(width) + (width == 1 ? " column" : " columns") +
                                  " where the lines before have " + std::to_string(width_));
    lines.push_back({begin, format.separator.empty() ? cells.back().end : eol, eol, next, rows()});
    row_begins_.push_back(first);
  }

  static bool is_document(std::string_view line) {
    constexpr std::string_view mark = "-DOCSTART-";
    return line.substr(0, mark.size()) == mark && (line.size() == mark.size() || !is_word(line[mark.size()]));
  }
  static bool is_word(char c) { return c == '-' || c == '_' || std::isalnum(static_cast<unsigned char>(c)) != 0; }

  // The cells of the first line that does not begin with #, where the text begins with such lines; else -1.
  static int64_t width_behind_notes(std::string_view text, const ColumnFormat& format) {
    if (text.empty() || text[0] != '#') return -1;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      const std::string_view line = text.substr(at, end - at - (end > at && text[end - 1] == '\r' ? 1 : 0));
      if (line.find_first_not_of(" \t") != std::string_view::npos && line[0] != '#' && !is_document(line)) {
        Columns one;
        return one.cut(line, 0, format);
      }
      at = end + 1;
    }
    return -1;
  }

  int64_t cut(std::string_view line, int64_t begin, const ColumnFormat& format) {
    const size_t first = cells.size();
    if (format.separator.empty())
      cut_at_blanks(line, begin);
    else
      cut_at(line, begin, format.separator);
    return static_cast<int64_t>(cells.size() - first);
  }

  void cut_at_blanks(std::string_view line, int64_t begin) {
    for (size_t i = 0; i < line.size();) {
      while (i < line.size() && is_blank(line[i])) ++i;
      const size_t from = i;
      while (i < line.size() && !is_blank(line[i])) ++i;
      if (i > from) cells.push_back({begin + static_cast<int64_t>(from), begin + static_cast<int64_t>(i)});
    }
  }

  void cut_at(std::string_view line, int64_t begin, const std::string& separator) {
    for (size_t from = 0;;) {
      const size_t found = line.find(separator, from);
      const size_t to = found == std::string_view::npos ? line.size() : found;
      cells.push_back({begin + static_cast<int64_t>(from), begin + static_cast<int64_t>(to)});
      if (found == std::string_view::npos) return;
      from = found + separator.size();
    }
  }

  int64_t width_ = -1;
  std::vector<int64_t> row_begins_;
};

// Where the last whole sequence of a text ends: behind its last blank line. 0: there is none.
inline size_t last_blank_line(std::string_view text) {
  size_t end = text.rfind('\n');
  while (end != std::string_view::npos) {
    size_t begin = end == 0 ? std::string_view::npos : text.rfind('\n', end - 1);
    const size_t first = begin == std::string_view::npos ? 0 : begin + 1;
    bool blank = true;
    for (size_t i = first; i < end && blank; ++i) blank = is_blank(text[i]) || text[i] == '\r';
    if (blank) return end + 1;
    end = begin;
  }
  return 0;
}

// The text with further columns: to each token's line the names of its codes are appended, one for each column.
inline std::string annotated(const Columns& columns, const std::vector<const int32_t*>& codes,
                             const std::vector<std::vector<std::string>>& names, std::string_view separator) {
  std::string out;
  out.reserve(columns.text.size() + static_cast<size_t>(columns.rows()) * 8);
  for (const Columns::Line& line : columns.lines) {
    const std::string_view text = columns.text;
    out.append(text.substr(static_cast<size_t>(line.begin), static_cast<size_t>(line.end - line.begin)));
    if (line.row >= 0)
      for (size_t k = 0; k < codes.size(); ++k)
        out.append(separator).append(names[k][static_cast<size_t>(codes[k][line.row])]);
    if (line.next > line.eol)
      out.append(text.substr(static_cast<size_t>(line.eol), static_cast<size_t>(line.next - line.eol)));
    else
      out.push_back('\n');
  }
  return out;
}

}  // namespace scansion
