"""Tag schemes: segments from labels, labels from segments, malformed sequences.

test_metrics.py compares the reading of malformed sequences with conlleval's rules.
"""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from scansion.schemes import _ROLES, SCHEMES, Segment, convert, detect, encode, segments, transitions

TAG_SCHEMES = ("iob1", "iob2", "ioe1", "ioe2", "iobes", "bilou")
TYPES = ("NP", "VP", "A-B", "")

# One sentence in every scheme: two touching NPs, a gap, a touching VP and NP, a single token at the end.
SENTENCE = [(0, 3, "NP"), (3, 5, "NP"), (6, 7, "VP"), (7, 8, "NP"), (8, 9, "NP")]
ENCODED = {
    "iob1": "I-NP I-NP I-NP B-NP I-NP O I-VP I-NP B-NP",
    "iob2": "B-NP I-NP I-NP B-NP I-NP O B-VP B-NP B-NP",
    "ioe1": "I-NP I-NP E-NP I-NP I-NP O I-VP E-NP I-NP",
    "ioe2": "I-NP I-NP E-NP I-NP E-NP O E-VP E-NP E-NP",
    "iobes": "B-NP I-NP E-NP B-NP E-NP O S-VP S-NP S-NP",
    "bilou": "B-NP I-NP L-NP B-NP L-NP O U-VP U-NP U-NP",
}


def sequences_of(tags: str, types: tuple[str, ...] = ("X", "Y")) -> st.SearchStrategy[list[str]]:
    labels = [tag if tag in "O." else f"{tag}-{kind}" for tag in tags for kind in types]
    return st.lists(st.sampled_from(labels), max_size=12)


@st.composite
def segmentations(draw, types=TYPES, gaps=True, touching=True):
    """Non-overlapping segments of a sequence, and its length."""
    found, end = [], 0
    for _ in range(draw(st.integers(0, 5))):
        start = end + (draw(st.integers(0, 2)) if gaps else 0)
        stop = start + draw(st.integers(1, 4))
        allowed = [k for k in types if touching or not found or found[-1][1] < start or found[-1][2] != k]
        found.append((start, stop, draw(st.sampled_from(allowed))))
        end = stop
    return found, end + (draw(st.integers(0, 2)) if gaps else 0)


# ---- reading -------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", TAG_SCHEMES)
def test_one_sentence_in_every_scheme(scheme):
    labels = ENCODED[scheme].split()
    assert segments(labels, scheme) == SENTENCE
    assert segments(labels, scheme.upper(), strict=True) == SENTENCE
    assert encode(SENTENCE, 9, scheme) == labels


def test_segments_are_named_tuples():
    (segment,) = segments(["B-NP", "I-NP"])
    assert isinstance(segment, Segment)
    assert (segment.start, segment.stop, segment.label) == (0, 2, "NP")


@pytest.mark.parametrize(
    ("scheme", "labels", "expected"),
    [
        ("iob2", "O I-X I-X", [(1, 3, "X")]),  # I after O starts a chunk
        ("iob2", "B-X I-Y", [(0, 1, "X"), (1, 2, "Y")]),  # a change of type does
        ("iob2", "I-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("iob2", "I-X O I-X", [(0, 1, "X"), (2, 3, "X")]),
        ("iob1", "B-X B-X", [(0, 1, "X"), (1, 2, "X")]),
        ("ioe2", "I-X O", [(0, 1, "X")]),  # never closed
        ("ioe2", "E-X E-X I-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X")]),
        ("ioe1", "I-X E-Y", [(0, 1, "X"), (1, 2, "Y")]),
        ("iobes", "B-X B-X E-X", [(0, 1, "X"), (1, 3, "X")]),
        ("iobes", "S-X E-X I-X S-X", [(0, 1, "X"), (1, 2, "X"), (2, 3, "X"), (3, 4, "X")]),
        ("iobes", "I-X E-X B-X O", [(0, 2, "X"), (2, 3, "X")]),
        ("bilou", "I-X L-X U-X L-X", [(0, 2, "X"), (2, 3, "X"), (3, 4, "X")]),
        ("conlleval", "B-X E-X B-X", [(0, 3, "X")]),  # the script has no rule for E before B
        ("conlleval", "[-X . ]-X ]-X O", [(0, 1, "X"), (2, 3, "X"), (3, 4, "X")]),
        ("conlleval", "[-X I-X", [(0, 1, "X")]),  # ... nor for a start behind a bracket
        ("conlleval", "NP VP", []),
    ],
)
def test_malformed_sequences(scheme, labels, expected):
    assert segments(labels.split(), scheme) == expected


