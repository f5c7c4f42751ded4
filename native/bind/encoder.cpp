#include "encoder.hpp"

#include <cmath>

#include "bind/common.hpp"

namespace scansion {
namespace {

using Int64Row = In<int64_t, nb::ndim<1>>;
using DoubleRow = In<double, nb::ndim<1>>;
using ByteRow = In<uint8_t, nb::ndim<1>>;

// ---- text --------------------------------------------------------------------------------------

template <class Unit>
bool append_utf8(Encoder& out, const Unit* units, Py_ssize_t n) {
  for (Py_ssize_t i = 0; i < n; ++i) {
    const uint32_t c = units[i];
    if (c < 0x80) {
      out.append(static_cast<char>(c));
      continue;
    }
    if (c >= 0xD800 && c <= 0xDFFF) return false;
    append_code_point(out, c);
  }
  return true;
}

// Appends a str in UTF-8 without leaving a copy behind in the object; false if it has a lone surrogate.
bool append_str(Encoder& out, PyObject* text) {
#if PY_VERSION_HEX < 0x030C0000
  if (PyUnicode_READY(text) < 0) throw nb::python_error();
#endif
  const Py_ssize_t n = PyUnicode_GET_LENGTH(text);
  const void* data = PyUnicode_DATA(text);
  if (PyUnicode_IS_ASCII(text)) {
    out.append(std::string_view(static_cast<const char*>(data), static_cast<size_t>(n)));
    return true;
  }
  switch (PyUnicode_KIND(text)) {
    case PyUnicode_1BYTE_KIND:
      return append_utf8(out, static_cast<const Py_UCS1*>(data), n);
    case PyUnicode_2BYTE_KIND:
      return append_utf8(out, static_cast<const Py_UCS2*>(data), n);
    default:
      return append_utf8(out, static_cast<const Py_UCS4*>(data), n);
  }
}

nb::str to_str(std::string_view text) {
  PyObject* result = PyUnicode_DecodeUTF8(text.data(), static_cast<Py_ssize_t>(text.size()), "replace");
  if (!result) throw nb::python_error();
  return nb::steal<nb::str>(result);
}

std::string_view utf8(PyObject* name) {
  Py_ssize_t n = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &n);
  if (!text) throw nb::python_error();
  return {text, static_cast<size_t>(n)};
}

// ---- walking Python objects --------------------------------------------------------------------

const char* type_name(PyObject* object) { return Py_TYPE(object)->tp_name; }

bool is_text(PyObject* object) { return PyUnicode_Check(object) || PyBytes_Check(object) || PyByteArray_Check(object); }

bool is_container(PyObject* object) {
  return PyDict_Check(object) || PyList_Check(object) || PyTuple_Check(object) || PyAnySet_Check(object);
}

bool is_iterable(PyObject* object) { return Py_TYPE(object)->tp_iter != nullptr || PySequence_Check(object); }

// Calls use(item) for every item, as a for loop would: lengths are never trusted, and every item is held while it is
// used, since user code may run in between and change the container.
template <class Use>
void for_each(PyObject* iterable, const Use& use) {
  if (PyList_CheckExact(iterable)) {
    for (Py_ssize_t i = 0; i < PyList_GET_SIZE(iterable); ++i) use(nb::borrow(PyList_GET_ITEM(iterable, i)).ptr());
  } else if (PyTuple_CheckExact(iterable)) {
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(iterable); ++i) use(PyTuple_GET_ITEM(iterable, i));
  } else {
    const nb::object iterator = nb::steal(PyObject_GetIter(iterable));
    if (!iterator) throw nb::python_error();
    while (true) {
      const nb::object item = nb::steal(PyIter_Next(iterator.ptr()));
      if (!item) break;
      use(item.ptr());
    }
    if (PyErr_Occurred()) throw nb::python_error();
  }
}

// Walks X with python-crfsuite's rules for items. Errors name the sequence and the position.
class Walker {
 public:
  // unusual(sequence, number) sees every sequence that is neither list nor tuple, and returns what to read instead: an
  // iterable of tokens, or (row offsets, columns, values or None, their vocabulary or None: column numbers are names).
  Walker(Encoder& encoder, nb::callable unusual) : encoder_(encoder), unusual_(std::move(unusual)) {}

