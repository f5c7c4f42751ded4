"""Encoding: python-crfsuite's rules, the vocabulary, data sets and their files."""

import copy
import json
import os
import pickle
import subprocess
import sys
import types
from collections import OrderedDict, UserDict, defaultdict
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import scansion
from scansion import model_file
from scansion.data import Dataset, Vocabulary, encode

# The rules, in Python ------------------------------------------------------------------------------


def text(value):
    return value.decode() if isinstance(value, bytes) else str.__str__(value)


def attributes(token):
    """Names and values of a token: what the kernel must give. Sets come sorted."""
    if not isinstance(token, dict):
        names = [text(name) for name in token]
        return [(name, 1.0) for name in (sorted(names) if isinstance(token, (set, frozenset)) else names)]
    result = []
    for key, value in token.items():
        if isinstance(value, (str, bytes)):
            result.append((f"{text(key)}:{text(value)}", 1.0))
        elif isinstance(value, (dict, list, tuple, set, frozenset)):
            result.extend((f"{text(key)}:{name}", v) for name, v in attributes(value))
        else:
            result.append((text(key), float(value)))
    return result


class Text(str):
    __slots__ = ()


names = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=5)
strings = st.one_of(names, names.map(str.encode), names.map(Text), names.map(np.str_))
numbers = st.one_of(
    st.floats(-1e40, 1e40),
    st.integers(-(2**70), 2**70),
    st.booleans(),
    st.integers(-9, 9).map(np.int32),
    st.floats(-9, 9, width=32).map(np.float32),
    st.booleans().map(np.bool_),
    st.fractions(),
    st.floats(-9, 9).map(np.array),
)
lists = st.one_of(st.lists(strings, max_size=4), st.sets(names, max_size=4))
values = st.recursive(
    st.one_of(strings, numbers, lists), lambda inner: st.dictionaries(strings, inner, max_size=3), max_leaves=6
)
tokens = st.one_of(
    st.dictionaries(strings, values, max_size=5),
    lists,
    st.lists(strings, max_size=4).map(tuple),
    st.frozensets(names, max_size=4),
)
data = st.lists(st.lists(tokens, max_size=4), max_size=4)


@given(data)
def test_attributes_are_those_of_the_rules(X):
    result = encode(X)
    assert result.items() == [attributes(token) for sequence in X for token in sequence]
    assert result.lengths.tolist() == [len(sequence) for sequence in X]
    appeared = dict.fromkeys(name for token in result.items() for name, _ in token)
    assert result.vocabulary.names() == list(appeared)
    assert result.values is None or (result.values != 1.0).any()
    dtypes = (result.offsets.dtype, result.token_offsets.dtype, result.ids.dtype)
    assert dtypes == (np.int64, np.int64, np.int32)


@given(data)
def test_attributes_are_those_of_python_crfsuite(X):
    pycrfsuite = pytest.importorskip("pycrfsuite")
    result = encode(X)
    for b, sequence in enumerate(X):
        items = pycrfsuite.ItemSequence(sequence)
        assert [dict(token) for token in result[b].items()] == items.items()
        assert [dict(token) for token in encode([items]).items()] == items.items()


@given(data)
def test_generators_are_read_like_lists(X):
    result = encode((token for token in sequence) for sequence in X)
    assert result.items() == encode(X).items()
    assert encode(tuple(tuple(sequence) for sequence in X)).items() == encode(X).items()


@given(data, data)
def test_a_frozen_vocabulary_leaves_out_what_it_does_not_hold(X, other):
    vocabulary = encode(X).vocabulary
    before = vocabulary.names()
    result = encode(other, vocabulary, frozen=True)
    assert vocabulary.names() == before
    assert result.vocabulary is vocabulary
    kept = [[(n, v) for n, v in token if n in vocabulary] for token in encode(other).items()]
    assert result.items() == kept


@given(data, data)
def test_a_vocabulary_grows_across_calls(X, other):
    both = encode(X + other)
    vocabulary = Vocabulary()
    first, second = encode(X, vocabulary), encode(other, vocabulary)
    assert vocabulary.names() == both.vocabulary.names()
    assert_array_equal(np.concatenate([first.ids, second.ids]), both.ids)


