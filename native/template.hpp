// Feature templates: from columns of text to attributes, with CRF++'s and Wapiti's macros.
//
// A line of a template is literal text and markers. A marker reads one cell: a column, and a row relative to the token
// (or counted from an end of the sequence). Cells of a block are numbered first, each column for itself, so that what a
// line makes of cells seen before is looked up by their numbers: of one cell always, of several where a table of all
// combinations is small. The other lines are spelt out and looked up by name.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "columns.hpp"
#include "encoder.hpp"

namespace scansion {

// What the regular expressions and lower case need to know of characters.
enum CharacterClass : uint8_t { kDigit = 1, kAlpha = 2, kLower = 4, kUpper = 8, kPunctuation = 16, kSpace = 32 };
struct Characters {
  uint8_t (*classes)(uint32_t);
  uint32_t (*lower)(uint32_t);
};

// Wapiti's regular expressions: single characters and classes, '*' and '?' behind them, '^' first, '$' last.
class Regex {
 public:
  struct Item {
    enum Kind : uint8_t { kAny, kClass, kCharacter } kind;
    bool negated;
    uint8_t classes;     // kClass: any of these
    uint32_t character;  // kCharacter
    char repeat;         // 0, '?' or '*'
  };

  std::vector<Item> items;
  bool at_start = false, at_end = false;

  // The leftmost match, as long as a greedy search makes it; false if there is none. O(characters x items).
  bool search(const std::vector<uint32_t>& text, const Characters& characters, size_t& from, size_t& to) const {
    const size_t n = text.size(), m = items.size();
    std::vector<uint8_t> can((m + 1) * (n + 1), 0);  // whether items k.. match some text from position i
    const auto cell = [&](size_t k, size_t i) -> uint8_t& { return can[k * (n + 1) + i]; };
    for (size_t i = 0; i <= n; ++i) cell(m, i) = !at_end || i == n;
    for (size_t k = m; k-- > 0;)
      for (size_t i = n + 1; i-- > 0;) {
        const bool skip = items[k].repeat && cell(k + 1, i);
        const bool take = i < n && cell(items[k].repeat == '*' ? k : k + 1, i + 1) && fits(items[k], text[i], characters);
        cell(k, i) = skip || take;
      }
    for (from = 0; from <= (at_start ? 0 : n); ++from) {
      if (!cell(0, from)) continue;
      to = from;
      for (size_t k = 0; k < m;) {
        const size_t after = items[k].repeat == '*' ? k : k + 1;
        if (to < n && cell(after, to + 1) && fits(items[k], text[to], characters)) {
          ++to;
          k = after;
        } else {
          ++k;
        }
      }
      return true;
    }
    return false;
  }

 private:
  static bool fits(const Item& item, uint32_t c, const Characters& characters) {
    if (item.kind == Item::kAny) return true;
    if (item.kind == Item::kCharacter) return item.character == c;
    return ((characters.classes(c) & item.classes) != 0) != item.negated;
  }
};

struct Marker {
  enum Kind : uint8_t { kText, kTest, kMatch } kind = kText;
  bool lower = false, absolute = false;
  int64_t row = 0;
  int32_t column = 0;
  std::string before;  // literal text in front of it
  Regex regex;
  bool plain() const { return kind == kText && !lower; }
};

struct TemplateLine {
  std::vector<Marker> markers;
  std::string after;  // literal text behind the last marker
};

struct Template {
  std::vector<TemplateLine> lines;
  std::string border;  // what stands for cells outside the sequence, before "-1", "+1", ...
  int64_t reach = 0;   // the largest |row|
  int32_t columns = 0;
};

// The code points of well-formed UTF-8.
inline void decode(std::string_view text, std::vector<uint32_t>& out) {
  out.clear();
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<uint8_t>(text[i]);
    const int more = lead < 0x80 ? 0 : lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    uint32_t c = more == 0 ? lead : lead & (0x3F >> more);
    for (int k = 1; k <= more; ++k) c = c << 6 | (static_cast<uint8_t>(text[i + static_cast<size_t>(k)]) & 0x3F);
    out.push_back(c);
    i += static_cast<size_t>(more) + 1;
  }
}

// Expands a template over the rows of a block.
class Expander {
 public:
  // column_of: the column in `columns` of each column that the template names.
  Expander(const Template& rules, const Columns& columns, const std::vector<int64_t>& column_of,
           const Characters& characters)
      : rules_(rules), columns_(columns), column_of_(column_of), characters_(characters) {
    number_cells();
    for (const TemplateLine& line : rules_.lines) {
      Memo memo;
      int64_t size = 1;
      for (const Marker& marker : line.markers) {
        if (size <= kTable) size *= values(marker);
        memo.written.emplace_back(marker.plain() ? 0 : static_cast<size_t>(values(marker)));
      }
      if (line.markers.size() < 2 || size <= kTable) memo.numbers.assign(static_cast<size_t>(size), kNotYet);
      memos_.push_back(std::move(memo));
    }
  }

  void run(Encoder& out) {
    for (size_t b = 0; b + 1 < columns_.offsets.size(); ++b) {
      first_ = columns_.offsets[b];
      last_ = columns_.offsets[b + 1];
      for (int64_t t = first_; t < last_; ++t) {
        token(t, out);
        out.end_token();
      }
      out.end_sequence();
    }
  }

