"""Pages: what stands in them, as the standard library's parser reads it."""

from __future__ import annotations

import doctest
import itertools
import json
import re
from pathlib import Path

import numpy as np
import pages
import pytest
from hypothesis import given
from hypothesis import strategies as st

import scansion as sc
from scansion.display import Page, Sequence, report_page, sequence_page
from scansion.display.charts import in_bins
from scansion.display.graph import Edge, Graph, circle_order
from scansion.display.markup import Markup, element, escape, json_script, number, signed
from scansion.display.palette import DARK, LIGHT, OUTSIDE, Palette
from scansion.display.palette import css as look_of

HOSTILE = ["<script>alert(1)</script>", "a&b", "\"'><img src=x onerror=alert(1)>", "</style>", "\x00\ud800"]
WORDS = "Knuth , D. ( 1968 ) The Art of Programming".split()
UPPER = [(0, 3, "author"), (3, 6, "date"), (6, 10, "title")]
LOWER = [(0, 1, "last"), (1, 2, "O"), (2, 3, "first"), (3, 6, "year"), (6, 10, "main")]
LABELS = ["last", "first", "year", "main", "O"]


def nested(**changes):
    marginals = np.full((10, 5), 0.05)
    for start, stop, label in LOWER:
        marginals[start:stop, LABELS.index(label)] = 0.8
    other = [[(0, 3, "author"), (3, 10, "title")], LOWER]
    given = {
        "tokens": WORDS[:9] + ["!"],
        "levels": [UPPER, LOWER],
        "level_names": ["fields", "parts"],
        "marginals": marginals,
        "labels": LABELS,
        "alternatives": [([UPPER, LOWER], 0.7), (other, 0.2)],
    }
    return Sequence(**{**given, **changes})


@pytest.fixture(scope="module")
def semi():
    X = [[{"w": w, "long": float(len(w))} for w in WORDS]] * 3
    y = [[(0, 3, "author"), (3, 6, "date"), (6, 9, "title")]] * 3
    return sc.SemiCRF(2, length_features="bins", attribute_orders={"w:(": (0, 1)}, max_iterations=8).fit(X, y)


@pytest.fixture(scope="module")
def crf():
    rng = np.random.default_rng(0)
    X = [[{"w": f"w{rng.integers(9)}", "p": f"p{rng.integers(4)}"} for _ in range(8)] for _ in range(12)]
    y = [["ABC"[int(t["w"][1]) % 3] for t in x] for x in X]
    return sc.CRF(max_iterations=10).fit(X, y)


# ---- markup ----------------------------------------------------------------------------------------------------------


@given(st.text(alphabet=st.characters(exclude_categories=())))
def test_text_comes_back_as_text(text):
    tree = pages.parse(element("p", text, title=text))
    (node,) = tree.children
    fit = re.sub("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]", "\ufffd", text)
    assert node.text == fit
    assert node.attributes["title"] == fit
    assert node.tag == "p" and all(isinstance(child, str) for child in node.children)


@given(st.recursive(st.text() | st.integers() | st.booleans(), lambda inner: st.lists(inner, max_size=4), max_leaves=9))
def test_data_for_scripts_comes_back(data):
    html = json_script(data, class_="data")
    (node,) = pages.parse(html).children
    assert json.loads(node.text) == data
    assert html.count("<") == 2


def test_attributes():
    assert element("a", "x", class_="b", aria_label="c", hidden=True, id=None, open=False) == (
        '<a class="b" aria-label="c" hidden>x</a>'
    )
    assert element("b", Markup("<i>"), "<i>") == "<b><i>&lt;i&gt;</b>"
    assert escape(Markup("&amp;")) == "&amp;"


def test_numbers():
    assert [number(v, 4) for v in (1234567, 2835.21, 0.123456, -0.5, 12.0, 99.99)] == [
        "1,234,567",
        "2,835",
        "0.1235",
        "\u22120.5",
        "12",
        "99.99",
    ]
    assert signed(-1.234) == "\u22121.23" and signed(2) == "+2.00"