@pytest.mark.parametrize(
    "token",
    [
        OrderedDict([("b", 1), ("a", "x")]),
        defaultdict(int, a=2),
        UserDict(a="x", b=2),
        types.MappingProxyType({"a": "x", "b": {"c": 2}}),
    ],
)
def test_mappings_are_read_like_dicts(token):
    assert encode([[token]]).items() == [attributes(dict(token))]


def test_an_ordered_dict_keeps_its_own_order():
    token = OrderedDict(a=1, b=2)
    token.move_to_end("a")
    assert encode([[token]]).items() == [[("b", 2.0), ("a", 1.0)]]


def test_an_attribute_that_comes_twice_is_kept_twice():
    assert encode([[["a", "b", "a"]]]).ids.tolist() == [0, 1, 0]
    assert encode([[{"a": ["x"], "a:x": 2}]]).items() == [[("a:x", 1.0), ("a:x", 2.0)]]


def test_zeros_of_dicts_are_kept():
    assert encode([[{"a": 0.0, "b": False}]]).items() == [[("a", 0.0), ("b", 0.0)]]


def test_a_nul_does_not_end_a_name():
    assert encode([[["a\0b", "a\0c", "a"]]]).vocabulary.names() == ["a\0b", "a\0c", "a"]


def test_sets_are_numbered_alike_in_every_run():
    code = "from scansion.data import encode; print(encode([[{'w%d' % i for i in range(50)}]]).vocabulary.names())"
    runs = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(runs) == 1


def test_nothing():
    for X, shape in ([], (0, 0)), ([[]], (1, 0)), ([[], [[]]], (2, 1)), ([[{}, []]], (1, 2)):
        result = encode(X)
        assert (len(result), result.n_tokens) == shape
        assert result.ids.size == 0
        assert result.values is None
        assert result.items() == [[]] * shape[1]


# Arrays --------------------------------------------------------------------------------------------

MATRIX = np.array([[0.0, 2.0, 1.0], [0.0, 0.0, 0.0], [-1.5, 0.0, 1.0]])
ROWS = [[("1", 2.0), ("2", 1.0)], [], [("0", -1.5), ("2", 1.0)]]


@pytest.mark.parametrize(
    "matrix",
    [
        MATRIX,
        np.asfortranarray(MATRIX),
        MATRIX.astype(np.float32),
        scipy.sparse.csr_matrix(MATRIX),
        scipy.sparse.csr_array(MATRIX),
        scipy.sparse.csc_matrix(MATRIX),
        scipy.sparse.coo_matrix(MATRIX),
        scipy.sparse.lil_matrix(MATRIX),
    ],
)
def test_matrices(matrix):
    assert encode([matrix]).items() == ROWS
    twice = encode([matrix, [["2", "x"]], matrix])
    assert twice.items() == [*ROWS, [("2", 1.0), ("x", 1.0)], *ROWS]
    assert twice.vocabulary.names() == ["1", "2", "0", "x"]
    assert encode([matrix], Vocabulary(["2"]), frozen=True).items() == [[("2", 1.0)], [], [("2", 1.0)]]


def test_integer_and_boolean_matrices():
    assert encode([np.array([[0, 3], [1, 0]])]).items() == [[("1", 3.0)], [("0", 1.0)]]
    booleans = encode([np.eye(2, dtype=bool)])
    assert booleans.items() == [[("0", 1.0)], [("1", 1.0)]]
    assert booleans.values is None


def test_three_dimensions_are_sequences_of_matrices():
    assert encode(np.stack([MATRIX, MATRIX])).items() == ROWS + ROWS


def test_matrices_of_no_size():
    assert encode([np.zeros((0, 3)), np.zeros((2, 0))]).lengths.tolist() == [0, 2]
    assert encode([scipy.sparse.csr_matrix((2, 0))]).lengths.tolist() == [2]


def test_zeros_stored_in_a_sparse_matrix_are_left_out():
    matrix = scipy.sparse.csr_matrix(MATRIX)
    matrix.data[0] = 0.0
    assert encode([matrix]).items() == [[("2", 1.0)], [], [("0", -1.5), ("2", 1.0)]]
    assert matrix.nnz == 4