  void sequences(PyObject* X) {
    for_each(X, [this](PyObject* one) {
      sequence(one);
      if (PyErr_CheckSignals() < 0) throw nb::python_error();
    });
  }

  void sequence(PyObject* one) {
    position_ = 0;
    if (PyList_CheckExact(one) || PyTuple_CheckExact(one)) {
      tokens(one);
    } else {
      const nb::object other = unusual_(nb::borrow(one), sequence_);
      if (PyTuple_CheckExact(other.ptr()))
        rows(nb::borrow<nb::tuple>(other));
      else
        tokens(other.ptr());
    }
    encoder_.end_sequence();
    ++sequence_;
  }

 private:
  void tokens(PyObject* sequence) {
    for_each(sequence, [this](PyObject* item) {
      token(item);
      encoder_.end_token();
      ++position_;
    });
  }

  void token(PyObject* item) {
    if (is_container(item)) {
      container(item);
    } else if (is_text(item)) {
      fail(PyExc_TypeError, "the token is the string %.200R: it must be a dict or a list of strings", item);
    } else if (!is_iterable(item)) {
      fail(PyExc_TypeError, "the token is of type %.200s: it must be a dict or a list of strings", type_name(item));
    } else if (PyMapping_Check(item) && PyObject_HasAttrString(item, "keys")) {
      const nb::dict copy;
      if (PyDict_Update(copy.ptr(), item) < 0) throw nb::python_error();
      dictionary(copy.ptr());
    } else {
      names(item);
    }
  }

  void container(PyObject* item) {
    if (PyDict_Check(item)) {
      dictionary(item);
    } else {
      const size_t first = encoder_.entries();
      names(item);
      // The order of a set changes from one run of Python to the next; that of the attributes must not.
      if (PyAnySet_Check(item)) encoder_.sort_from(first);
    }
  }

  void names(PyObject* iterable) {
    for_each(iterable, [this](PyObject* name) {
      begin(name);
      encoder_.end(1.0);
    });
  }

  void dictionary(PyObject* dict) {
    if (!PyDict_CheckExact(dict)) {  // a subclass may have an order of its own
      for_each(dict, [this, dict](PyObject* key) {
        const nb::object value = nb::borrow(PyDict_GetItemWithError(dict, key));
        if (!value) {
          if (!PyErr_Occurred()) PyErr_SetObject(PyExc_KeyError, key);
          throw nb::python_error();
        }
        pair(key, value.ptr());
      });
      return;
    }
    const Py_ssize_t size = PyDict_GET_SIZE(dict);
    Py_ssize_t at = 0;
    PyObject *key = nullptr, *value = nullptr;
    while (PyDict_Next(dict, &at, &key, &value)) {
      const nb::object held_key = nb::borrow(key), held_value = nb::borrow(value);
      pair(key, value);
      if (PyDict_GET_SIZE(dict) != size) {
        PyErr_SetString(PyExc_RuntimeError, "dictionary changed size during iteration");
        throw nb::python_error();
      }
    }
  }

  // {name: value} inside the prefix under way
  void pair(PyObject* name, PyObject* value) {
    begin(name);
    if (PyUnicode_Check(value) || PyBytes_Check(value)) {
      encoder_.append(':');
      append_text(value);
      encoder_.end(1.0);
    } else if (is_container(value)) {
      const size_t outer = prefix_.size();
      prefix_.assign(encoder_.begun()).push_back(':');
      encoder_.drop();
      if (Py_EnterRecursiveCall(" while reading nested attributes")) throw nb::python_error();
      try {
        container(value);
      } catch (...) {
        Py_LeaveRecursiveCall();
        throw;
      }
      Py_LeaveRecursiveCall();
      prefix_.resize(outer);
    } else {
      encoder_.end(number(value));
    }
  }

  // Finite, or an error that names the attribute begun.
  double number(PyObject* value) {
    double result = 0.0;
    if (PyFloat_CheckExact(value)) {
      result = PyFloat_AS_DOUBLE(value);
    } else {
      const PyNumberMethods* methods = Py_TYPE(value)->tp_as_number;
      if (!methods || (!methods->nb_float && !methods->nb_index)) not_a_value(value);
      result = PyFloat_AsDouble(value);
      if (result == -1.0 && PyErr_Occurred()) {
        nb::python_error cause;
        const bool overflow = PyLong_Check(value) && cause.matches(PyExc_OverflowError);
        if (!overflow && !cause.matches(PyExc_TypeError)) throw cause;
        try {
          if (!overflow) not_a_value(value);
          fail(PyExc_ValueError, "attribute %.200R has an integer value too large for float64",
               to_str(encoder_.begun()).ptr());
        } catch (nb::python_error& error) {
          PyException_SetCause(error.value().ptr(), nb::borrow(cause.value()).release().ptr());
          throw;
        }
      }
    }
    if (!std::isfinite(result)) not_finite(encoder_.begun(), result);
    return result;
  }

