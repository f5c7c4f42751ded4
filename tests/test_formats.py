"""Files of sequences: columns, CRFsuite's items, JSON lines; hostile input."""

import gzip
import io
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scansion import _core
from scansion.data import encode_levels
from scansion.formats import FORMATS, FormatError, Reading, format_module, format_of
from scansion.formats import blocks as blocks_module
from scansion.formats.blocks import Levels, Record, Spans
from scansion.formats.blocks import read as blocks
from scansion.formats.crfsuite import read_items, write_item
from scansion.formats.targets import file_labels, known_cells, known_tags, labels_of, segments_of
from scansion.schemes import covered


@pytest.fixture
def write(tmp_path):
    def write(content, name="data.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return str(path)

    return write


def read(path, **reading):
    """Cells of all sequences of a file of columns."""
    found = []
    for block in blocks(path, Reading(**reading)):
        columns = [blocks_module.strings(block.rows.column(c)) for c in range(max(0, block.rows.width))]
        rows = list(map(list, zip(*columns, strict=True)))
        found += blocks_module.cut(rows, block.offsets)
    return found


SMALL = [[["a", "X"], ["b", "Y"]], [["c", "X"]]]


@pytest.mark.parametrize(
    "text",
    [
        "a X\nb Y\n\nc X\n",
        "a X\nb Y\n\nc X",  # no final newline
        "a X\r\nb Y\r\n\r\nc X\r\n",
        "\ufeffa\tX\nb\t Y \n\n\n\n c X\n\n",
        "\n\na X\nb Y\n \t \nc X\n\n",
    ],
)
def test_columns(write, text):
    assert read(write(text)) == SMALL
    assert read(write(gzip.compress(text.encode()))) == SMALL


def test_columns_of_other_separators(write):
    assert read(write("a,X\nb,Y\n\nc,X"), separator=",") == SMALL
    assert read(write("a b\t\tX\n"), separator="\t") == [[["a b", "", "X"]]]
    assert read(write("a || X\n"), separator=" || ") == [[["a", "X"]]]


def test_comments(write):
    text = "# id 1\na X\n# inside\nb Y\n\n#\nc X\n"
    assert read(write(text), comment="#") == SMALL
    assert read(write("#a X\n")) == [[["#a", "X"]]]  # hash signs are words, unless told


@pytest.mark.parametrize("text", ["", "\n", "\n\n \n", "\ufeff"])
@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl"])
def test_empty_files(write, text, form):
    assert sum(len(block) for block in blocks(write(text), Reading(format=form))) == 0
    assert sum(len(block) for block in blocks(write(gzip.compress(text.encode())), Reading(format=form))) == 0


def test_blocks_are_bounded_and_lines_counted(write, monkeypatch):
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 16)
    text = "".join(f"w{i} L{i}\n\n" for i in range(50)) + "".join(f"long{i} L\n" for i in range(40)) + "\n"
    found = list(blocks(write(text), Reading()))
    assert len(found) > 20
    assert sum(len(block) for block in found) == 51
    with pytest.raises(FormatError, match=r"data\.txt:143: the line has 1 column where the lines before have 2"):
        list(blocks(write(text + "\nodd\n"), Reading()))


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a X\nb\n", r"data\.txt:2: the line has 1 column where the lines before have 2"),
        (b"a X\nb Y Z\n", r":2: the line has 3 columns"),
        (b"a X\nb \xff\n", r":2: the line is not valid UTF-8"),
        (b"\xff\xfea\x00", r":1: the file is UTF-16"),
        (gzip.compress(b"a X\n" * 100, mtime=0)[:-10], "gzip data are damaged"),
        (b"\x1f\x8bnot gzip at all", "gzip data are damaged"),
    ],
)
def test_malformed_columns(write, content, message):
    with pytest.raises(FormatError, match=message):
        list(blocks(write(content), Reading()))