# ---- colours ---------------------------------------------------------------------------------------------------------


def luminance(colour):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    return float(np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4) @ [0.2126, 0.7152, 0.0722])


def contrast(a, b):
    low, high = sorted([luminance(a), luminance(b)])
    return (high + 0.05) / (low + 0.05)


def variables(mode):
    """The colours of the page, light (0) or dark (1)."""
    from scansion.display.page import _asset

    found = re.findall(r"(--[\w-]+): light-dark\((#\w{6}), (#\w{6})\)", _asset("page.css"))
    return {name: colours[mode] for name, *colours in found}


@pytest.mark.parametrize(("mode", "hues"), [(0, LIGHT), (1, DARK)])
def test_text_is_readable_on_every_colour(mode, hues):
    colours = variables(mode)
    paper, ink = colours["--paper"], colours["--ink"]
    for _, tint in (*hues, OUTSIDE[mode]):
        assert contrast(ink, tint) >= 7
    for hue, _ in hues:
        assert contrast(hue, paper) >= 3
    for name in ("--quiet", "--accent", "--plus", "--minus"):
        assert contrast(colours[name], paper) >= 4.5, name
    assert contrast(colours["--quiet"], OUTSIDE[mode][1]) >= 4.5
    assert contrast(colours["--quiet"], colours["--raised"]) >= 4.5


# Machado, Oliveira and Fernandes (2009): severe protanopia, deuteranopia, tritanopia, on linear RGB
DEFICIENCIES = [
    np.eye(3),
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]],
    [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]],
]


def lab(colour, deficiency):
    c = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(c <= 0.04045, c / 12.92, ((c + 0.055) / 1.055) ** 2.4)
    linear = np.clip(np.array(deficiency) @ linear, 0, 1)
    xyz = [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]] @ linear
    f = np.cbrt(xyz / [0.9505, 1.0, 1.089] + 1e-9)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("hues", [LIGHT, DARK], ids=["light", "dark"])
@pytest.mark.parametrize("deficiency", DEFICIENCIES, ids=["none", "protan", "deutan", "tritan"])
def test_hues_stay_apart(hues, deficiency):
    for (a, _), (b, _) in itertools.combinations(hues, 2):
        assert np.linalg.norm(lab(a, deficiency) - lab(b, deficiency)) > 10, (a, b)


def test_palette():
    palette = Palette(["A", "O", "B", "A"])
    assert palette.labels == ["A", "B"]
    assert palette.css("O") == "k out"
    looks = [look_of(i) for i in range(16)]
    assert len(set(looks)) == 16 and looks[8] == "k k0 hatch"


# ---- sequences -------------------------------------------------------------------------------------------------------


def test_page_is_self_contained():
    html = sequence_page([nested()], "A <title>")
    tree = pages.parse(html)
    assert tree.one("title").text == "A <title>" == tree.one("h1").text
    assert tree.one("html").attributes["lang"] == "en"
    assert "default-src 'none'" in tree.one("meta", http_equiv="Content-Security-Policy").attributes["content"]
    for node in tree.walk():
        assert node.tag not in ("link", "iframe", "object", "embed", "base", "form")
        assert not {"src", "srcset", "action", "xlink:href"} & set(node.attributes)
        assert not any(name.startswith("on") for name in node.attributes)
        assert (node.attributes.get("href") or "#").startswith("#")
    assert not re.search(r"https?:|@import|url\(", html)


def test_segments_of_all_levels():
    tree = pages.parse(sequence_page([nested()]))
    cells = tree.all("span", "cell")
    assert [cell.all("span", "token")[0].text for cell in cells] == nested().tokens
    for t, cell in enumerate(cells):  # the lowest level stands first
        low, up = cell.all("span", "bar")
        for bar, level in ((low, LOWER), (up, UPPER)):
            (span,) = [s for s in level if s[0] <= t < s[1]]
            assert ("first" in bar.classes) == (t == span[0]) and ("last" in bar.classes) == (t == span[1] - 1)
            assert bar.text == (span[2] if t == span[0] else "")
    named = tree.all("span", "bar", role="img")
    assert len(named) == len(UPPER) + len(LOWER)
    assert [bar.attributes["tabindex"] for bar in named].count("0") == 1
    assert any("title, fields, tokens 6:10: " in (bar.attributes["aria-label"] or "") for bar in named)
    (date,) = [bar for bar in named if bar.text == "date"]
    assert "alternative with probability 0.2: title 3:10" in date.attributes["aria-label"]