def test_a_very_wide_sparse_matrix():
    matrix = scipy.sparse.coo_matrix(([1.0, 2.0], ([0, 1], [2**40, 2**40])), shape=(2, 2**41))
    assert encode([matrix]).items() == [[(str(2**40), 1.0)], [(str(2**40), 2.0)]]


def test_arrays_of_strings_are_tokens_by_rows():
    assert encode([np.array([["a", "b"], ["c", "a"]])]).ids.tolist() == [0, 1, 2, 0]


def test_scipy_is_not_imported():
    code = (
        "import sys, numpy as np; from scansion.data import encode; "
        "encode([[['a']], np.eye(2)]); print('scipy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "False\n"


# Errors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "error", "message"),
    [
        ("abc", TypeError, "the token is the string 'abc'"),
        (b"abc", TypeError, "the token is the string b'abc'"),
        (3, TypeError, "the token is of type int"),
        (None, TypeError, "the token is of type NoneType"),
        ([1], TypeError, "an attribute name is of type int"),
        ([("a", 1.0)], TypeError, r"an attribute name is of type tuple.*dict"),
        (np.array([1.0]), TypeError, "an attribute name is of type numpy.float64"),
        ({1: "x"}, TypeError, "an attribute name is of type int"),
        ({"a": None}, TypeError, "attribute 'a' has a value of type NoneType"),
        ({"a": {"b": 1j}}, TypeError, "attribute 'a:b' has a value of type complex"),
        ({"a": np.arange(2)}, TypeError, "attribute 'a' has a value of type numpy.ndarray"),
        ({"a": [["b"]]}, TypeError, "an attribute name is of type list"),
        ({"len": float("nan")}, ValueError, "attribute 'len' has the value nan"),
        ({"é": {"b": -float("inf")}}, ValueError, "attribute 'é:b' has the value -inf"),
        ({"a": np.float32("inf")}, ValueError, "attribute 'a' has the value inf"),
        ({"a": 10**400}, ValueError, "attribute 'a' has an integer value too large"),
        (["a\ud800"], ValueError, r"'a\\ud800' has a lone surrogate"),
        ({"a": "\udfff"}, ValueError, r"'\\udfff' has a lone surrogate"),
        ([b"\xff"], ValueError, r"b'\\xff' is not valid UTF-8"),
        ({"a": b"\xed\xa0\x80"}, ValueError, "is not valid UTF-8"),
    ],
)
def test_wrong_tokens(token, error, message):
    with pytest.raises(error, match=f"^X, sequence 1, position 2: .*{message}"):
        encode([[["a"]], [["a"], ["b"], token]])


@pytest.mark.parametrize(
    "sequence", ["abc", b"abc", "", {"a": 1}, {"a"}, frozenset("a"), None, 3], ids=lambda value: repr(value)
)
def test_wrong_sequences(sequence):
    with pytest.raises(TypeError, match="^X, sequence 1 must be a list of tokens, got"):
        encode([[], sequence])
    if not isinstance(sequence, (list, tuple)):
        with pytest.raises(TypeError, match="^X must be a list of sequences, got"):
            encode(sequence)


@pytest.mark.parametrize(
    "array", [np.zeros(3), np.zeros((1, 2, 3)), np.array(1.0), np.zeros((2, 2), complex), np.zeros(2, "M8[s]")]
)
def test_wrong_arrays(array):
    with pytest.raises(ValueError, match=r"^X, sequence 1 is an array of shape .* must be 2-D"):
        encode([[], array])


def test_wrong_numbers_in_matrices():
    matrix = MATRIX.copy()
    matrix[2, 1] = np.nan
    for bad in (matrix, scipy.sparse.csr_matrix(matrix)):
        with pytest.raises(ValueError, match="^X, sequence 1, position 2: attribute '1' has the value nan"):
            encode([[], bad])
    with pytest.raises(ValueError, match="^X, sequence 0 is a sparse matrix of .*complex"):
        encode([scipy.sparse.csr_matrix(MATRIX.astype(complex))])
    with pytest.raises(TypeError, match="one sparse matrix"):
        encode(scipy.sparse.csr_matrix(MATRIX))
    damaged = scipy.sparse.csr_matrix(MATRIX)
    damaged.indices[0] = 7
    with pytest.raises(ValueError, match="^X, sequence 0 is a damaged sparse matrix: indices"):
        encode([damaged])