ENCODINGS = ["latin-1", "euc-jp", "utf-16", "utf-16-be", "shift_jis", "utf-8-sig", "UTF8"]


@pytest.mark.parametrize("form", ["columns", "crfsuite", "jsonl", "csv"])
@pytest.mark.parametrize("encoding", ENCODINGS)
def test_other_encodings(write, encoding, form, monkeypatch):
    word = "caf\xe9" if encoding in ("latin-1", "utf-8-sig") else "\u65e5\u672c\u8a9e"
    text = {
        "columns": f"{word} X\n\n" * 40,
        "crfsuite": f"X\t{word}\n\n" * 40,
        "jsonl": f'{{"tokens": ["{word}"], "labels": ["X"]}}\n' * 40,
        "csv": "word,label\n" + f"{word},X\n\n" * 40,
    }[form]
    monkeypatch.setattr(blocks_module, "BLOCK_BYTES", 7)  # characters are cut in two
    for content in (text.encode(encoding), gzip.compress(text.encode(encoding))):
        found = list(blocks(write(content), Reading(format=form, encoding=encoding)))
        assert [x for block in found for x in block.words()] == [[word]] * 40
        assert [y for block in found for y in block.labels()] == [["X"]] * 40


@pytest.mark.parametrize(
    ("content", "encoding", "message"),
    [
        ("日本 X\n語 Y\n".encode("euc-jp") + b"\xa4", "euc-jp", r":3: the line is not valid euc-jp"),
        ("日本 X\n".encode("euc-jp") + b"a\xff X\nb Y\n", "euc-jp", r":2: the line is not valid euc-jp"),
        (b"a X\n", "utf-16-le", None),
        ("a X\n".encode("utf-16") + b"a", "utf-16", r":2: the line is not valid utf-16"),
        (b"a X\nb +2AA- X\n", "utf-7", r"the line is not valid utf-7"),  # a lone surrogate
    ],
)
def test_text_that_is_not_in_the_encoding(write, content, encoding, message):
    path = write(content)
    if message is None:  # other characters, but characters
        assert read(path, encoding=encoding) == [[[content.decode(encoding)]]]
        return
    with pytest.raises(FormatError, match=message):
        read(path, encoding=encoding)


def test_standard_input(monkeypatch):
    for content in (b"a X\nb Y\n\nc X", gzip.compress(b"a X\nb Y\n\nc X")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        assert read("-") == SMALL
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a X\nb\n")))
    with pytest.raises(FormatError, match="<stdin>:2"):
        read("-")


def test_labels_of_columns(write):
    block = next(blocks(write("O a B-X\nP b I-X\n"), Reading(labels=(-1, 0))))
    assert block.labels(0) == [["B-X", "I-X"]] and block.labels(1) == [["O", "P"]]
    assert block.words() == [["O", "P"]]
    with pytest.raises(FormatError, match="no column 7: the file has 3 columns"):
        next(blocks(write("a b c\n"), Reading(labels=(7,)))).labels()


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content):
    try:
        rows = _core.Columns.parse(content, "", "", -1, 1)
    except ValueError as error:
        line, message = error.args
        assert line >= 1 and message
    else:
        out = rows.annotate([], [], " ")
        assert out.rstrip(b"\n") == content.rstrip(b"\n") or rows.n_tokens  # white space behind tokens goes
        assert _core.Columns.parse(out, "", "", -1, 1).n_tokens == rows.n_tokens


@given(st.binary(max_size=60))
def test_where_the_last_sequence_ends(content):
    end = _core.last_blank_line(content)
    head, tail = content[:end], content[end:]
    assert (
        not head or not head.splitlines(keepends=True)[-1].strip(b" \t\r\n\x0b\x0c\x1c\x1d\x1e\x85") or b"\r" in content
    )
    lines = tail.split(b"\n")
    assert all(line.strip(b" \t\r") for line in lines[:-1])


# ---- CRFsuite -------------------------------------------------------------------------------------------------------