 private:
  static constexpr int32_t kNotYet = -2;
  static constexpr int64_t kTable = int64_t{1} << 18;  // combinations of cells in a table

  struct Written {
    bool known = false;
    std::string text;
  };
  struct Memo {
    std::vector<int32_t> numbers;               // attribute of each combination of values; empty: there are too many
    std::vector<std::vector<Written>> written;  // by marker and value, for those that are not plain
  };

  void number_cells() {
    numbers_.resize(static_cast<size_t>(rules_.columns));
    names_.resize(static_cast<size_t>(rules_.columns));
    const int64_t n = columns_.rows();
    std::vector<uint8_t> used(static_cast<size_t>(rules_.columns), 0);
    for (const TemplateLine& line : rules_.lines)
      for (const Marker& marker : line.markers) used[static_cast<size_t>(marker.column)] = 1;
    for (size_t c = 0; c < used.size(); ++c) {
      if (!used[c]) continue;
      numbers_[c].resize(static_cast<size_t>(n));
      for (int64_t row = 0; row < n; ++row)
        numbers_[c][static_cast<size_t>(row)] = names_[c].intern(columns_.cell(row, column_of_[c]));
    }
  }

  // Number of values of a marker: the cells of its column, then what stands before and behind a sequence.
  int64_t values(const Marker& marker) const {
    return names_[static_cast<size_t>(marker.column)].size() + 2 * rules_.reach;
  }

  int64_t value(const Marker& marker, int64_t t) const {
    const int64_t at = !marker.absolute ? t + marker.row : marker.row > 0 ? first_ + marker.row - 1 : last_ + marker.row;
    if (at >= first_ && at < last_)
      return numbers_[static_cast<size_t>(marker.column)][static_cast<size_t>(at)];
    const int64_t outside = at < first_ ? 2 * (first_ - at - 1) : 2 * (at - last_) + 1;
    return names_[static_cast<size_t>(marker.column)].size() + outside;
  }

  // The text of a value, before the marker works on it.
  std::string_view text_of(const Marker& marker, int64_t value) {
    const Vocabulary& names = names_[static_cast<size_t>(marker.column)];
    if (value < names.size()) return names.name(value);
    const int64_t outside = value - names.size();
    scratch_ = rules_.border + (outside % 2 == 0 ? "-" : "+") + std::to_string(outside / 2 + 1);
    return scratch_;
  }

  std::string_view written(Memo& memo, size_t k, const Marker& marker, int64_t value) {
    if (marker.plain()) return text_of(marker, value);
    Written& written = memo.written[k][static_cast<size_t>(value)];
    if (!written.known) {
      written.text = write(marker, text_of(marker, value));
      written.known = true;
    }
    return written.text;
  }

  std::string write(const Marker& marker, std::string_view text) {
    decode(text, points_);
    size_t from = 0, to = points_.size();
    if (marker.kind != Marker::kText) {
      const bool found = marker.regex.search(points_, characters_, from, to);
      if (marker.kind == Marker::kTest) return found ? "true" : "false";
      if (!found) return "";
    }
    std::string out;
    for (size_t i = from; i < to; ++i) append_code_point(out, marker.lower ? characters_.lower(points_[i]) : points_[i]);
    return out;
  }

  void token(int64_t t, Encoder& out) {
    for (size_t j = 0; j < rules_.lines.size(); ++j) {
      const TemplateLine& line = rules_.lines[j];
      Memo& memo = memos_[j];
      const size_t n = line.markers.size();
      if (values_.size() < n) values_.resize(n);
      int64_t place = 0;
      for (size_t k = 0; k < n; ++k) {
        values_[k] = value(line.markers[k], t);
        if (!memo.numbers.empty()) place = place * values(line.markers[k]) + values_[k];
      }
      if (memo.numbers.empty()) {
        out.begin();
        for (size_t k = 0; k < n; ++k) {
          out.append(line.markers[k].before);
          out.append(written(memo, k, line.markers[k], values_[k]));
        }
        out.append(line.after);
        out.end(1.0);
        continue;
      }
      int32_t& number = memo.numbers[static_cast<size_t>(place)];
      if (number == kNotYet) {
        name_.clear();
        for (size_t k = 0; k < n; ++k) {
          name_.append(line.markers[k].before);
          name_.append(written(memo, k, line.markers[k], values_[k]));
        }
        name_.append(line.after);
        number = out.frozen() ? out.vocabulary().find(name_) : out.vocabulary().intern(name_);
      }
      out.add(number, 1.0);
    }
  }

  const Template& rules_;
  const Columns& columns_;
  const std::vector<int64_t>& column_of_;
  const Characters& characters_;
  std::vector<std::vector<int32_t>> numbers_;  // by column of the template: the cell of each row
  std::vector<Vocabulary> names_;              // the cells by number
  std::vector<Memo> memos_;
  std::vector<int64_t> values_;
  std::vector<uint32_t> points_;
  std::string name_, scratch_;
  int64_t first_ = 0, last_ = 0;
};

}  // namespace scansion