def test_wrong_vocabulary():
    with pytest.raises(TypeError, match="vocabulary must be a Vocabulary, got list"):
        encode([], ["a"])


# Hostile objects -----------------------------------------------------------------------------------


class Weight:
    """A number that runs code when it is read."""

    def __init__(self, action):
        self.action = action

    def __float__(self):
        self.action()
        return 2.0


def explode():
    raise ZeroDivisionError("boom")


def test_exceptions_pass_through():
    class Iterable:
        def __iter__(self):
            yield ["a"]
            explode()

    class Broken(list):
        def __iter__(self):
            explode()

    def sequences():
        yield [["a"]]
        explode()

    class Dict(dict):
        def __iter__(self):
            explode()

    for X in ([Iterable()], [Broken()], [[Broken()]], sequences(), [[{"a": Weight(explode)}]], [[Dict(a=1)]]):
        with pytest.raises(ZeroDivisionError, match="boom"):
            encode(X)
    with pytest.raises(KeyError, match="b"):
        encode([[type("Liar", (dict,), {"__iter__": lambda self: iter("b")})(a=1)]])


def test_the_error_of_a_number_is_kept_as_the_cause():
    def refuse():
        raise TypeError("not today")

    with pytest.raises(TypeError, match="attribute 'a' has a value of type Weight") as caught:
        encode([[{"a": Weight(refuse)}]])
    assert str(caught.value.__cause__) == "not today"


def test_containers_that_change_while_they_are_read():
    token = {"a": 0.0, "b": "c"}
    token["a"] = Weight(lambda: token.pop("b"))
    with pytest.raises(RuntimeError, match="changed size"):
        encode([[token]])

    token = {}
    token.update({"a": Weight(token.clear), "b": "c"})
    with pytest.raises(RuntimeError, match="changed size"):
        encode([[token]])

    token = {}
    token.update({"a": Weight(lambda: token.update({str(i): i for i in range(1000)}))})
    with pytest.raises(RuntimeError, match="changed size"):
        encode([[token]])

    token = {}
    token.update({"a": Weight(lambda: token.update(a=0.0, b=[])), "b": ["x"]})  # the same size
    assert encode([[token]]).items() == [[("a", 2.0)]]

    sequence = []
    sequence.extend([{"a": Weight(sequence.clear)}, ["b"]])
    assert encode([sequence]).items() == [[("a", 2.0)]]

    X = []
    X.extend([[{"a": Weight(X.clear)}, ["b"]], [["c"]]])
    assert encode(X).items() == [[("a", 2.0)], [("b", 1.0)]]


def test_lying_lengths():
    class Liar(list):
        def __len__(self):
            return 10**9

    assert encode(Liar([Liar([Liar(["a", "b"])])])).items() == [[("a", 1.0), ("b", 1.0)]]


def test_containers_within_themselves():
    token = {}
    token["a"] = token
    with pytest.raises(RecursionError, match="nested attributes"):
        encode([[token]])
    assert encode([[["a"]]]).n_tokens == 1


def test_encoding_within_encoding():
    vocabulary = Vocabulary()
    many = [[[f"w{i}" for i in range(5000)]]]
    token = {"a": "b", "n": Weight(lambda: encode(many, vocabulary)), "c": "d"}
    result = encode([[token]], vocabulary)
    assert result.items() == [[("a:b", 1.0), ("n", 2.0), ("c:d", 1.0)]]
    assert len(vocabulary) == 5003


def test_threads_share_a_vocabulary():
    vocabulary = Vocabulary()
    X = [[[f"{b}-{i}" for i in range(20)]] for b in range(500)]

    def lazily(shift):
        return (iter(X[(b + shift) % len(X)]) for b in range(len(X)))

    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda shift: encode(lazily(shift), vocabulary), [0, 100, 200, 300]))
    assert sorted(vocabulary.names()) == sorted(name for sequence in X for token in sequence for name in token)
    for shift, result in zip([0, 100, 200, 300], results, strict=True):
        assert result.items() == encode(lazily(shift)).items()