def test_crfsuite(write):
    text = "A\tw=the\tlen:3\tw\\:x:0.5\n\tback\\\\slash\ttwice\ttwice:2\n\nB\n"
    block = next(blocks(write(text, "data.crfsuite"), Reading(format="crfsuite")))
    assert block.items == [
        [{"w=the": 1.0, "len": 3.0, "w:x": 0.5}, {"back\\slash": 1.0, "twice": 3.0}],
        [{}],
    ]
    assert block.labels() == [["A", ""], ["B"]]
    assert block.words() == [["w=the", "back\\slash"], [""]]


@pytest.mark.parametrize("weight", ["x", "", "1e", "nan", "inf", "1:2"])
def test_crfsuite_weights(write, weight):
    with pytest.raises(FormatError, match=r":2: attribute .* has the weight"):
        list(blocks(write(f"A\tw\nB\tname:{weight}\n"), Reading(format="crfsuite")))


names = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\t\n\r"), min_size=1, max_size=8)


@given(names, st.dictionaries(names, st.floats(-1e6, 1e6), max_size=4))
def test_crfsuite_round_trip(label, token):
    line = write_item(label, token.items())
    found = list(read_items([(1, line)], "x"))
    if line.strip(" \t"):
        assert found == [(1, [token], [label], None)]


def test_crfsuite_cannot_hold_tabs():
    with pytest.raises(ValueError, match="holds a tab"):
        write_item("A", [("a\tb", 1.0)])


# ---- JSON lines -----------------------------------------------------------------------------------------------------


def test_json(write):
    text = (
        '{"tokens": ["a", "b"], "labels": ["X", null], "id": 7}\n\n'
        '{"tokens": [], "labels": []}\n'
        '{"tokens": ["a", "b", "c"], "spans": [[1, 3, "P"], {"start": 0, "end": 1, "label": "Q"}]}\n'
        '{"tokens": ["a"], "levels": [[[0, 1, "P"]], [[0, 1, "Q"]]]}\n'
        '{"tokens": ["a"], "labels": [["X", "Y"]]}\n'
    )
    block = next(blocks(write(text), Reading(format="jsonl")))
    assert block.targets[:2] == [["X", None], []]
    assert block.targets[2] == Spans([(0, 1, "Q"), (1, 3, "P")])
    assert block.targets[3] == Levels([Spans([(0, 1, "P")]), Spans([(0, 1, "Q")])])
    assert block.targets[4] == [frozenset({"X", "Y"})]
    assert block.offsets.tolist() == [0, 2, 2, 5, 6, 7]
    assert block.words() == [["a", "b"], [], ["a", "b", "c"], ["a"], ["a"]]
    assert labels_of(block, False, None)[2] == ["B-Q", "B-P", "I-P"]


def test_json_attributes(write):
    block = next(blocks(write('{"tokens": [{"w": "a", "n": 2}, {}]}\n'), Reading(format="jsonl")))
    assert block.items == [[{"w": "a", "n": 2}, {}]]
    with pytest.raises(FormatError, match=r":1: the sequence has no labels"):
        block.labels()


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "the line is not JSON"),
        ("[1]", 'an object with a list of "tokens"'),
        ('{"tokens": 3}', 'a list of "tokens"'),
        ('{"tokens": [3]}', "token 0 must be a string"),
        ('{"tokens": [[]]}', "token 0 must be"),
        ('{"tokens": ["\\ud800"]}', "half a surrogate pair"),
        ('{"tokens": ["a"], "labels": []}', "0 labels for 1 tokens"),
        ('{"tokens": ["a"], "labels": "B"}', '"labels" must be a list'),
        ('{"tokens": ["a"], "labels": [true]}', "label 0 must be"),
        ('{"tokens": ["a"], "labels": ["B"], "spans": []}', 'both "labels" and "spans"'),
        ('{"tokens": ["a"], "spans": [[0, 2, "B"]]}', "does not lie within the 1 tokens"),
        ('{"tokens": ["a"], "spans": [[0.0, 1, "B"]]}', "a span must be"),
        ('{"tokens": ["a", "b"], "spans": [[0, 2, "B"], [1, 2, "C"]]}', "overlap"),
        ('{"tokens": ["a"], "levels": [3]}', "list of lists"),
        ('{"tokens": ["a", {"w": "b"}]}', "write all alike"),
        ('{"tokens": ["a", ["b", "c"]]}', "a token has 2 cells"),
        ('{"tokens": [{"n": NaN}]}', "not JSON"),
        ("[" * 100_000, "not JSON"),
    ],
)
def test_malformed_json(write, line, message):
    with pytest.raises(FormatError, match=message) as caught:
        list(blocks(write(line + "\n"), Reading(format="jsonl")))
    assert ":1: " in str(caught.value)