  void begin(PyObject* name) {
    encoder_.begin();
    if (!prefix_.empty()) encoder_.append(prefix_);
    append_text(name);
  }

  void append_text(PyObject* text) {
    if (PyUnicode_Check(text)) {
      if (!append_str(encoder_, text))
        fail(PyExc_ValueError, "%.200R has a lone surrogate, which UTF-8 cannot encode", text);
      return;
    }
    std::string_view bytes;
    if (PyBytes_Check(text))
      bytes = {PyBytes_AS_STRING(text), static_cast<size_t>(PyBytes_GET_SIZE(text))};
    else if (PyByteArray_Check(text))
      bytes = {PyByteArray_AS_STRING(text), static_cast<size_t>(PyByteArray_GET_SIZE(text))};
    else
      fail(PyExc_TypeError,
           "an attribute name is of type %.200s: it must be a string (attributes with values go in a dict)",
           type_name(text));
    if (!is_utf8(bytes)) fail(PyExc_ValueError, "%.200R is not valid UTF-8", text);
    encoder_.append(bytes);
  }

  void rows(const nb::tuple& matrix) {
    const auto offsets = nb::cast<Int64Row>(matrix[0]);
    const auto columns = nb::cast<Int64Row>(matrix[1]);
    const double* values = nullptr;
    if (!matrix[2].is_none()) values = nb::cast<DoubleRow>(matrix[2]).data();
    if (!owner_.is(matrix[3])) {
      numbers_.clear();
      owner_ = matrix[3];
      columns_of_ = owner_.is_none() ? nullptr : nb::cast<const Vocabulary*>(owner_);
    }
    for (size_t row = 0; row + 1 < offsets.size(); ++row, ++position_) {
      for (int64_t j = offsets.data()[row]; j < offsets.data()[row + 1]; ++j) {
        const double value = values ? values[j] : 1.0;
        const int64_t column = columns.data()[j];
        if (!std::isfinite(value)) not_finite(column_name(column), value);
        encoder_.add(number_of(column), value);
      }
      encoder_.end_numbered_token();
    }
  }

  // The number of a column's attribute, remembered unless the matrix is very wide.
  int32_t number_of(int64_t column) {
    constexpr int32_t kNotYet = -2;
    constexpr int64_t kWide = int64_t{1} << 24;
    if (column >= kWide) return find_column(column);
    if (static_cast<size_t>(column) >= numbers_.size()) numbers_.resize(static_cast<size_t>(column) + 1, kNotYet);
    int32_t& number = numbers_[static_cast<size_t>(column)];
    if (number == kNotYet) number = find_column(column);
    return number;
  }
  int32_t find_column(int64_t column) {
    const std::string name = column_name(column);
    return encoder_.frozen() ? encoder_.vocabulary().find(name) : encoder_.vocabulary().intern(name);
  }

  std::string column_name(int64_t column) const {
    return columns_of_ ? std::string(columns_of_->name(column)) : std::to_string(column);
  }

  [[noreturn]] void not_a_value(PyObject* value) {
    fail(PyExc_TypeError,
         "attribute %.200R has a value of type %.200s: a value is a string, a number, or a dict, list, tuple or set",
         to_str(encoder_.begun()).ptr(), type_name(value));
  }

  [[noreturn]] void not_finite(std::string_view name, double value) {
    fail(PyExc_ValueError, "attribute %.200R has the value %S: values must be finite", to_str(name).ptr(),
         nb::float_(value).ptr());
  }

  template <class... Args>
  [[noreturn]] void fail(PyObject* type, const char* format, Args... args) {
    const nb::object what = nb::steal(PyUnicode_FromFormat(format, args...));
    if (what) PyErr_Format(type, "X, sequence %zd, position %zd: %U", sequence_, position_, what.ptr());
    throw nb::python_error();
  }