def test_plain_labels():
    assert segments("aabba", "plain") == [(0, 2, "a"), (2, 4, "b"), (4, 5, "a")]
    assert segments(["O", "A", "A", "O"], "plain", outside="O") == [(1, 3, "A")]
    assert segments(np.array([3, 3, 1]), "plain") == [(0, 2, 3), (2, 3, 1)]
    assert segments([None, None, 0], "plain") == [(0, 2, None), (2, 3, 0)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_has_no_segments(scheme):
    assert segments([], scheme) == []
    if scheme != "conlleval":
        assert encode([], 0, scheme) == []


def test_suffixes_delimiters_hyphens_and_bare_tags():
    assert segments(["NP-B", "NP-I", "O"], suffix=True) == [(0, 2, "NP")]
    assert segments(["A-B-B", "A-B-I"], suffix=True) == [(0, 2, "A-B")]
    assert segments(["B-A-B", "I-A-B"]) == [(0, 2, "A-B")]
    assert segments(["B_X", "I_X"], delimiter="_") == [(0, 2, "X")]
    assert segments(["B", "I", "O", "B"]) == [(0, 2, ""), (3, 4, "")]
    assert segments(["B-X", "_"], outside="_") == [(0, 1, "X")]
    assert segments(np.array(["B-X", "I-X"])) == [(0, 2, "X")]


@pytest.mark.parametrize(
    ("scheme", "labels", "position"),
    [
        ("iob2", "O I-X", 1),
        ("iob2", "B-X I-Y", 1),
        ("iob1", "O B-X", 1),
        ("iob1", "I-X B-Y", 1),
        ("ioe2", "I-X O", 0),
        ("ioe1", "E-X O", 0),
        ("ioe1", "I-X E-X I-Y", 1),
        ("iobes", "S-X B-X O", 1),
        ("iobes", "O I-X E-X", 1),
        ("bilou", "U-X L-X", 1),
    ],
)
def test_strict_names_the_position(scheme, labels, position):
    sequence = labels.split()
    assert segments(sequence, scheme)
    with pytest.raises(ValueError, match=f"'{sequence[position]}' at position {position} is malformed {scheme}"):
        segments(sequence, scheme, strict=True)


@pytest.mark.parametrize(
    ("labels", "scheme", "message"),
    [
        (["O", "NN"], "iob2", "'NN' at position 1 has no tag of scheme 'iob2'"),
        (["B-X", "E-X"], "iob2", "'E-X' at position 1"),
        (["B-X", "E-X"], "bilou", "'E-X' at position 1"),
        (["O", 3], "iob2", "3 at position 1 is not a string"),
        (["O", None], "conlleval", "None at position 1"),
        (["O"], "bilbo", "unknown scheme 'bilbo'"),
    ],
)
def test_unreadable_labels(labels, scheme, message):
    with pytest.raises(ValueError, match=message):
        segments(labels, scheme)


def test_unreadable_options():
    with pytest.raises(ValueError, match="delimiter is empty"):
        segments(["O"], delimiter="")
    with pytest.raises(ValueError, match="strict=True needs a scheme of its own"):
        segments(["O"], "conlleval", strict=True)


# ---- writing -------------------------------------------------------------------------------------
@given(segmentations(), st.sampled_from(TAG_SCHEMES), st.booleans(), st.sampled_from(["-", "_", "::"]))
def test_encode_and_back(segmentation, scheme, suffix, delimiter):
    found, length = segmentation
    labels = encode(reversed(found), length, scheme, suffix=suffix, delimiter=delimiter)
    assert len(labels) == length
    assert segments(labels, scheme, strict=True, suffix=suffix, delimiter=delimiter) == found
    assert detect([labels], suffix=suffix, delimiter=delimiter) != "plain"


@given(segmentations(types=("a", "b", "c"), touching=False))
def test_plain_encode_and_back(segmentation):
    found, length = segmentation
    assert segments(encode(found, length, "plain", outside="O", strict=True), "plain", outside="O") == found


@given(segmentations(), st.sampled_from(TAG_SCHEMES), st.sampled_from(TAG_SCHEMES))
def test_convert_there_and_back(segmentation, source, target):
    found, length = segmentation
    labels = encode(found, length, source)
    other = convert(labels, source, target, strict=True)
    assert other == encode(found, length, target)
    assert convert(other, target, source, strict=True) == labels


def test_convert_plain_labels():
    assert convert(["O", "A", "A", "B"], "plain", "iobes") == ["O", "B-A", "E-A", "S-B"]
    assert convert(["B-A", "I-A", "O"], "iob2", "plain") == ["A", "A", "O"]
    assert convert(["x", "O"], "plain", "bio", outside=None) == ["B-x", "B-O"]
    assert convert(["B-A", "B-A"], "iob2", "plain") == ["A", "A"]
    with pytest.raises(ValueError, match=r"would merge the segments \(0, 1, 'A'\) and \(1, 2, 'A'\)"):
        convert(["B-A", "B-A"], "iob2", "plain", strict=True)
    with pytest.raises(ValueError, match=r"segment \(0, 1, 'O'\) has the outside label"):
        convert(["B-O"], "iob2", "plain", strict=True)


@pytest.mark.parametrize(
    ("found", "length", "options", "message"),
    [
        ([(0, 2, "A"), (1, 3, "B")], 3, {}, r"\(0, 2, 'A'\) and \(1, 3, 'B'\) overlap"),
        ([(0, 2, "A"), (0, 1, "B")], 3, {}, "overlap"),
        ([(0, 1, "A"), (2, 4, "B")], 3, {}, r"segment 1 is \(2, 4, 'B'\); expected 0 <= start < stop <= 3"),
        ([(-1, 1, "A")], 3, {}, r"segment 0 is \(-1, 1, 'A'\)"),
        ([(1, 1, "A")], 3, {}, r"segment 0 is \(1, 1, 'A'\)"),
        ([(0, 1)], 3, {}, r"segment 0 is \(0, 1\); expected \(start, stop, label\)"),
        ([(0.5, 1, "A")], 3, {}, r"segment 0 is \(0.5, 1, 'A'\)"),
        ([(0, 1, 7)], 3, {}, "needs a string as label"),
        ([], -1, {}, "length is -1"),
        ([(0, 1, 7)], 3, {"scheme": "plain"}, "no segment covers positions 1 to 2"),
        ([(1, 2, 7)], 2, {"scheme": "plain"}, "no segment covers positions 0 to 0"),
        ([], 3, {"scheme": "conlleval"}, "for reading only"),
    ],
)
def test_segments_that_cannot_be_written(found, length, options, message):
    with pytest.raises(ValueError, match=message):
        encode(found, length, **options)


# ---- guessing ------------------------------------------------------------------------------------
@pytest.mark.parametrize("scheme", TAG_SCHEMES)
def test_detect_knows_every_scheme(scheme):
    assert detect([["O"], ENCODED[scheme].split()]) == scheme


@pytest.mark.parametrize(
    ("labels", "scheme"),
    [
        ([], "iob2"),
        ([[], ["O"]], "iob2"),
        ([["B-X", "O"]], "iob2"),
        ([["I-X", "I-X", "O"]], "iob1"),
        ([["E-X"]], "ioe2"),
        ([["S-X"]], "iobes"),
        ([["U-X"]], "bilou"),
        ([["B-X", "I-X", "B-X"], ["B-Y", "O", "I-X"]], "iob2"),  # one slip does not make it IOB1
        ([["NN", "VB"]], "plain"),
        ([["B-X", "NN"]], "plain"),
        ([["E-X", "L-X"]], "plain"),
        ([[1, 2]], "plain"),
    ],
)
def test_detect(labels, scheme):
    assert detect(labels) == scheme


def test_detect_with_suffixes():
    assert detect([["X-B", "X-I", "O"]], suffix=True) == "iob2"
    assert detect([["X-B", "X-I", "O"]]) == "plain"


@given(sequences_of("BIESO"), st.sampled_from(["iobes", "plain"]))
def test_inputs_stay_as_they_are(labels, scheme):
    copy = list(labels)
    segments(labels, scheme)
    convert(labels, scheme, "iob2")
    assert labels == copy


# ---- transitions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("scheme", TAG_SCHEMES)
@pytest.mark.parametrize("types", [("X", "Y"), ("",)])
def test_transitions_allow_what_strict_reading_does(scheme, types):
    """All sequences of up to four labels: those that the masks allow are those that `encode` can write."""
    tags = sorted(set(_ROLES[scheme]))
    labels = ["O", *(f"{tag}-{kind}" if kind else tag for tag in tags for kind in types)]
    transition, start, end = transitions(labels, scheme)
    assert {*np.unique(transition), *start, *end} <= {0.0, -np.inf}
    for length in (1, 2, 3, 4) if len(types) == 1 else (1, 2, 3):
        for numbers in itertools.product(range(len(labels)), repeat=length):
            score = start[numbers[0]] + end[numbers[-1]] + sum(transition[i, j] for i, j in itertools.pairwise(numbers))
            try:
                segments([labels[i] for i in numbers], scheme, strict=True)
                allowed = True
            except ValueError:
                allowed = False
            assert (score == 0.0) == allowed, [labels[i] for i in numbers]


def test_transitions_of_other_spellings():
    plain = transitions(["a", "b"], "plain")
    assert not plain.transition.any() and not plain.start.any() and not plain.end.any()
    turned = transitions(["_", "X|B", "X|I"], "bio", suffix=True, delimiter="|", outside="_")
    np.testing.assert_array_equal(turned.transition, transitions(["O", "B-X", "I-X"]).transition)
    with pytest.raises(ValueError, match="'Q-X' at position 1 has no tag of scheme 'iob2'"):
        transitions(["O", "Q-X"])
    with pytest.raises(ValueError, match="allows everything"):
        transitions(["O"], "conlleval")