def test_formats_by_name():
    assert [format_of(n, "?") for n in ("a.txt", "a.jsonl", "a.JSON.gz", "x.crfsuite.gz", "-", "conll")] == [
        "columns", "jsonl", "jsonl", "crfsuite", "?", "?",
    ]  # fmt: skip


# ---- writing ---------------------------------------------------------------------------------------------------------

words = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\t\n\r"), min_size=1, max_size=6)


def written(records, form, separator="\t"):
    out = io.BytesIO()
    for number, record in enumerate(records):
        record.number = number
        format_module(form).write(out, record, Reading(format=form, separator=separator))
    return out.getvalue()


@pytest.mark.parametrize("form", FORMATS)
@given(data=st.data())
def test_what_is_written_is_read(form, data):
    """A format's writer and its reader are inverse, whatever the words and labels are."""
    tokens = st.lists(st.tuples(words, words, words), min_size=1, max_size=4)
    records, expected = [], []
    for rows in data.draw(st.lists(tokens, min_size=1, max_size=3)):
        cells, labels = [list(row[:2]) for row in rows], [row[2] for row in rows]
        names = {"names": ["form", "lemma"], "label_names": ["upos"]} if form == "conllu" else {}  # columns that it has
        records.append(Record("here", cells, None, [labels], None, {}, **names))
        expected.append((cells, labels))
    content = written(records, form)
    stream = io.BufferedReader(io.BytesIO(content))
    found = list(format_module(form).read(stream, "here", Reading(format=form, separator="\t")))
    got = [(record.cells, record.items, *record.labels) for block in found for record in block.records()]
    assert [labels for _, _, labels in got] == [labels for _, labels in expected]
    for (cells, items, _), (given_cells, _) in zip(got, expected, strict=True):
        if form == "crfsuite":  # cells are attributes, named by their columns
            assert items == [{f"{c}={cell}": 1.0 for c, cell in enumerate(row)} for row in given_cells]
        elif form == "conllu":
            assert [row[1:3] for row in cells] == given_cells
        else:
            assert cells == given_cells


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_reads_writes_and_annotates(form):
    module = format_module(form)
    assert all(callable(getattr(module, name)) for name in ("read", "write", "annotate"))
    assert isinstance(module.SPANS, bool) and isinstance(module.ATTRIBUTES, bool)
    assert all(format_of(f"a{ending}", "?") == form for ending in FORMATS[form])


@pytest.mark.parametrize(
    ("form", "label", "message"),
    [
        ("columns", "a\tb", "choose another --output-separator"),
        ("columns", "a\nb", "can not stand in a column"),
        ("crfsuite", "a\tb", "holds a tab"),
        ("crfsuite", "a\rb", "line break"),
    ],
)
def test_what_can_not_be_written(form, label, message):
    record = Record("here:3", [["w"]], None, [[label]], None, {})
    with pytest.raises(ValueError, match=f"^here:3: .*{message}"):
        written([record], form)
    assert written([record], "jsonl")  # holds everything


# ---- targets --------------------------------------------------------------------------------------------------------