  Encoder& encoder_;
  nb::callable unusual_;
  Py_ssize_t sequence_ = 0, position_ = 0;
  std::string prefix_;             // of nested attributes: the outer names, each with its ':'
  nb::object owner_ = nb::none();  // of columns_of_
  const Vocabulary* columns_of_ = nullptr;
  std::vector<int32_t> numbers_;  // of columns
};

nb::tuple encode(nb::object X, Vocabulary& vocabulary, bool frozen, nb::callable unusual) {
  Encoder encoder(vocabulary, frozen);
  Walker(encoder, std::move(unusual)).sequences(X.ptr());
  return dataset_arrays(encoder);
}

}  // namespace

void encode_one(Encoder& encoder, nb::handle sequence, const nb::callable& unusual) {
  Walker(encoder, unusual).sequence(sequence.ptr());
}

namespace {

// ---- the vocabulary ----------------------------------------------------------------------------

void add_distinct(Vocabulary& vocabulary, std::string_view name) {
  const int64_t size = vocabulary.size();
  const int32_t number = vocabulary.intern(name);
  if (vocabulary.size() == size) {
    PyErr_Format(PyExc_ValueError, "attributes %zd and %zd have the same name, %.200R", static_cast<Py_ssize_t>(number),
                 static_cast<Py_ssize_t>(size), to_str(name).ptr());
    throw nb::python_error();
  }
}

Vocabulary from_arrays(const ByteRow& text, const Int64Row& offsets) {
  const int64_t n = static_cast<int64_t>(offsets.size()) - 1;
  const int64_t* at = offsets.data();
  if (n < 0 || at[0] != 0 || at[n] != static_cast<int64_t>(text.size()))
    throw nb::value_error("the offsets of a vocabulary must run from 0 to the number of its bytes");
  for (int64_t i = 0; i < n; ++i)
    if (at[i] > at[i + 1]) throw nb::value_error("the offsets of a vocabulary must not decrease");
  Vocabulary result;
  result.reserve(static_cast<size_t>(n), text.size());
  for (int64_t i = 0; i < n; ++i) {
    const auto* first = reinterpret_cast<const char*>(text.data()) + at[i];
    const std::string_view name(first, static_cast<size_t>(at[i + 1] - at[i]));
    if (!is_utf8(name)) {
      PyErr_Format(PyExc_ValueError, "the name of attribute %zd is not valid UTF-8", static_cast<Py_ssize_t>(i));
      throw nb::python_error();
    }
    add_distinct(result, name);
  }
  return result;
}

nb::tuple to_arrays(const Vocabulary& vocabulary) {
  std::vector<uint8_t> text(vocabulary.arena().begin(), vocabulary.arena().end());
  std::vector<int64_t> offsets(vocabulary.offsets());
  const size_t n = text.size(), m = offsets.size();
  return nb::make_tuple(to_numpy(std::move(text), {n}), to_numpy(std::move(offsets), {m}));
}

Vocabulary from_names(nb::iterable names) {
  Vocabulary result;
  for_each(names.ptr(), [&](PyObject* name) {
    if (!PyUnicode_Check(name)) {
      PyErr_Format(PyExc_TypeError, "attribute names must be strings, got %.200s", type_name(name));
      throw nb::python_error();
    }
    add_distinct(result, utf8(name));
  });
  return result;
}

Vocabulary subset(const Vocabulary& vocabulary, nb::object numbers) {
  const nb::object given = nb::module_::import_("numpy").attr("atleast_1d")(numbers);
  const std::string kind = nb::cast<std::string>(given.attr("dtype").attr("kind"));
  if (kind != "i" && kind != "u" && nb::cast<int64_t>(given.attr("size")) > 0)
    throw nb::type_error("ids must be an array of integers");
  const auto ids = nb::cast<Int64Row>(given.attr("astype")("int64"));
  Vocabulary result;
  for (size_t i = 0; i < ids.size(); ++i) {
    const int64_t id = ids.data()[i];
    if (id < 0 || id >= vocabulary.size()) {
      PyErr_Format(PyExc_ValueError, "ids[%zd] = %lld is out of range for a vocabulary of %lld attributes",
                   static_cast<Py_ssize_t>(i), static_cast<long long>(id), static_cast<long long>(vocabulary.size()));
      throw nb::python_error();
    }
    add_distinct(result, vocabulary.name(id));
  }
  return result;
}

// A lone surrogate has no UTF-8, and no attribute such a name.
int32_t find_str(const Vocabulary& vocabulary, PyObject* name) {
  Py_ssize_t n = 0;
  const char* text = PyUnicode_AsUTF8AndSize(name, &n);
  if (text) return vocabulary.find({text, static_cast<size_t>(n)});
  if (!PyErr_ExceptionMatches(PyExc_UnicodeEncodeError)) throw nb::python_error();
  PyErr_Clear();
  return Vocabulary::kUnknown;
}

nb::list names(const Vocabulary& vocabulary) {
  nb::list result;
  for (int64_t i = 0; i < vocabulary.size(); ++i) result.append(to_str(vocabulary.name(i)));
  return result;
}

}  // namespace