def test_very_long_names():
    name = "é" * 10**6
    result = encode([[[name, name + "x", "x" * 10**7], {name: name}]])
    assert result.vocabulary.names() == [name, name + "x", "x" * 10**7, f"{name}:{name}"]
    with pytest.raises(TypeError) as caught:
        encode([[name]])
    assert len(str(caught.value)) < 1000


def test_strings_are_left_as_they_are():
    name = "".join(["é", "x" * 1000])
    before = sys.getsizeof(name)
    encode([[[name]]])
    assert sys.getsizeof(name) == before  # no UTF-8 copy stays with the string


# The vocabulary ------------------------------------------------------------------------------------


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"])), unique=True))
def test_vocabulary_round_trips(given_names):
    vocabulary = Vocabulary(given_names)
    assert len(vocabulary) == len(given_names)
    assert vocabulary.names() == given_names
    assert [vocabulary.name(i) for i in range(len(vocabulary))] == given_names
    assert [vocabulary.index(name) for name in given_names] == list(range(len(given_names)))
    assert all(name in vocabulary for name in given_names)
    for other in (
        Vocabulary.from_arrays(*vocabulary.to_arrays()),
        pickle.loads(pickle.dumps(vocabulary)),
        copy.deepcopy(vocabulary),
        vocabulary.copy(),
    ):
        assert other.names() == given_names
    back = vocabulary.subset(np.arange(len(given_names))[::-1])
    assert back.names() == given_names[::-1]


def test_vocabulary_of_many_names():
    many = [str(i) for i in range(300_000)] + [f"{i:032b}" for i in range(100_000)]
    vocabulary = Vocabulary(many)
    assert [vocabulary.index(name) for name in many[::97]] == list(range(len(many)))[::97]
    assert vocabulary.index("300000") == -1
    assert repr(vocabulary) == "Vocabulary of 400000 attributes"


def test_a_copy_is_independent():
    vocabulary = Vocabulary(["a"])
    other = vocabulary.copy()
    encode([[["b"]]], other)
    assert (vocabulary.names(), other.names()) == (["a"], ["a", "b"])


def test_vocabulary_lookups_that_find_nothing():
    vocabulary = Vocabulary(["a"])
    assert vocabulary.index("b") == -1
    assert vocabulary.index("\ud800") == -1
    assert "\ud800" not in vocabulary
    assert None not in vocabulary
    assert 0 not in vocabulary
    for number in (-1, 1, 2**40):
        with pytest.raises(IndexError, match=f"attribute {number} is out of range for a vocabulary of 1"):
            vocabulary.name(number)


def test_vocabulary_arrays():
    text_array, offsets = Vocabulary(["é", "", "ab"]).to_arrays()
    assert text_array.tobytes() == "éab".encode()
    assert offsets.tolist() == [0, 2, 2, 4]
    assert (text_array.dtype, offsets.dtype) == (np.uint8, np.int64)


@pytest.mark.parametrize(
    ("raw", "offsets", "message"),
    [
        (b"ab", [], "run from 0 to the number of its bytes"),
        (b"ab", [0, 1], "run from 0 to the number of its bytes"),
        (b"ab", [1, 2], "run from 0 to the number of its bytes"),
        (b"ab", [0, 3], "run from 0 to the number of its bytes"),
        (b"ab", [0, 2, 1, 2], "must not decrease"),
        (b"ab", [0, 2**62, 2], "must not decrease"),
        (b"aba", [0, 1, 2, 3], "attributes 0 and 2 have the same name, 'a'"),
        ("é".encode(), [0, 1, 2], "attribute 0 is not valid UTF-8"),
        (b"a\xff", [0, 1, 2], "attribute 1 is not valid UTF-8"),
        (b"\xed\xa0\x80", [0, 3], "attribute 0 is not valid UTF-8"),
        (b"\xc0\x80", [0, 2], "attribute 0 is not valid UTF-8"),
        (b"\xf4\x90\x80\x80", [0, 4], "attribute 0 is not valid UTF-8"),
    ],
)
def test_wrong_vocabulary_arrays(raw, offsets, message):
    with pytest.raises(ValueError, match=message):
        Vocabulary.from_arrays(np.frombuffer(raw, np.uint8), np.array(offsets, np.int64))