def test_partial_labels():
    assert known_cells(["A", "?", "A|B", "|"]) == ["A", None, frozenset({"A", "B"}), "|"]


def test_segments_cover_the_sequence(write):
    block = next(blocks(write("a B-X\nb I-X\nc O\nd O\ne B-X\n"), Reading()))
    assert segments_of(block, "iob2") == [[(0, 2, "X"), (2, 3, "O"), (3, 4, "O"), (4, 5, "X")]]
    assert segments_of(block, "iob2", merge=True) == [[(0, 2, "X"), (2, 4, "O"), (4, 5, "X")]]
    assert file_labels(segments_of(block, "iob2")[0], 5, "bilou") == ["B-X", "L-X", "O", "O", "U-X"]
    assert covered([], 2) == [(0, 1, "O"), (1, 2, "O")]


def segment_constraints(rows, scheme, labels):
    """What tags say of the only level of a model."""
    told = [[one] for one in known_tags(rows, scheme, labels)]
    return encode_levels(told, list(map(len, rows)), ["segment"], [labels])[0]


def test_constraints_on_segments():
    rows = [["B-X", None, "I-Y", "B-Y", "I-Y", None, "O"], [frozenset({"B-X", "B-Y"})]]
    found = segment_constraints(rows, "iob2", ["X", "Y", "O"])
    assert found.level.labels.tolist() == [0, -1, 1, 1, 1, -1, 2, -1]
    assert found.level.ends.tolist() == [-1, -1, 1, 0, -1, 1, 1, 1]
    assert found.level.allowed.astype(int).tolist()[7] == [1, 1, 0]
    assert found.known.tolist() == [True, True] and found.complete.tolist() == [False, False]
    with pytest.raises(ValueError, match="sequence 0, token 0: 'B-Z' is not a label"):
        segment_constraints([["B-Z"]], "iob2", ["X"])


@given(st.lists(st.sampled_from(["B-X", "I-X", "B-Y", "I-Y", "O"]), min_size=1, max_size=6))
def test_complete_constraints_are_the_segments(labels):
    from scansion.schemes import convert, segments

    clean = convert(labels, "iob2", "iob2")
    found = segment_constraints([clean], "iob2", ["X", "Y", "O"])
    ends = np.zeros(len(clean), int)
    for _, stop, _ in covered(segments(clean), len(clean)):
        ends[stop - 1] = 1
    assert found.level.ends.tolist() == ends.tolist() and found.complete.all()


def test_a_level_that_a_file_does_not_have(write):
    with pytest.raises(FormatError, match="level 1 has no column of labels"):
        next(blocks(write("a X\n"), Reading())).labels(1)
    block = next(blocks(write('{"tokens": ["a"], "levels": [[], []]}\n'), Reading(format="jsonl")))
    assert block.labels(1) == [[]] and block.depth == 2
    with pytest.raises(FormatError, match=":1: the sequence has 2 levels, not 3"):
        block.labels(2)


def test_reading_from_a_model_file():
    reading = Reading(columns=(0, 2), template="U:%x[0,0]", dialect="crf++", scheme="iob2")
    assert Reading.from_json(reading.to_json()) == reading
    good = reading.to_json()
    for change in (
        {"format": "xml"},
        {"labels": None},
        {"columns": ["0"]},
        {"template": 3},
        {"scheme": "x"},
        {"header": 1},
        {"group": [0]},
        {"format": "csv", "labels": [None]},
        {"new": 1},
    ):
        with pytest.raises(ValueError):
            Reading.from_json({**good, **change})
    with pytest.raises(ValueError):
        Reading.from_json([])
    older = {key: value for key, value in good.items() if key not in ("header", "group")}
    assert Reading.from_json(older) == reading
    named = Reading("csv", columns=("word", 2), labels=("tag",), header=True, group="id")
    assert Reading.from_json(named.to_json()) == named


# ---- CSV -------------------------------------------------------------------------------------------------------------


