"""Feature templates: CRF++'s and Wapiti's documented cases, and the native expansion against the reference."""

import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scansion import _core
from scansion.data import Dataset, Vocabulary
from scansion.features.templates import BUILT_IN, Template
from scansion.reference import template as reference

# the sentence of CRF++'s documentation
CHUNKS = [
    ["He", "PRP", "B-NP"],
    ["reckons", "VBZ", "B-VP"],
    ["the", "DT", "B-NP"],
    ["current", "JJ", "I-NP"],
    ["account", "NN", "I-NP"],
]
# the data of Wapiti's manual
CELLS = [["a1", "b1", "c1"], ["a2", "b2", "c2"], ["a3", "b3", "c3"]]


def expand(text, sequences, dialect=None, columns=None):
    """Attributes of each token of each sequence, in the order of their names."""
    template = Template(text, dialect)
    width = len(sequences[0][0]) if sequences and sequences[0] else 0
    rows = _core.Columns.from_rows(sequences, width)
    vocabulary = Vocabulary()
    wanted = columns or list(range(template.columns))
    data = Dataset._trusted(*rows.expand(template.native, wanted, vocabulary, False), vocabulary)
    again = Dataset._trusted(*rows.expand(template.native, wanted, vocabulary, True), vocabulary)
    assert again.ids.tolist() == data.ids.tolist()  # frozen or not, the same attributes
    return [[sorted(name for name, _ in token) for token in one.items()] for one in data]


def agrees(text, sequences, dialect=None):
    wapiti = Template(text, dialect).dialect == "wapiti"
    expected = [[sorted(token) for token in reference.expand(text, rows, wapiti)] for rows in sequences]
    assert expand(text, sequences, dialect) == expected


@pytest.mark.parametrize(
    ("marker", "expected"),
    [
        ("%x[0,0]", "the"),
        ("%x[0,1]", "DT"),
        ("%x[-1,0]", "reckons"),
        ("%x[-2,1]", "PRP"),
        ("%x[0,0]/%x[0,1]", "the/DT"),
        ("ABC%x[0,1]123", "ABCDT123"),
    ],
)
def test_crfpp_documentation(marker, expected):
    assert expand(f"U00:{marker}", [CHUNKS])[0][2] == [f"U00:{expected}"]
    assert reference.expand(f"U00:{marker}", CHUNKS)[2] == [f"U00:{expected}"]


def test_crfpp_borders():
    found = expand("U:%x[-2,0]/%x[1,0]", [CHUNKS[:2]])[0]
    assert found == [["U:_B-2/reckons"], ["U:_B-1/_B+1"]]


def test_wapiti_manual():
    # "u:%x[-1,0]/%x[+1,2]" at the second position
    assert expand("u:%x[-1,0]/%x[+1,2]", [CELLS])[0][1] == ["u:a1/c3"]
    assert expand("u:%x[-1,0]/%x[+1,2]", [CELLS])[0][0] == ["u:_x-1/c2"]
    assert expand("u:%x[@1,0]/%x[@-1,1]", [CELLS])[0][1] == ["u:a1/b3"]


@pytest.mark.parametrize(
    ("line", "word", "expected"),
    [
        ('%m[0,0,"^.?.?.?.?"]', "foreign", "fore"),
        ('%m[0,0,"^.?.?.?.?"]', "for", "for"),
        ('%m[0,0,".?.?$"]', "foreign", "gn"),
        ('%t[0,0,"^\\u\\u*$"]', "USA", "true"),
        ('%t[0,0,"^\\u\\u*$"]', "UsA", "false"),
        ('%t[0,0,"^\\u*$"]', "USA", "true"),
        ('%t[0,0,"\\p"]', "a-b", "true"),
        ('%t[0,0,".\\p."]', "-ab", "false"),
        ('%m[0,0,"\\d\\d*"]', "ab123cd4", "123"),
        ('%m[0,0,"\\D*"]', "ab123", "ab"),
        ('%m[0,0,"\\w\\w*"]', "--a1_b", "a1"),
        ('%m[0,0,"x"]', "abc", ""),
        ('%M[0,0,"^\\u.?"]', "USA", "us"),
        ('%T[0,0,"S"]', "usa", "false"),
        ("%X[0,0]", "İÄß", "iäß"),
        ('%m[0,0,"a\\.b\\\\"]', "xa.b\\", "a.b\\"),
        ('%m[0,0,"a$b"]', "xa$b", "a$b"),
        ('%m[0,0,"\\""]', 'x"y', '"'),
        ('%m[0,0,"^.?.?"]', "éàü", "éà"),
        ('%t[0,0,"^\\u"]', "Éa", "true"),
        ('%m[0,0,""]', "abc", ""),
        ('%t[0,0,"a*a*b$"]', "a" * 30, "false"),
    ],
)
def test_wapiti_expressions(line, word, expected):
    for found in (expand(f"U:{line}", [[[word]]])[0][0], reference.expand(f"U:{line}", [[word]], True)[0]):
        assert found == [f"U:{expected}"]