@given(st.binary(max_size=6))
def test_utf8_is_judged_as_python_does(raw):
    try:
        expected = [raw.decode()]
    except UnicodeDecodeError:
        with pytest.raises(ValueError, match="not valid UTF-8"):
            encode([[[raw]]])
    else:
        assert encode([[[raw]]]).vocabulary.names() == expected


def test_wrong_vocabulary_arguments():
    with pytest.raises(ValueError, match="attributes 0 and 1 have the same name, 'a'"):
        Vocabulary(["a", "a"])
    with pytest.raises(TypeError, match="attribute names must be strings, got int"):
        Vocabulary([1])
    vocabulary = Vocabulary(["a", "b"])
    assert vocabulary.subset([]).names() == []
    assert vocabulary.subset([1]).names() == ["b"]
    with pytest.raises(ValueError, match=r"ids\[1\] = 2 is out of range for a vocabulary of 2"):
        vocabulary.subset([0, 2])
    with pytest.raises(ValueError, match="have the same name"):
        vocabulary.subset([0, 0])
    with pytest.raises(TypeError, match="ids must be an array of integers"):
        vocabulary.subset([0.5])


# Data sets -----------------------------------------------------------------------------------------


@given(data, st.data())
def test_subsets(X, draw):
    result = encode(X)
    per_sequence = [sequence.items() for sequence in result]
    assert sum(per_sequence, []) == result.items()
    if X:
        chosen = draw.draw(st.lists(st.integers(-len(X), len(X) - 1)))
        expected = sum((per_sequence[b] for b in chosen), [])
        for taken in (result.take(chosen), result[np.array(chosen, dtype=np.int64)]):
            assert taken.items() == expected
            assert len(taken) == len(chosen)
            assert taken.vocabulary is result.vocabulary
    assert result[1:].items() == sum(per_sequence[1:], [])
    mask = np.arange(len(X)) % 2 == 0
    assert result.take(mask).items() == sum(per_sequence[::2], [])


@given(data)
def test_data_sets_are_encoded_anew_under_another_vocabulary(X):
    result = encode(X)
    assert encode(result) is result
    assert encode(result, result.vocabulary, frozen=True) is result
    known = Vocabulary(result.vocabulary.names()[::2])
    for source in (result, list(result)):
        anew = encode(source, known.copy())
        assert anew.items() == result.items()
        assert anew.vocabulary.names()[: len(known)] == known.names()
        assert encode(source, known, frozen=True).items() == encode(X, known, frozen=True).items()


def test_data_sets_do_not_change():
    result = encode([[{"a": 2.0}]])
    for name in ("offsets", "token_offsets", "ids", "values"):
        with pytest.raises(ValueError, match="read-only"):
            getattr(result, name)[0] = 1
    with pytest.raises(AttributeError, match="a Dataset does not change: cannot set ids"):
        result.ids = None


def test_repr_and_sizes():
    result = encode([[["a", "b"], ["a"]], [["c"]]])
    assert repr(result) == "Dataset of 2 sequences, 3 tokens, 4 entries, 3 attributes"
    assert (len(result), result.n_tokens, result.lengths.tolist()) == (2, 3, [2, 1])


def test_wrong_subsets():
    result = encode([[["a"]], [["b"]]])
    for b in (2, -3):
        with pytest.raises(IndexError, match=f"sequence {b} is out of range for a data set of 2"):
            result[b]
    with pytest.raises(ValueError, match=r"indices\[1\] = 2 is out of range"):
        result.take([0, 2])
    with pytest.raises(ValueError, match="indices must have shape"):
        result.take([True])
    with pytest.raises(ValueError, match="^X, sequence 0 is a Dataset of 2 sequences"):
        encode([result])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"offsets": [0, 1]}, r"offsets\[-1\] must be the number of rows of token_offsets, 2"),
        ({"offsets": [0, 2, 1, 2]}, "offsets must not decrease"),
        ({"token_offsets": [0, 1, 2]}, r"offsets\[-1\] must be the number of rows of ids, 3"),
        ({"ids": [0, 1, 2]}, r"ids\[2\] = 2 is out of range"),
        ({"ids": [0, -1, 1]}, r"ids\[1\] = -1 is out of range"),
        ({"ids": [0.0, 1.0, 1.0]}, "ids must be an array of integers"),
        ({"values": [1.0, 2.0]}, "values must have shape"),
        ({"values": [1.0, np.nan, 2.0]}, r"values\[1\] is nan"),
        ({"values": [1.0, 2.0, -np.inf]}, r"values\[2\] is -inf"),
    ],
)
def test_wrong_arrays_of_a_data_set(change, message):
    arrays = {"offsets": [0, 2], "token_offsets": [0, 1, 3], "ids": [0, 1, 1], "values": None}
    assert Dataset(**arrays, vocabulary=Vocabulary("ab")).n_tokens == 2
    with pytest.raises(ValueError, match=message):
        Dataset(**{**arrays, **change}, vocabulary=Vocabulary("ab"))