def test_same_label_same_colour():
    tree = pages.parse(sequence_page([nested(), Sequence(["x"], [[(0, 1, "title")]])]))
    looks = {}
    for node in [*tree.all("span", "chip"), *tree.all("span", "bar", role="img")]:
        label = node.children[0].text if isinstance(node.children[0], pages.Node) else node.children[0]
        looks.setdefault(label, set()).add(
            " ".join(c for c in node.classes if c not in ("chip", "bar", "first", "last"))
        )
    assert all(len(found) == 1 for found in looks.values())
    assert len(set(map(str, looks.values()))) == len(looks)


def test_marginals_alternatives_and_tables():
    entry = nested()
    tree = pages.parse(sequence_page([entry]))
    heat = tree.one("div", "heat")
    assert [row.text for row in heat.one("div", "rows").all("span")] == LABELS
    cells = [rect for rect in heat.all("rect") if "column" not in rect.classes]
    assert len(cells) == np.count_nonzero(entry.marginals >= 0.005)
    assert sorted(float(rect.attributes["fill-opacity"]) for rect in cells if "on" in rect.classes) == [0.8] * 10
    rows = tree.one("table", "alternatives").one("tbody").all("tr")
    assert "as shown" in rows[0].text and "0.700" in rows[0].text
    assert "title3:10 ( 1968" in rows[1].text and "0.200" in rows[1].text
    table = tree.all("table")[-1]
    assert [th.text for th in table.one("thead").all("th")] == [
        "Level",
        "Start",
        "Stop",
        "Label",
        "Probability",
        "Tokens",
    ]
    assert len(table.one("tbody").all("tr")) == len(UPPER) + len(LOWER)
    data = json.loads(tree.one("script", "data").text)
    assert [[(a, b, data["labels"][y]) for a, b, y in level] for level in data["levels"]] == [UPPER, LOWER]
    assert data["scored"] == 1 and len(data["likely"]) == 10


def test_details_of_many_sequences_start_closed():
    for count, opened in ((3, True), (4, False)):
        tree = pages.parse(sequence_page([nested()] * count))
        assert all(("open" in d.attributes) == (opened and "As a table" not in d.text) for d in tree.all("details"))
    rare = np.array([[0.999, 0.001, 0.0]])
    tree = pages.parse(sequence_page([Sequence(["a"], [], marginals=rare)]))
    assert [row.text for row in tree.one("div", "rows").all("span")] == ["0"]
    assert "the 1 most probable of 3 labels" in tree.one("main").text


def test_marginals_of_tags_speak_of_segments():
    tags = ["B-N", "I-N", "O", "B-V"]
    marginals = np.array([[0.6, 0.3, 0.1, 0.0], [0.2, 0.7, 0.05, 0.05], [0.0, 0.3, 0.7, 0.0], [0.0, 0.0, 0.0, 1.0]])
    entry = Sequence("abcd", [[(0, 2, "N"), (3, 4, "V")]], marginals=marginals, labels=tags)
    tree = pages.parse(sequence_page([entry]))
    rows = [[td.text for td in tr.all("td")] for tr in tree.all("table")[-1].one("tbody").all("tr")]
    assert [row[2] for row in rows] == ["0.900", "1.000"]
    doubtful = ["doubtful" in node.classes for node in tree.all("span", "token")]
    assert doubtful == [True, True, True, False]  # c is outside with 0.7
    assert "shaded" in tree.one("p", "hint").text
    assert "shaded" not in pages.parse(sequence_page([Sequence("abcd", [])])).one("p", "hint").text
    outlined = sorted(float(rect.attributes["fill-opacity"]) for rect in tree.one("div", "heat").all("rect", "on"))
    assert outlined == [0.6, 0.7, 0.7, 1.0]
    data = json.loads(tree.one("script", "data").text)
    names = data["labels"]
    assert {names[int(a)]: names[b] for a, b in data["meaning"].items()} == {"B-N": "N", "I-N": "N", "B-V": "V"}