@pytest.mark.parametrize(
    ("line", "word", "expected"),  # as Wapiti 1.5.0 wrote them into a model
    [
        ('%m[0,0,"^.*-"]', "a-b-c", "a-"),
        ('%m[0,0,"\\d\\d*"]', "ab123cd4", "1"),
        ('%m[0,0,"\\d*$"]', "ab123", "123"),
        ('%m[0,0,"\\D*"]', "ab123", ""),
        ('%m[0,0,"^\\u?\\u?"]', "USA", "US"),
        ('%t[0,0,"^\\u"]', "Éa", "false"),
        ('%t[0,0,"^\\A"]', "Éa", "true"),
        ("%X[0,0]", "ÉA", "Éa"),
        ("%x[-4,0]%x[-5,0]%x[-6,0]", "a", "_x-4_x-#_x-#"),
        ("%x[4,0]%x[5,0]%x[@7,0]", "a", "_x+4_x+#_x+#"),
    ],
)
def test_wapiti_to_the_letter(line, word, expected):
    for found in (
        expand(f"u:{line}", [[[word]]], "wapiti-exact")[0][0],
        reference.expand(f"u:{line}", [[word]], True, True)[0],
    ):
        assert found == [f"u:{expected}"]


def test_expressions_take_linear_time():
    # by trying everything, this would take the fifth power of the length
    assert expand('U:%t[0,0,"a*a*a*a*a*b$"]', [[["a" * 20_000]]]) == [[["U:false"]]]