# Files ---------------------------------------------------------------------------------------------

SAMPLES = [
    [],
    [[]],
    [[["a", "b"], []], [["é"]]],
    [[{"a": 2.5, "b": "c"}, {}], [], [["x"]]],
]


def same(one, other):
    assert one.items() == other.items()
    assert_array_equal(one.offsets, other.offsets)
    assert one.vocabulary.names() == other.vocabulary.names()
    assert (one.values is None) == (other.values is None)


@pytest.mark.parametrize("mmap", [True, False])
@pytest.mark.parametrize("X", SAMPLES, ids=range(len(SAMPLES)))
def test_files_round_trip(X, mmap, tmp_path):
    result = encode(X)
    result.save(tmp_path / "data")
    loaded = Dataset.load(str(tmp_path / "data"), mmap=mmap)
    same(loaded, result)
    loaded.save(tmp_path / "data")  # onto itself, while mapped
    same(loaded, result)
    same(Dataset.load(tmp_path / "data", mmap=mmap), result)
    same(pickle.loads(pickle.dumps(loaded)), result)
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_a_mapped_file_is_not_read_into_memory(tmp_path):
    import mmap

    encode([[{"a": 2.0}]]).save(tmp_path / "data")

    def is_mapped(array):
        while isinstance(array, np.ndarray):
            array = array.base
        return isinstance(array, mmap.mmap)

    mapped, read = (Dataset.load(tmp_path / "data", mmap=wanted) for wanted in (True, False))
    for name in ("offsets", "token_offsets", "ids", "values"):
        assert is_mapped(getattr(mapped, name))
        assert not is_mapped(getattr(read, name))


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    from scansion import _files

    result = encode([[["a"]]])
    result.save(tmp_path / "data")
    before = (tmp_path / "data").read_bytes()

    def fail(file, content):
        os.write(file.fileno(), b"half")
        raise OSError("disk full")

    monkeypatch.setattr(_files._Raw, "write", fail)
    with pytest.raises(OSError, match="disk full"):
        encode([[["b"]]]).save(tmp_path / "data")
    assert (tmp_path / "data").read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_equal_data_sets_give_equal_bytes(tmp_path):
    for name in ("one", "other"):
        encode([[{"a": 2.5, "b": "c"}, ["x"]]]).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "other").read_bytes()


def test_truncated_files(tmp_path):
    path = tmp_path / "data"
    encode([[{"a": 2.5, "b": "c"}, ["x"]]]).save(path)
    whole = path.read_bytes()
    for size in range(len(whole)):
        path.write_bytes(whole[:size])
        for mmap in (True, False):
            with pytest.raises(ValueError, match="data is not a scansion data set, or is damaged"):
                Dataset.load(path, mmap=mmap)


def test_damaged_files_raise_or_load_something_valid(tmp_path):
    path = tmp_path / "data"
    encode([[{"a": 2.5, "b": "c"}, ["x"]]]).save(path)
    whole = path.read_bytes()
    for at in range(len(whole)):
        for byte in (0, 255, whole[at] ^ 1):
            path.write_bytes(whole[:at] + bytes([byte]) + whole[at + 1 :])
            try:
                Dataset.load(path).items()
            except ValueError as error:
                assert "is not a scansion data set, or is damaged" in str(error)