def test_hostile_text():
    tokens = HOSTILE * 2
    levels = [[(i, i + 1, name) for i, name in enumerate(tokens)]]
    marginals = np.eye(5)[[0, 1, 2, 3, 4] * 2]
    entry = Sequence(tokens, levels, ["</script>"], marginals, HOSTILE, [(levels, 0.5)], name="<b>")
    html = sequence_page([entry], "</title><script>")
    tree = pages.parse(html)
    assert len(tree.all("script")) == 2 and not tree.all("img") and not tree.all("b")
    assert "\ufffd\ufffd" in tree.one("div", "flow").text
    html.encode("utf-8")


@given(
    st.lists(st.text(max_size=9), min_size=1, max_size=12).flatmap(
        lambda tokens: st.tuples(
            st.just(tokens),
            st.lists(st.integers(0, len(tokens)), max_size=8).map(lambda cuts: sorted({*cuts, 0, len(tokens)})),
            st.lists(st.text(max_size=6), min_size=1, max_size=12),
        )
    )
)
def test_any_sequence_gives_a_page(problem):
    tokens, cuts, labels = problem
    level = [(a, b, labels[i % len(labels)]) for i, (a, b) in enumerate(itertools.pairwise(cuts)) if i % 4 != 3]
    tree = pages.parse(sequence_page([Sequence(tokens, [level, level[::2]])]))
    assert len(tree.all("span", "cell")) == len(tokens)
    assert len(tree.all("span", "bar", role="img")) == len(level) + len(level[::2])


def test_long_sequences_stay_small():
    size = 3000
    level = [(t, t + 5, f"L{t % 7}") for t in range(0, size, 5)]
    marginals = np.full((size, 30), 1e-4)
    marginals[:, 0] = 1 - 29e-4
    html = sequence_page([Sequence(["token"] * size, [level, level], marginals=marginals)])
    assert len(html) < 600 * size
    assert len(pages.parse(html).all("svg", "overview")) == 1


def test_empty_sequences():
    assert "No tokens" in sequence_page([Sequence([], [])])
    assert pages.parse(sequence_page([])).one("h1").text == "Sequences"
    assert pages.parse(sequence_page([Sequence(["a"], [])])).one("span", "token").text == "a"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": [[(0, 2, "a"), (1, 3, "b")], []]}, r"levels\[0\] has the segment \(1, 3, 'b'\), which overlaps"),
        ({"levels": [[(9, 11, "a")], []]}, "leaves the 10 tokens"),
        ({"levels": [[(3, 3, "a")], []]}, "is empty"),
        ({"level_names": ["one"]}, "level_names has 1 names for 2 levels"),
        ({"marginals": np.ones((9, 5))}, r"marginals must have the shape \(10, L\), got \(9, 5\)"),
        ({"marginals": np.full((10, 5), 2.0)}, r"marginals\[0, 0\] = 2.0 is not a probability"),
        ({"marginals": np.full((10, 5), np.nan)}, "is not a probability"),
        ({"labels": ["a"]}, "labels has 1 names for 5 columns"),
        ({"alternatives": [([[]], 1.5)]}, r"alternatives\[0\] has the probability 1.5"),
        ({"alternatives": [([[(0, 99, "a")]], 0.5)]}, r"alternatives\[0\]\[0\] has the segment"),
    ],
)
def test_wrong_sequences(changes, message):
    with pytest.raises(ValueError, match=message):
        nested(**changes)


# ---- notebooks -------------------------------------------------------------------------------------------------------