void bind_encoder(nb::module_& m) {
  m.def("encode", &encode, nb::arg("X"), nb::arg("vocabulary"), nb::arg("frozen"), nb::arg("unusual"),
        nb::sig("def encode(X: object, vocabulary: Vocabulary, frozen: bool, unusual: "
                "typing.Callable[[typing.Any, int], typing.Any]) -> tuple[numpy.typing.NDArray[numpy.int64], "
                "numpy.typing.NDArray[numpy.int64], numpy.typing.NDArray[numpy.int32], "
                "numpy.typing.NDArray[numpy.float64] | None]"),
        "offsets, token_offsets, ids and values (None: all 1) of X.");

  nb::class_<Vocabulary>(m, "Vocabulary",
                         "Attribute names, numbered 0, 1, ... in order of first appearance.\n\n"
                         "`Vocabulary(names)` numbers distinct names in the order given.")
      .def(
          "__init__", [](Vocabulary* self, nb::iterable given) { new (self) Vocabulary(from_names(given)); },
          nb::arg("names") = nb::make_tuple(),
          nb::sig("def __init__(self, names: collections.abc.Iterable[str] = ()) -> None"))
      .def("__len__", [](const Vocabulary& v) { return v.size(); })
      .def(
          "__contains__",
          [](const Vocabulary& v, nb::object name) {
            return PyUnicode_Check(name.ptr()) && find_str(v, name.ptr()) != Vocabulary::kUnknown;
          },
          nb::arg("name").none())
      .def("__repr__", [](const Vocabulary& v) { return "Vocabulary of " + std::to_string(v.size()) + " attributes"; })
      .def(
          "__reduce__",
          [](nb::handle self) {
            return nb::make_tuple(self.type(), nb::make_tuple(names(nb::cast<const Vocabulary&>(self))));
          },
          nb::sig("def __reduce__(self) -> tuple[type[Vocabulary], tuple[list[str]]]"))
      .def(
          "name",
          [](const Vocabulary& v, int64_t number) {
            if (number < 0 || number >= v.size())
              throw nb::index_error(("attribute " + std::to_string(number) + " is out of range for a vocabulary of " +
                                     std::to_string(v.size()) + " attributes")
                                        .c_str());
            return to_str(v.name(number));
          },
          nb::arg("number"), "Name of an attribute.")
      .def("names", &names, nb::sig("def names(self) -> list[str]"), "All names, by number.")
      .def(
          "index", [](const Vocabulary& v, nb::str name) { return find_str(v, name.ptr()); }, nb::arg("name"),
          "Number of an attribute; -1 if the vocabulary does not hold it.")
      .def(
          "copy", [](const Vocabulary& v) { return Vocabulary(v); }, "An independent copy.")
      .def("subset", &subset, nb::arg("ids"), nb::sig("def subset(self, ids: numpy.typing.ArrayLike) -> Vocabulary"),
           "The attributes of these numbers, renumbered in the order given.")
      .def("to_arrays", &to_arrays,
           nb::sig("def to_arrays(self) -> "
                   "tuple[numpy.typing.NDArray[numpy.uint8], numpy.typing.NDArray[numpy.int64]]"),
           "Names in UTF-8, one after another, and where they begin: text (bytes,), offsets (size + 1,).")
      .def_static("from_arrays", &from_arrays, nb::arg("text").noconvert(), nb::arg("offsets").noconvert(),
                  "The vocabulary that `to_arrays` wrote; ValueError if the arrays cannot be one.");
}

}  // namespace scansion
