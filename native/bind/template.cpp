#include "template.hpp"

#include <nanobind/stl/string_view.h>

#include "bind/common.hpp"

namespace scansion {
namespace {

// Python's tables of characters; they need no interpreter lock.
uint8_t classes_of(uint32_t c) {
  const bool alpha = Py_UNICODE_ISALPHA(c) != 0, digit = Py_UNICODE_ISDIGIT(c) != 0;
  const bool space = Py_UNICODE_ISSPACE(c) != 0;
  uint8_t classes = 0;
  if (digit) classes |= kDigit;
  if (alpha) classes |= kAlpha;
  if (Py_UNICODE_ISLOWER(c)) classes |= kLower;
  if (Py_UNICODE_ISUPPER(c)) classes |= kUpper;
  if (space) classes |= kSpace;
  if (!space && !Py_UNICODE_ISALNUM(c) && Py_UNICODE_ISPRINTABLE(c)) classes |= kPunctuation;
  return classes;
}
uint32_t lower_of(uint32_t c) { return static_cast<uint32_t>(Py_UNICODE_TOLOWER(c)); }
constexpr Characters kCharacters = {classes_of, lower_of};
constexpr Characters kAscii = {[](uint32_t c) { return c < 128 ? classes_of(c) : uint8_t{0}; },
                               [](uint32_t c) { return c < 128 ? lower_of(c) : c; }};

using ItemTuple = std::tuple<int, bool, int, uint32_t, std::string>;  // kind, negated, classes, character, repeat
using RegexTuple = std::tuple<std::vector<ItemTuple>, bool, bool>;    // items, ^, $
using FunctionTuple = std::tuple<int, bool, int32_t, RegexTuple>;     // kind, lower, column, regex
using MarkerTuple = std::tuple<std::string, bool, int64_t, int32_t>;  // before, absolute, row, function
using LineTuple = std::tuple<std::vector<MarkerTuple>, std::string>;  // markers, after

Template make_template(const std::vector<FunctionTuple>& functions, const std::vector<LineTuple>& lines,
                       const std::string& border, int64_t numbered, bool exact) {
  Template out;
  out.border = border;
  out.numbered = numbered;
  out.ascii = exact;
  for (const auto& [kind, lower, column, regex] : functions) {
    CellFunction function;
    function.kind = static_cast<CellFunction::Kind>(kind);
    function.lower = lower;
    function.column = column;
    for (const auto& [item, negated, classes, character, repeat] : std::get<0>(regex))
      function.regex.items.push_back({static_cast<Regex::Item::Kind>(item), negated, static_cast<uint8_t>(classes),
                                      character, repeat.empty() ? '\0' : repeat[0]});
    function.regex.at_start = std::get<1>(regex);
    function.regex.at_end = std::get<2>(regex);
    function.regex.lazy = exact;
    out.functions.push_back(std::move(function));
  }
  for (const auto& [markers, after] : lines) {
    TemplateLine line;
    line.after = after;
    for (const auto& [before, absolute, row, function] : markers) {
      line.markers.push_back({before, absolute, row, function});
      out.reach = std::max(out.reach, row < 0 ? -row : row);
    }
    out.lines.push_back(std::move(line));
  }
  return out;
}

// Numbers of the cells of a column, in order of first appearance, and the cells by number.
nb::tuple coded_column(const Columns& columns, int64_t column) {
  Vocabulary seen;
  std::vector<int32_t> codes;
  codes.reserve(static_cast<size_t>(columns.rows()));
  for (int64_t row = 0; row < columns.rows(); ++row) codes.push_back(seen.intern(columns.cell(row, column)));
  nb::list names;
  for (int64_t i = 0; i < seen.size(); ++i) names.append(nb::str(seen.name(i).data(), seen.name(i).size()));
  const size_t n = codes.size();
  return nb::make_tuple(to_numpy(std::move(codes), {n}), names);
}

Columns parse(nb::bytes block, const std::string& separator, const std::string& comment, int64_t expected,
              int64_t line) {
  try {
    return Columns::parse({block.c_str(), block.size()}, {separator, comment}, expected, line);
  } catch (const LineError& error) {
    // (line, message) as the arguments of the exception: the caller knows the file
    PyErr_SetObject(PyExc_ValueError, nb::make_tuple(error.line, error.what()).ptr());
    throw nb::python_error();
  }
}

Columns from_rows(const std::vector<std::vector<std::vector<std::string>>>& sequences, int64_t width) {
  Columns out;
  out.set_width(width);
  for (const auto& sequence : sequences) {
    for (const auto& row : sequence) {
      out.begin_row();
      for (const std::string& cell : row) out.add_cell(cell);
    }
    out.end_any_sequence();
  }
  return out;
}

nb::tuple expand(const Columns& columns, const Template& rules, const std::vector<int64_t>& column_of,
                 Vocabulary& vocabulary, bool frozen) {
  Encoder encoder(vocabulary, frozen);
  Expander(rules, columns, column_of, rules.ascii ? kAscii : kCharacters).run(encoder);
  return dataset_arrays(encoder);
}

nb::bytes annotate(const Columns& columns, const std::vector<Int32s>& codes,
                   const std::vector<std::vector<std::string>>& names, const std::string& separator) {
  std::vector<const int32_t*> numbers;
  for (const Int32s& column : codes) numbers.push_back(column.data());
  const std::string out = annotated(columns, numbers, names, separator);
  return nb::bytes(out.data(), out.size());
}

}  // namespace

void bind_template(nb::module_& m) {
  nb::class_<Template>(m, "Template", "A feature template, ready to be expanded; see scansion.template.")
      .def(
          "__init__",
          [](Template* self, const std::vector<FunctionTuple>& functions, const std::vector<LineTuple>& lines,
             const std::string& border, int64_t numbered,
             bool exact) { new (self) Template(make_template(functions, lines, border, numbered, exact)); },
          nb::arg("functions"), nb::arg("lines"), nb::arg("border"), nb::arg("numbered"), nb::arg("exact"));

  nb::class_<Columns>(m, "Columns", "Tokens as rows of cells, in sequences.")
      .def_static("parse", &parse, nb::arg("block"), nb::arg("separator"), nb::arg("comment"), nb::arg("expected"),
                  nb::arg("line"), "The rows of a block of text; ValueError(line, message) where a line is malformed.")
      .def_static("from_rows", &from_rows, nb::arg("sequences"), nb::arg("width"), "Cells given as strings.")
      .def_prop_ro("width", &Columns::width, "Number of columns; -1 if there is no token.")
      .def_prop_ro("n_tokens", &Columns::rows)
      .def_prop_ro("n_lines", [](const Columns& c) { return c.lines.size(); })
      .def("__len__", [](const Columns& c) { return c.offsets.size() - 1; })
      .def_prop_ro(
          "offsets",
          [](const Columns& c) {
            std::vector<int64_t> offsets(c.offsets);
            const size_t n = offsets.size();
            return to_numpy(std::move(offsets), {n});
          },
          nb::rv_policy::automatic, nb::sig("def offsets(self) -> numpy.typing.NDArray[numpy.int64]"))
      .def(
          "has_tab",
          [](const Columns& c) {
            for (const Columns::Line& line : c.lines)
              if (line.row >= 0)
                return std::string_view(c.text)
                           .substr(static_cast<size_t>(line.begin), static_cast<size_t>(line.end - line.begin))
                           .find('\t') != std::string_view::npos;
            return false;
          },
          "Whether the first token's line has a tab.")
      .def(
          "row_texts",
          [](const Columns& c) {
            nb::list out;
            for (const Columns::Line& line : c.lines)
              if (line.row >= 0)
                out.append(nb::str(c.text.data() + line.begin, static_cast<size_t>(line.end - line.begin)));
            return out;
          },
          nb::sig("def row_texts(self) -> list[str]"), "The line of each token.")
      .def(
          "line",
          [](const Columns& c, int64_t row) {
            for (size_t i = 0; i < c.lines.size(); ++i)
              if (c.lines[i].row == row) return c.first_line + static_cast<int64_t>(i);
            return int64_t{0};
          },
          nb::arg("row"), "Number of the line of a token, for errors; 0 if it has none.")
      .def("column", &coded_column, nb::arg("index"),
           nb::sig("def column(self, index: int) -> tuple[numpy.typing.NDArray[numpy.int32], list[str]]"),
           "Numbers of a column's cells (N,) in order of first appearance, and the cells by number.")
      .def("expand", &expand, nb::arg("rules"), nb::arg("columns"), nb::arg("vocabulary"), nb::arg("frozen"),
           nb::sig("def expand(self, rules: Template, columns: collections.abc.Sequence[int], vocabulary: Vocabulary, "
                   "frozen: bool) -> tuple[numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int64], "
                   "numpy.typing.NDArray[numpy.int32], numpy.typing.NDArray[numpy.float64] | None]"),
           "The arrays of the data set that a template makes of the rows.")
      .def("annotate", &annotate, nb::arg("codes"), nb::arg("names"), nb::arg("separator"),
           nb::sig("def annotate(self, codes: collections.abc.Sequence[numpy.typing.NDArray[numpy.int32]], names: "
                   "collections.abc.Sequence[collections.abc.Sequence[str]], separator: str) -> bytes"),
           "The text with further columns: for each, codes (N,) and the cells by code.");

  m.def(
      "last_blank_line", [](nb::bytes text) { return last_blank_line({text.c_str(), text.size()}); }, nb::arg("text"),
      "Where the last whole sequence of a text ends; 0 if none does.");
}

}  // namespace scansion