def test_the_module_is_the_function():
    import scansion.display as module

    page = sc.display(["a", "b"], ["X", "Y"])
    assert sc.display is module and isinstance(page, Page)
    fragment = page._repr_html_()
    tree = pages.parse(fragment)
    root = tree.one("div", "scansion")
    assert "cell-output" in root.classes and not tree.all("html") and not tree.all("body")
    assert [bar.text for bar in tree.all("span", "bar", role="img")] == ["X", "Y"]
    # rules of a fragment must not reach other cells
    rules = re.sub(r"/\*.*?\*/|@media[^{]*\{|\{[^{}]*\}", "", tree.one("style").text, flags=re.S).split("\n")
    assert all(".scansion" in part for rule in rules for part in rule.split(",") if part.strip(" }\n"))


def test_display_takes_what_estimators_give(crf):
    x = [{"w": "w1"}, {"w": "w2"}, {"w": "w3"}]
    page = sc.display(
        ["one", "two", "three"],
        crf.predict_single(x),
        marginals=crf.predict_marginals_single(x),
        alternatives=crf.predict_kbest([x], 3)[0],
        title="Three",
    )
    tree = pages.parse(page.html)
    assert [bar.text for bar in tree.all("span", "bar", role="img")] == crf.predict_single(x)
    rows = tree.one("table", "alternatives").one("tbody").all("tr")
    assert len(rows) == 3 and "as shown" in rows[0].text
    assert [row.text for row in tree.one("div", "rows").all("span")] == crf.classes_


def test_display_of_segments_levels_and_schemes():
    def bars(page):
        return [bar.text for bar in pages.parse(page.html).all("span", "bar", role="img")]

    assert bars(sc.display("abc", [(0, 2, "X"), (2, 3, "Y")])) == ["X", "Y"]
    assert bars(sc.display("abc", [[(0, 3, "S")], [(0, 2, "X"), (2, 3, "Y")]])) == ["X", "S", "Y"]
    assert bars(sc.display("abc", ["B-N", "I-N", "O"], scheme="iob2")) == ["N"]
    assert bars(sc.display("abc", np.array([1, 0, 1]))) == ["1", "0", "1"]
    assert bars(sc.display("abc")) == []
    with pytest.raises(ValueError, match="answer must be 3 labels, one for each token, .* got 2 items, the first 'X'"):
        sc.display("abc", ["X", "Y"])


def test_lattices_show_themselves():
    rng = np.random.default_rng(0)
    chain = sc.ChainLattice(rng.normal(size=(6, 3)), rng.normal(size=(3, 3)))
    tree = pages.parse(chain._repr_html_())
    assert [int(bar.text) for bar in tree.all("span", "bar", role="img")] == chain.viterbi()[0].tolist()
    assert "log Z" in tree.all("p")[0].text
    segment = sc.SegmentLattice(rng.normal(size=(6, 3, 2)), [(0,), (1,)], 2)
    tree = pages.parse(segment._repr_html_())
    assert [int(bar.text) for bar in tree.all("span", "bar", role="img")] == [s.label for s in segment.viterbi()[0]]
    tree = pages.parse(chain.compressed()._repr_html_())
    best = chain.compressed().best(5)
    assert [row.all("td")[0].text for row in tree.one("tbody").all("tr")] == [f"{p:.4f}" for _, p in best]
    assert sc.ChainLattice(np.zeros((2000, 2)), np.zeros((2, 2)))._repr_html_() is None
    assert sc.ChainLattice(np.zeros((0, 2)), np.zeros((2, 2)))._repr_html_() is None
    assert sc.ChainLattice(np.full((2, 2), -np.inf), np.zeros((2, 2)))._repr_html_() is None


def test_pages_are_saved(tmp_path, crf):
    page = crf.report(tmp_path / "report.html", top=3)
    assert (tmp_path / "report.html").read_text(encoding="utf-8") == page.html == report_page(crf, top=3)
    assert page.save(str(tmp_path / "again.html")).read_bytes() == (tmp_path / "report.html").read_bytes()
    assert "CRF, order 1" in repr(page)


