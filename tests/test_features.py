"""Features of whole segments: texts and gazetteers."""

from __future__ import annotations

import pytest

import scansion as sc
from scansion.features import Gazetteer, SegmentText

WORDS = ["The", "united", "States", "of", "america"]
DICTS = [{"w": word, "caps": word.istitle()} for word in WORDS]
STRINGS = [[f"w[0]={word}", "x"] for word in WORDS]


def test_segment_text():
    text = SegmentText()
    assert text(DICTS, 1, 3) == ["text:united States"]
    assert text(WORDS, 0, 1) == ["text:The"]
    assert SegmentText("w[0]=", lower=True)(STRINGS, 2, 5) == ["text:states of america"]
    assert SegmentText(longest=2)(DICTS, 0, 3) == []


def test_gazetteer():
    places = Gazetteer("place", ["united States", ("states", "of", "america"), "the"], lower=True)
    assert places.longest == 3
    assert places(DICTS, 1, 3) == ["in:place"]
    assert places(DICTS, 2, 5) == ["in:place"]
    assert places(DICTS, 1, 2) == [] and places(DICTS, 0, 5) == []
    assert Gazetteer("place", ["united states"])(DICTS, 1, 3) == []  # case matters unless told otherwise
    assert Gazetteer("none", [])(DICTS, 0, 1) == []


def test_tokens_without_a_text():
    with pytest.raises(ValueError, match=r"a token has no 'word' to take its text from; it has w, caps"):
        SegmentText("word")(DICTS, 0, 1)
    with pytest.raises(ValueError, match=r"no attribute that starts with 'pos=' .*\['w\[0\]=The', 'x'\]"):
        SegmentText("pos=")(STRINGS, 0, 1)


def test_a_gazetteer_finds_names():
    places = ["new york", "york", "san jose", "rio de janeiro"]
    X, y = [], []
    for place in places:
        words = ["we", "saw", *place.split(), "today"]
        X.append([{"w": word} for word in words])
        y.append([(0, 1, "O"), (1, 2, "O"), (2, len(words) - 1, "place"), (len(words) - 1, len(words), "O")])
    unseen = [{"w": word} for word in ["they", "left", "los", "angeles", "now"]]
    known = Gazetteer("city", [*places, "los angeles"])
    semi = sc.SemiCRF(segment_features=[known, SegmentText()], c2=0.01).fit(X, y)
    assert semi.score(X, y) == 1.0
    assert sc.Segment(2, 4, "place") in semi.predict_single(unseen)
    assert semi.state_features_["segment:in:city", "place"] > 0
    assert ("segment:text:san jose", "place") in semi.state_features_
    assert "text:saw rio" not in {name for name, _ in semi.state_features_}  # seen, but as no segment