def test_other_files(tmp_path):
    from safetensors.numpy import save_file

    path = tmp_path / "data"
    with pytest.raises(FileNotFoundError):
        Dataset.load(path)
    text_array, text_offsets = Vocabulary(["a"]).to_arrays()
    arrays = {
        "offsets": np.array([0, 1]),
        "token_offsets": np.array([0, 1]),
        "ids": np.array([0], np.int32),
        "vocabulary.text": text_array,
        "vocabulary.offsets": text_offsets,
    }
    right = {"format": "scansion.dataset", "version": "1"}
    save_file(arrays, path, metadata=right)
    assert Dataset.load(path).items() == [[("a", 1.0)]]
    for changed, metadata, message in [
        ({}, {"format": "other"}, "format 'other'"),
        ({}, None, "format None"),
        ({}, {**right, "version": "2"}, "version '2'; this scansion reads version 1"),
        ({"ids": None}, right, "no array 'ids'"),
        ({"ids": np.array([0])}, right, "the array 'ids' must be 1-D of I32, got I64"),
        ({"ids": np.array([[0]], np.int32)}, right, "the array 'ids' must be 1-D"),
        ({"ids": np.array([1], np.int32)}, right, r"ids\[0\] = 1 is out of range"),
        ({"values": np.array([np.inf])}, right, r"values\[0\] is inf"),
        ({"more": np.array([1])}, right, "an array that a data set does not have: 'more'"),
        ({"vocabulary.offsets": np.array([0, 2])}, right, "the offsets of a vocabulary"),
    ]:
        tensors = {name: array for name, array in {**arrays, **changed}.items() if array is not None}
        save_file(tensors, path, metadata=metadata)
        with pytest.raises(ValueError, match=message):
            Dataset.load(path)


def test_arrays_out_of_alignment_are_copied(tmp_path):
    """In files without checksums, as data sets were saved at first."""
    from safetensors.numpy import save

    path = tmp_path / "data"
    encode([[{"a": 2.5}, ["b"]]]).save(path)
    arrays = model_file.read(path).arrays
    whole = save(arrays, {"format": "scansion.dataset", "version": "1"})
    size = int.from_bytes(whole[:8], "little")
    for more in range(8):
        header = whole[8 : 8 + size] + b" " * more
        path.write_bytes(len(header).to_bytes(8, "little") + header + whole[8 + size :])
        loaded = Dataset.load(path)
        assert loaded.items() == [[("a", 2.5)], [("b", 1.0)]]
        for array in (loaded.ids, loaded.offsets, loaded.token_offsets, loaded.values):
            assert array.flags.aligned and not array.flags.writeable


@pytest.mark.parametrize(("dtype", "size"), [("BF16", 16), ("F8_E4M3", 8), ("F4", 4), ("C64", 64), ("U16", 16)])
def test_dtypes_that_numpy_does_not_have(tmp_path, dtype, size):
    """In files without checksums the library reads the table, and some versions know more dtypes than we do."""
    table, at = {}, 0
    for name, code, shape, length in [
        ("offsets", "I64", [2], 16),
        ("token_offsets", "I64", [2], 16),
        ("vocabulary.offsets", "I64", [2], 16),
        ("vocabulary.text", "U8", [1], 1),
        ("ids", dtype, [8], size),
    ]:
        table[name] = {"dtype": code, "shape": shape, "data_offsets": [at, at + length]}
        at += length
    header = json.dumps({"__metadata__": {"format": "scansion.dataset", "version": "1"}, **table}).encode()
    (tmp_path / "data").write_bytes(len(header).to_bytes(8, "little") + header + bytes(at))
    with pytest.raises(ValueError, match=f"data is not .*('ids' must be 1-D of I32, got {dtype}|deserializing header)"):
        Dataset.load(tmp_path / "data")


def test_models_are_not_data_sets_nor_the_other_way_round(tmp_path):
    path = tmp_path / "file"
    model_file.write(path, "crf", {}, {})
    with pytest.raises(ValueError, match="holds a model of kind 'crf', not 'dataset'"):
        Dataset.load(path)
    encode([[["a"]]]).save(path)
    with pytest.raises(
        model_file.ModelFileError, match=r"holds a data set, not a model: use scansion.data.Dataset.load"
    ):
        scansion.load(path)


def test_fractions_are_numbers():
    assert encode([[{"a": Fraction(1, 4)}]]).items() == [[("a", 0.25)]]