def csv_block(write, text, name="a.csv", **reading):
    (block,) = blocks(write(text, name), Reading(format="csv", **reading))
    return block


@given(
    data=st.lists(
        st.lists(st.tuples(*[st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\0\r"))] * 3)),
        min_size=1,
        max_size=3,
    ),
    separator=st.sampled_from(",;|"),
)
def test_csv_holds_any_cell(data, separator):
    """Separators, quotes and line ends stand in quoted cells; sequences are told apart by their number."""
    records = [Record("here", [list(r[:2]) for r in rows], None, [[r[2] for r in rows]], None, {}) for rows in data]
    if not records[0].cells:
        records[0].cells, records[0].labels = [["a", "b"]], [["c"]]
    text = written(records, "csv", separator)
    stream = io.BufferedReader(io.BytesIO(text))
    found = list(format_module("csv").read(stream, "here", Reading(format="csv", separator=separator)))
    got = [(record.cells, *record.labels) for block in found for record in block.records()]
    assert got == [(record.cells, *record.labels) for record in records if record.cells]


def test_csv_of_a_spreadsheet(write):
    """Names of columns, a group that is written once, quotes; empty rows and the byte order mark do no harm."""
    text = 'Sentence #,Word,POS,Tag\nSentence: 1,The,DT,B-NP\n,"man, ""x""",NN,I-NP\n,,,\nSentence: 2,sees,VB,O\n'
    for start in ("", "\ufeff"):
        block = csv_block(write, start + text)
        assert block.names == ["Sentence #", "Word", "POS", "Tag"] and block.reading.group == "Sentence #"
        assert block.reading.labels == ("Tag",) and block.reading.columns == ("Word", "POS")
        assert block.words() == [["The", 'man, "x"'], ["sees"]] and block.labels() == [["B-NP", "I-NP"], ["O"]]
        assert block.numbers == [2, 5]
        assert [record.cells[0] for record in block.records()] == [["The", "DT"], ["sees", "VB"]]


@pytest.mark.parametrize(
    ("text", "reading", "names", "words", "labels"),
    [
        ("a,X\nb,Y\n\nc,Y\n", {}, [], [["a", "b"], ["c"]], [["X", "Y"], ["Y"]]),
        ("a;X\nb;Y\n", {}, [], [["a", "b"]], [["X", "Y"]]),
        ("a,X\nb,Y\n", {"header": True}, ["a", "X"], [["b"]], [["Y"]]),
        ("word,label\nb,Y\n", {}, ["word", "label"], [["b"]], [["Y"]]),
        ("word,label\nb,Y\n", {"header": False}, [], [["word", "b"]], [["label", "Y"]]),
        ("n,tag,x\n1,Y,b\n", {"labels": ("tag",), "columns": ("x",)}, ["n", "tag", "x"], [["b"]], [["Y"]]),
        ("7,a,X\n7,b,Y\n8,c,Y\n", {"group": 0}, [], [["a", "b"], ["c"]], [["X", "Y"], ["Y"]]),
        ("time,x,label\n0.5,3,walk\n", {}, ["time", "x", "label"], [["0.5"]], [["walk"]]),
        ("# no\nword,label\nb,Y\n", {"comment": "#"}, ["word", "label"], [["b"]], [["Y"]]),
    ],
)
def test_csv_headers_and_groups(write, text, reading, names, words, labels):
    block = csv_block(write, text, **reading)
    assert (block.names, block.words(), block.labels()) == (names, words, labels)


def test_quotes_between_tabs(write):
    """A token that is a quote stays one; a quoted cell is taken apart."""
    block = csv_block(write, '"\tO\n""\tO\n"a ""b"""\tX\n', "a.tsv")
    assert block.words() == [['"', '""', 'a "b"']]


@pytest.mark.parametrize(
    ("text", "reading", "message"),
    [
        ("a,X\nb\n", {}, "a.csv:2: the row has 1 column, not 2"),
        ('a,X\n"b,Y\n', {}, "a.csv:2: .*ends with one"),
        ("word,label\nb,Y\n", {"labels": ("tag",)}, "no column 'tag'; the columns are word, label"),
        ("a,b,a\nx,y,z\n", {"header": True, "labels": ("a",)}, "several columns 'a'"),
        ("a,X\n", {"group": 5}, "no column 5: the file has 2 columns"),
        ("a,X\n", {"separator": "::"}, "one character"),
    ],
)
def test_malformed_csv(write, text, reading, message):
    with pytest.raises(FormatError, match=message):
        for block in blocks(write(text, "a.csv"), Reading(format="csv", **reading)):
            block.labels()


# ---- CoNLL-U, marks of documents, JSON arrays ------------------------------------------------------------------------

SENTENCE = (
    "# text = vamonos\n1-2\tvamonos\t_\t_\t_\t_\t_\t_\t_\t_\n1\tva\tir\tVERB\t_\t_\t0\troot\t_\t_\n"
    "2\tnos\tnos\tPRON\t_\t_\t1\tobj\t_\t_\n2.1\tx\t_\tX\t_\t_\t_\t_\t_\t_\n\n"
)


def test_conllu_has_words_without_ranges_and_empty_nodes(write):
    (block,) = blocks(write(SENTENCE * 2, "a.conllu"), Reading(format="conllu"))
    assert block.words() == [["va", "nos"]] * 2 and block.labels() == [["VERB", "PRON"]] * 2
    assert block.numbers == [1, 7] and "".join(line + "\n" for line in block.texts) == SENTENCE * 2
    (block,) = blocks(write(SENTENCE, "a.conllu"), Reading(format="conllu", labels=("deprel",), columns=("lemma",)))
    assert block.words() == [["ir", "nos"]] and block.labels() == [["root", "obj"]]


@pytest.mark.parametrize(("text", "message"), [("1\ta\n", "ten columns"), ("x" + "\t_" * 9 + "\n", "not 'x'")])
def test_malformed_conllu(write, text, message):
    with pytest.raises(FormatError, match=f":1: .*{message}"):
        list(blocks(write(text, "a.conllu"), Reading(format="conllu")))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-DOCSTART- -X- O\n\na X O\n", [["a"]]),
        ("a X\n-DOCSTART- -X-\nb X\n", [["a"], ["b"]]),
        ("# one two three\na X\n# the next one\nb X\n", [["a"], ["b"]]),
        ("#begin document (x); part 0\na X\n\n#end\n", [["a"]]),
        ("# X\na X\n", [["#", "a"]]),  # a token
        ("a X\n# X\n", [["a", "#"]]),
        ("# alone\n", [["#"]]),
    ],
)
def test_marks_of_documents_and_notes_separate(write, text, expected):
    found = [row for block in blocks(write(text), Reading()) for row in (block.words() if len(block) else [])]
    assert found == expected


def test_a_hashtag_that_lacks_a_cell_is_no_note(write):
    with pytest.raises(FormatError, match=":2: the line has 1 column where"):
        list(blocks(write("a X\n#tag\n"), Reading()))


def test_json_arrays_and_other_keys(write):
    text = '[{"tokens": ["a", "b"], "ner_tags": [0, 1]},\n {"tokens": ["b"], "tags": ["Q"]}]'
    (block,) = blocks(write(text), Reading(format="jsonl"))
    assert block.words() == [["a", "b"], ["b"]] and block.labels() == [[0, 1], ["Q"]]
    line = '{"tokens": ["a"], "pos_tags": ["N"], "ner_tags": ["O"]}'
    (block,) = blocks(write(line), Reading(format="jsonl", labels=("pos_tags",)))
    assert block.labels() == [["N"]]
    with pytest.raises(FormatError, match=":1: element 1: the line must be"):
        list(blocks(write('[{"tokens": []}, 3]'), Reading(format="jsonl")))