# ---- reports ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["crf", "semi"])
@pytest.mark.parametrize("top", [1, 3, 1000])
def test_strongest_features(request, kind, top):
    model = request.getfixturevalue(kind)
    found = model.strongest_features(top)
    assert list(found) == model.classes_
    for label, (positive, negative) in found.items():
        mine = {name: w for (name, y), w in model.state_features_.items() if y == label}
        assert dict(positive + negative).items() <= mine.items()
        assert [w for _, w in positive] == sorted((w for w in mine.values() if w > 0), reverse=True)[:top]
        assert [w for _, w in negative] == sorted(w for w in mine.values() if w < 0)[:top]


def test_length_counts(tmp_path, semi):
    assert {label: row.tolist() for label, row in semi.length_counts_.items()} == {
        "author": [0, 0, 3],
        "date": [0, 0, 3],
        "title": [0, 0, 3],
    }
    semi.save(tmp_path / "m")
    again = sc.load(tmp_path / "m")
    assert {k: v.tolist() for k, v in again.length_counts_.items()} == {
        k: v.tolist() for k, v in semi.length_counts_.items()
    }
    partly = sc.SemiCRF(max_length=2, max_iterations=2).fit([[["a"]] * 4], [[(0, 1, "A"), (1, 3, "B"), (3, 4, None)]])
    assert {label: row.tolist() for label, row in partly.length_counts_.items()} == {"A": [1, 0], "B": [0, 1]}


def test_report_of_a_crf(crf):
    tree = pages.parse(crf.report(top=4).html)
    assert tree.one("h1").text == "CRF, order 1"
    assert [a.attributes["href"] for a in tree.one("nav").all("a")] == ["#features", "#transitions", "#training"]
    ids = [node.attributes["id"] for node in tree.all(id=None)]
    assert ids == ["features", "transitions", "training"]
    cards = tree.all("div", "card")
    assert [card.one("h3").text for card in cards] == crf.classes_
    for card, (positive, negative) in zip(cards, crf.strongest_features(4).values(), strict=True):
        assert [th.text for th in card.all("th", "feature")] == [name for name, _ in positive + negative]
        assert [td.text for td in card.all("td", "weight")] == [signed(w, 3) for _, w in positive + negative]
    matrix = tree.one("div", "matrix")
    assert len([td for td in matrix.one("tbody").all("td") if "none" not in td.classes]) == len(
        crf.transition_features_
    )
    nodes = tree.one("svg", "graph").all("g", "node")
    assert [node.text for node in nodes if node.attributes["tabindex"] == "0"] == [nodes[0].text]
    assert {node.text for node in nodes} == set(crf.classes_)
    assert all(table.all("th", scope="col") for table in tree.all("table"))


def test_report_of_a_semicrf(semi):
    tree = pages.parse(semi.report().html)
    assert [h.text for h in tree.all("h2")] == [
        "Strongest features",
        "Transitions",
        "Label patterns",
        "Lengths of segments",
        "Training",
    ]
    charts = [svg for svg in tree.all("svg", "chart") if svg.attributes["aria-label"].startswith("Lengths of")]
    assert [svg.attributes["aria-label"] for svg in charts] == [
        f"Lengths of {label}: 3 segments, mean 3.0, median 3, longest 3" for label in semi.classes_
    ]
    assert "author\u2192date\u2192title" in [td.text for td in tree.all("td")]
    assert "w:(" in [th.text for th in tree.all("th", "feature")]
    assert len(tree.all("svg", "graph")) == 2


@pytest.fixture(scope="module")
def hierarchy():
    X = [[{"w": w} for w in "we eat fish now we sleep".split()]] * 2
    y = [{"day": [(0, 4, "meal"), (4, 6, "rest")], "step": ["who", "do", "what", "what", "who", "do"]}] * 2
    parts = {"step": ("inside", "transition")}
    return sc.HierarchicalCRF(["day", "step"], max_iterations=5, attribute_parts=parts).fit(X, y)


