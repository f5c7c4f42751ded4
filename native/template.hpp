// Feature templates: from columns of text to attributes, with CRF++'s and Wapiti's macros.
//
// A line of a template is literal text and markers. A marker reads one cell, in a row relative to the token (or counted
// from an end of the sequence), and writes what a function makes of it: the cell itself, a test, a part of it. What each
// function makes of each row of a block is numbered first, so that what a line makes of values seen before is looked up
// by their numbers: of one value always, of several where a table of all combinations is small. The other lines are
// spelt out and looked up by name, those of many tokens at a time, so that they wait for memory together.
#pragma once

#include <algorithm>
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
  bool at_start = false, at_end = false, lazy = false;

  // The leftmost match; false if there is none. '?' takes a character if it can, '*' as many as it can or, if lazy, as
  // few. O(characters x items). can: working memory.
  bool search(const std::vector<uint32_t>& text, const Characters& characters, std::vector<uint8_t>& can, size_t& from,
              size_t& to) const {
    const size_t n = text.size(), m = items.size();
    can.resize((m + 1) * (n + 1));  // whether items k.. match some text from position i
    const auto cell = [&](size_t k, size_t i) -> uint8_t& { return can[k * (n + 1) + i]; };
    for (size_t i = 0; i <= n; ++i) cell(m, i) = !at_end || i == n;
    for (size_t k = m; k-- > 0;)
      for (size_t i = n + 1; i-- > 0;) {
        const bool skip = items[k].repeat && cell(k + 1, i);
        const bool take =
            i < n && cell(items[k].repeat == '*' ? k : k + 1, i + 1) && fits(items[k], text[i], characters);
        cell(k, i) = skip || take;
      }
    for (from = 0; from <= (at_start ? 0 : n); ++from) {
      if (!cell(0, from)) continue;
      to = from;
      for (size_t k = 0; k < m;) {
        const size_t after = items[k].repeat == '*' ? k : k + 1;
        const bool enough = lazy && after == k && cell(k + 1, to);
        if (!enough && to < n && cell(after, to + 1) && fits(items[k], text[to], characters)) {
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

// What is written for a cell.
struct CellFunction {
  enum Kind : uint8_t { kText, kTest, kMatch } kind = kText;
  bool lower = false;
  int32_t column = 0;
  Regex regex;
};

struct Marker {
  std::string before;  // literal text in front of it
  bool absolute = false;
  int64_t row = 0;
  int32_t function = 0;
};

struct TemplateLine {
  std::vector<Marker> markers;
  std::string after;  // literal text behind the last marker
};

struct Template {
  std::vector<CellFunction> functions;
  std::vector<TemplateLine> lines;
  std::string border;    // what stands for cells outside the sequence, before "-1", "+1", ...
  int64_t numbered = 0;  // of these have a number, the others "#"
  int64_t reach = 0;     // the largest |row|
  bool ascii = false;    // classes and lower case know no other letters
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
      : rules_(rules), columns_(columns), characters_(characters) {
    for (const CellFunction& function : rules_.functions) number(function, column_of);
    for (const TemplateLine& line : rules_.lines) {
      int64_t size = 1;
      for (const Marker& marker : line.markers)
        if (size <= kTable) size *= values_[marker.function].names.size();
      const bool table = line.markers.size() < 2 || size <= kTable;
      memos_.emplace_back(table ? static_cast<size_t>(size) : 0, kNotYet);
      for (const Marker& marker : line.markers) {
        const Vocabulary& names = values_[static_cast<size_t>(marker.function)].names;
        steps_.push_back({&marker, &names, names.size(), nullptr, marker.absolute ? 0 : 1});
      }
    }
  }

  void run(Encoder& out) {
    const auto rows = static_cast<size_t>(columns_.rows());
    out.ids.reserve(rows * rules_.lines.size());
    out.token_offsets.reserve(rows + 1);
    for (size_t b = 0; b + 1 < columns_.offsets.size(); ++b) {
      const int64_t first = columns_.offsets[b];
      length_ = columns_.offsets[b + 1] - first;
      for (Values& values : values_) values.begin_sequence(first, length_, rules_.reach);
      for (Step& step : steps_) {
        const Marker& marker = *step.marker;
        const int64_t at = !marker.absolute ? marker.row : marker.row > 0 ? marker.row - 1 : length_ + marker.row;
        step.values = values_[static_cast<size_t>(marker.function)].sequence.data() + rules_.reach + at;
      }
      for (int64_t t = 0; t < length_; ++t) {
        token(t);
        if (pending_.size() >= kTogether) look_up(out);
      }
      look_up(out);
      out.end_sequence();
    }
  }

 private:
  static constexpr int32_t kNotYet = -2;
  static constexpr int64_t kTable = int64_t{1} << 18;  // combinations of values in a table
  static constexpr size_t kTogether = 64;              // names looked up at a time

  // A marker, ready to be read along a sequence: its value at position t is values[t * stride].
  struct Step {
    const Marker* marker;
    const Vocabulary* names;
    int64_t size;  // of names
    const int32_t* values;
    int64_t stride;  // 0 if it stands at a fixed place
  };

  // A name to be looked up: where its number goes.
  struct Pending {
    size_t begin, length;  // in text_
    uint64_t hash;
    size_t slot;     // in found_
    int32_t* memo;   // or null
    int32_t likely;  // its number if it is known, most probably
  };

  // What a function makes of the rows: its values by number, and the number for each row and outside the sequence.
  struct Values {
    Vocabulary names;
    std::vector<int32_t> rows;
    std::vector<int32_t> before, behind;  // the sequence by 1, 2, ...
    std::vector<int32_t> sequence;        // the rows of the sequence under way, between what stands around it

    void begin_sequence(int64_t first, int64_t length, int64_t reach) {
      sequence.resize(static_cast<size_t>(length + 2 * reach));
      std::reverse_copy(before.begin(), before.end(), sequence.begin());
      std::copy_n(rows.begin() + first, length, sequence.begin() + reach);
      std::copy(behind.begin(), behind.end(), sequence.begin() + reach + length);
    }
  };

  void number(const CellFunction& function, const std::vector<int64_t>& column_of) {
    Values values;
    const int64_t n = columns_.rows();
    values.rows.reserve(static_cast<size_t>(n));
    const int64_t column = column_of[static_cast<size_t>(function.column)];
    const bool plain = function.kind == CellFunction::kText && !function.lower;
    if (plain) {
      for (int64_t row = 0; row < n; ++row) values.rows.push_back(values.names.intern(columns_.cell(row, column)));
    } else {  // once for each different cell
      const Values& cells = cells_of(function.column, column);
      std::vector<int32_t> written;
      for (int64_t i = 0; i < cells.names.size(); ++i)
        written.push_back(values.names.intern(write(function, cells.names.name(i))));
      for (const int32_t cell : cells.rows) values.rows.push_back(written[static_cast<size_t>(cell)]);
    }
    for (int64_t k = 1; k <= rules_.reach; ++k)
      for (const char* sign : {"-", "+"}) {
        const std::string text = rules_.border + sign + (k <= rules_.numbered ? std::to_string(k) : "#");
        (*sign == '-' ? values.before : values.behind)
            .push_back(values.names.intern(plain ? text : write(function, text)));
      }
    values_.push_back(std::move(values));
  }

  // The cells of a column by number.
  const Values& cells_of(int32_t column, int64_t place) {
    if (cells_.size() <= static_cast<size_t>(column)) cells_.resize(static_cast<size_t>(column) + 1);
    Values& cells = cells_[static_cast<size_t>(column)];
    if (cells.rows.empty())
      for (int64_t row = 0; row < columns_.rows(); ++row)
        cells.rows.push_back(cells.names.intern(columns_.cell(row, place)));
    return cells;
  }

  std::string write(const CellFunction& function, std::string_view text) {
    decode(text, points_);
    size_t from = 0, to = points_.size();
    if (function.kind != CellFunction::kText) {
      const bool found = function.regex.search(points_, characters_, can_, from, to);
      if (function.kind == CellFunction::kTest) return found ? "true" : "false";
      if (!found) return "";
    }
    std::string out;
    for (size_t i = from; i < to; ++i)
      append_code_point(out, function.lower ? characters_.lower(points_[i]) : points_[i]);
    return out;
  }

  void token(int64_t t) {
    const Step* step = steps_.data();
    for (size_t j = 0; j < rules_.lines.size(); ++j) {
      const TemplateLine& line = rules_.lines[j];
      const Step* const end = step + line.markers.size();
      int32_t* memo = nullptr;
      if (!memos_[j].empty()) {
        int64_t place = 0;
        for (const Step* s = step; s != end; ++s) place = place * s->size + s->values[t * s->stride];
        memo = &memos_[j][static_cast<size_t>(place)];
      }
      if (memo && *memo != kNotYet) {
        found_.push_back(*memo);
        step = end;
        continue;
      }
      const size_t begin = text_.size();
      for (; step != end; ++step) {
        text_.append(step->marker->before);
        text_.append(step->names->name(step->values[t * step->stride]));
      }
      text_.append(line.after);
      pending_.push_back({begin, text_.size() - begin, 0, found_.size(), memo, Vocabulary::kUnknown});
      found_.push_back(kNotYet);
    }
    token_ends_.push_back(found_.size());
  }

  // Looks up what is pending, and hands over the tokens under way. The rounds fetch ahead what the next one reads.
  void look_up(Encoder& out) {
    Vocabulary& vocabulary = out.vocabulary();
    const auto name = [&](const Pending& p) { return std::string_view(text_).substr(p.begin, p.length); };
    for (Pending& p : pending_) {
      p.hash = hash_name(name(p));
      vocabulary.fetch_slot(p.hash);
    }
    for (Pending& p : pending_) {
      p.likely = vocabulary.likely(p.hash);
      if (p.likely != Vocabulary::kUnknown) vocabulary.fetch_offset(p.likely);
    }
    for (const Pending& p : pending_)
      if (p.likely != Vocabulary::kUnknown) vocabulary.fetch_name(p.likely);
    for (const Pending& p : pending_) {
      int32_t id = p.likely;
      if (id == Vocabulary::kUnknown ? !out.frozen() : vocabulary.name(id) != name(p))
        id = out.frozen() ? vocabulary.find(name(p), p.hash) : vocabulary.intern(name(p), p.hash);
      found_[p.slot] = id;
      if (p.memo) *p.memo = id;
    }
    size_t at = 0;
    for (const size_t end : token_ends_) {
      for (; at < end; ++at)
        if (found_[at] != Vocabulary::kUnknown) out.ids.push_back(found_[at]);
      out.end_numbered_token();
    }
    pending_.clear();
    text_.clear();
    found_.clear();
    token_ends_.clear();
  }

  const Template& rules_;
  const Columns& columns_;
  const Characters& characters_;
  std::vector<Values> cells_;                // by column of the template, where functions need them
  std::vector<Values> values_;               // by function
  std::vector<std::vector<int32_t>> memos_;  // by line: the attribute of each combination of values; empty: too many
  std::vector<uint32_t> points_;
  std::vector<uint8_t> can_;
  std::vector<Step> steps_;         // the markers of all lines, one after another
  std::vector<Pending> pending_;    // names of the tokens under way
  std::string text_;                // these names, one after another
  std::vector<int32_t> found_;      // attributes of the tokens under way
  std::vector<size_t> token_ends_;  // where each of them ends in found_
  int64_t length_ = 0;              // of the sequence under way
};

}  // namespace scansion