def test_kinds_of_lines():
    text = "# comment\nU00:%x[0,0]\n\nB\n"
    template = Template(text)
    assert (template.dialect, template.columns, template.bigrams, template.attribute_orders) == ("crf++", 1, True, {})
    assert Template("U:%x[0,3]").columns == 4
    assert not Template("U:%x[0,0]").bigrams
    assert Template("U:%x[0,0]\nB01:%x[0,1]").attribute_orders == {"B": 1, "b": 1}
    both = Template("*\n*:%x[0,0] # both kinds\nb\nu1\n")
    assert both.dialect == "wapiti" and both.bigrams and both.attribute_orders == {"*": (0, 1)}
    # alone, * is U and B: one attribute that is always there, and the label pairs
    assert expand("*\n*:%x[0,0] # both\nb\nu1\n", [[["x"]]]) == [[["*:x", "U", "u1"]]]
    assert expand("U:#%x[0,0]", [[["x"]]]) == [[["U:#x"]]]  # in CRF++ a comment is a whole line
    assert expand("\ufeffU:%x[0,0]\r\n", [[["x"]]]) == [[["U:x"]]]
    assert expand("U:100%/%q[0,0]", [[["x"]]]) == [[["U:100%/%q[0,0]"]]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "t: the template has no line"),
        ("# nothing", "no line"),
        ("U:%x[0,0]\nX:%x[0,0]", "t:2: a line must begin with U or B, got 'X:"),
        ("U:%x[0]", "t:1: expected %x[row,col]"),
        ("U:%x[a,0]", "expected"),
        ("U:%x[0,-1]", "expected"),
        ("U:%x[0,0", "expected"),
        ("U:%t[0,0]", "needs an expression"),
        ('U:%x[0,0,"a"]', "takes no expression"),
        ('U:%m[0,0,"*a"]', "repeats nothing"),
        ('U:%m[0,0,"a**"]', "repeats nothing"),
        ('U:%m[0,0,"a\\\\\\"]', "expected"),
        ("U:%x[@0,0]", "counts from 1"),
        ("U:%x[99999,0]", "too far"),
        ("U:%x[0,99999999]", "too far"),
        ('U:%m[0,0,"' + "a" * 2000 + '"]', "longer than"),
        ("U:\x00%x[0,0]", "NUL"),
    ],
)
def test_errors_name_the_line(text, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        Template(text, name="t")


def test_unknown_dialect():
    with pytest.raises(ValueError, match="dialect"):
        Template("U:%x[0,0]", "mallet")


@pytest.mark.parametrize("name", BUILT_IN)
def test_built_in_templates(name):
    assert Template(BUILT_IN[name]).bigrams
    agrees(BUILT_IN[name], [CHUNKS, CHUNKS[:1], CHUNKS[2:]])


# ---- the native expansion is the reference's ------------------------------------------------------------------

words = st.text(alphabet="aAzß9-._Éıİ字\u0301 \t", max_size=6)
expression = st.lists(
    st.tuples(
        st.sampled_from(
            [
                ".",
                "a",
                "Z",
                "9",
                "-",
                "\\d",
                "\\D",
                "\\a",
                "\\A",
                "\\w",
                "\\l",
                "\\L",
                "\\u",
                "\\p",
                "\\P",
                "\\s",
                "\\.",
                "\\\\",
                "$",
            ]
        ),
        st.sampled_from(["", "*", "?"]),
    ),
    max_size=5,
).map(lambda items: "".join(item + repeat for item, repeat in items))


@st.composite
def markers(draw):
    letter = draw(st.sampled_from("xXtTmM"))
    row = draw(st.integers(-7, 7).map(str) | st.sampled_from(["@1", "@-1", "@2", "@-3", "+1"]))
    column = draw(st.integers(0, 1))
    if letter in "xX":
        return f"%{letter}[{row},{column}]"
    anchored = draw(st.sampled_from(["", "^"])) + draw(expression) + draw(st.sampled_from(["", "$"]))
    return f'%{letter}[{row},{column},"{anchored}"]'


lines = st.tuples(
    st.sampled_from(["U", "B", "*", "u:", "b1:"]),
    st.lists(markers() | st.sampled_from(["/", "x", "é", "%"]), max_size=4),
).map(lambda parts: parts[0] + "".join(parts[1]))


@given(
    st.lists(lines, min_size=1, max_size=4),
    st.lists(st.lists(st.tuples(words, words).map(list), max_size=4), min_size=1, max_size=3),
    st.booleans(),
)
def test_expansion_is_the_references(template_lines, sequences, exact):
    text = "\n".join(["U", *template_lines])
    expected = [[sorted(token) for token in reference.expand(text, rows, True, exact)] for rows in sequences]
    width = 2
    template = Template(text, "wapiti-exact" if exact else "wapiti")
    rows = _core.Columns.from_rows(sequences, width)
    vocabulary = Vocabulary()
    data = Dataset._trusted(*rows.expand(template.native, [0, 1], vocabulary, False), vocabulary)
    assert [[sorted(name for name, _ in token) for token in one.items()] for one in data] == expected


@given(st.sampled_from(["", "^"]), expression, st.sampled_from(["", "$"]), words, st.booleans())
def test_search_is_pythons(start, body, end, text, exact):
    found = reference.search(start + body + end, text, exact)
    dialect = "wapiti-exact" if exact else "wapiti"
    native = expand(f'U:%m[0,0,"{start + body + end}"]/%t[0,0,"{start + body + end}"]', [[[text]]], dialect)
    assert native == [[[f"U:{found or ''}/{'false' if found is None else 'true'}"]]]


def test_many_combinations():
    """Lines of more combinations than a table holds are looked up by name: the answers are the same."""
    rng = np.random.default_rng(0)
    sequences = [[[f"w{i}", f"p{i % 3}"] for i in rng.integers(0, 900, 300)] for _ in range(5)]
    agrees('U0:%x[0,0]/%x[1,0]\nU1:%x[-1,1]/%x[0,1]\nU2:%X[0,0]/%m[1,0,"\\d*$"]\nU3:%x[0,0]', sequences, "wapiti")


def test_columns_in_another_order():
    assert expand("U:%x[0,0]/%x[0,1]", [CELLS[:1]], columns=[2, 0]) == [[["U:c1/a1"]]]