def test_report_of_a_hierarchy(hierarchy):
    tree = pages.parse(hierarchy.report(top=3).html)
    assert [h.text for h in tree.all("h2")] == [
        "Hierarchy",
        "Strongest features: day",
        "Transitions: day",
        "Lengths of segments: day",
        "Strongest features: step",
        "Transitions: step",
        "Transitions with attributes: step",
        "Lengths of segments: step",
        "Training",
    ]
    ids = [node.attributes["id"] for node in tree.all(id=None)]
    assert len(set(ids)) == len(ids) == 9
    top = tree.one("ul", "tree")
    assert [[chip.text for chip in li.all("span", "chip")] for li in top.children] == [
        [parent, *children] for parent, children in hierarchy.topology_["day"].items()
    ]
    # the root's transitions, then those inside each label of the top level, with start and end
    matrices = tree.all("div", "matrix")
    cells = [len([td for td in m.one("tbody").all("td") if "none" not in td.classes]) for m in matrices]
    wanted = []
    for level, parents in (("day", [None]), ("step", ["meal", "rest"])):
        for parent in parents:
            count = 0
            for source, size in (
                (hierarchy.initialisation_features_, 3),
                (hierarchy.transition_features_, 4),
                (hierarchy.ending_features_, 3),
            ):
                count += sum(key[:2] == (level, parent) and len(key) == size for key in source)
            wanted.append(count)
    assert cells == wanted
    inside = [h3.text for h3 in tree.all("h3") if h3.text.startswith("inside")]
    assert inside == ["inside meal", "inside rest"]


def test_strongest_features_and_lengths_of_a_hierarchy(tmp_path, hierarchy):
    for level, labels in hierarchy.strongest_features(2).items():
        assert list(labels) == hierarchy.classes_[level]
        for label, (positive, negative) in labels.items():
            mine = {n: w for (of, n, y), w in hierarchy.state_features_.items() if (of, y) == (level, label)}
            assert [w for _, w in positive] == sorted((w for w in mine.values() if w > 0), reverse=True)[:2]
            assert [w for _, w in negative] == sorted(w for w in mine.values() if w < 0)[:2]
            assert dict(positive + negative).items() <= mine.items()
    hierarchy.save(tmp_path / "m")
    for model in (hierarchy, sc.load(tmp_path / "m")):
        assert {k: v.tolist() for k, v in model.length_counts_["day"].items()} == {
            "meal": [0, 0, 0, 2],
            "rest": [0, 2, 0, 0],
        }
        assert {k: v.tolist() for k, v in model.length_counts_["step"].items()} == {
            "who": [4, 0],
            "do": [4, 0],
            "what": [0, 2],
        }


def test_display_of_a_hierarchy(hierarchy):
    x = [{"w": w} for w in "we eat fish".split()]
    page = sc.display(
        "we eat fish".split(),
        hierarchy.predict_single(x),
        marginals=hierarchy.predict_marginals_single(x),
        alternatives=hierarchy.predict_kbest([x], 2)[0],
    )
    tree = pages.parse(page.html)
    best = hierarchy.predict_single(x)
    bars = [bar.text for bar in tree.all("span", "bar", role="img")]
    assert sorted(bars) == sorted(s.label for level in best for s in level)
    data = json.loads(tree.one("script", "data").text)
    assert data["names"] == ["day", "step"] and data["scored"] == 1
    assert [row.text for row in tree.one("div", "rows").all("span")] == hierarchy.classes_["step"]
    assert "NestedLattice" in pages.parse(hierarchy.lattice(x)._repr_html_()).all("p")[0].text


def test_report_of_a_loaded_model(tmp_path, semi):
    semi.save(tmp_path / "m")
    tree = pages.parse(sc.load(tmp_path / "m").report().html)
    assert "Training" not in [h.text for h in tree.all("h2")]
    assert "Lengths of segments" in [h.text for h in tree.all("h2")]


def test_start_and_end_in_reports():
    X = [[["a"], ["b"], ["a"]]] * 3
    patterns = [(sc.BOS, "A"), ("A", "B"), ("B", "A", sc.EOS), ("A", sc.EOS)]
    model = sc.CRF(patterns=patterns, max_iterations=4).fit(X, [["A", "B", "A"]] * 3)
    tree = pages.parse(model.report().html)
    matrix = tree.one("div", "matrix")
    assert [th.text for th in matrix.one("tbody").all("th")] == ["A", "start"]
    assert [th.text for th in matrix.one("thead").all("th")] == ["A", "B", "end"]
    assert "B\u2192A\u2192end" in [td.text for td in tree.all("td")]
    # labels may be the numbers that stand for them
    numbers = sc.CRF(max_iterations=4).fit(X, [[-1, -2, -1]] * 3)
    tree = pages.parse(numbers.report().html)
    assert {th.text for th in tree.one("div", "matrix").all("th")} == {"-1", "-2"}


def test_report_with_hostile_names():
    X = [[[name] for name in HOSTILE[:4]]] * 2
    model = sc.CRF(max_iterations=5).fit(X, [HOSTILE[:4]] * 2)
    tree = pages.parse(model.report().html)
    assert len(tree.all("script")) == 1 and not tree.all("img")
    assert set(HOSTILE[:4]) <= {h3.text for h3 in tree.all("h3")}


def test_report_of_many_labels():
    labels = [f"label {i}" for i in range(70)]
    model = sc.CRF(max_iterations=2).fit([[[f"a{i}"] for i in range(70)]], [labels])
    tree = pages.parse(model.report(top=1).html)
    assert not tree.all("div", "matrix") and tree.all("div", "patterns")
    assert len(tree.one("svg", "graph").all("g", "node")) <= 28


def test_reports_need_a_fitted_estimator(crf):
    with pytest.raises(ValueError, match="not fitted"):
        sc.CRF().report()
    with pytest.raises(ValueError, match="report needs a fitted estimator of scansion, got int"):
        report_page(3)
    with pytest.raises(ValueError, match="top"):
        crf.report(top=0)
    assert sc.CRF()._repr_html_() is None
    assert "scansion" in crf._repr_html_()


def test_documentation(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    page = Path(__file__).parent.parent / "docs" / "pictures.md"
    result = doctest.testfile(str(page), module_relative=False, encoding="utf-8")
    assert result.attempted > 5 and result.failed == 0
    assert (tmp_path / "report.html").exists() and (tmp_path / "sequence.html").exists()


def test_pages_are_repeatable(crf):
    assert crf.report().html == crf.report().html
    assert sequence_page([nested()]) == sequence_page([nested()])


# ---- graphs and charts -----------------------------------------------------------------------------------------------


def test_strongest_part_of_a_graph():
    graph = Graph("abcd", "abcd", [Edge(0, 1, 3.0), Edge(1, 2, -5.0), Edge(3, 3, 1.0), Edge(2, 3, 2.0)])
    part = graph.strongest(edges=2, nodes=9)
    assert [(part.names[e.tail], part.names[e.head], e.weight) for e in part.edges] == [
        ("a", "b", 3.0),
        ("c", "d", 2.0),
        ("d", "d", 1.0),  # no heavier edge leaves d and b
        ("b", "c", -5.0),
    ]
    assert graph.strongest(edges=9, nodes=2).names == ["a", "b"]
    assert graph.strongest(edges=9, nodes=1).names == ["d"]  # its loop is all that one node can hold


def test_circle_order_puts_a_ring_in_order():
    ring = [0, 3, 1, 5, 2, 4]
    weights = np.zeros((6, 6))
    for a, b in zip(ring, ring[1:] + ring[:1], strict=True):
        weights[a, b] = weights[b, a] = 1.0
    order = circle_order(weights)
    assert sorted(order) == list(range(6))
    assert sum(weights[a, b] for a, b in zip(order, order[1:] + order[:1], strict=True)) == 6


@given(st.lists(st.floats(0, 1), min_size=1, max_size=300), st.integers(1, 60))
def test_bins_keep_the_sum(values, most):
    sums, ranges = in_bins(np.array(values), most)
    assert len(sums) == len(ranges) <= most
    np.testing.assert_allclose(sums.sum(), np.sum(values), rtol=1e-12, atol=1e-12)
    assert ranges[0][0] == 1 and ranges[-1][1] == len(values)
    assert all(a[1] + 1 == b[0] for a, b in itertools.pairwise(ranges))
