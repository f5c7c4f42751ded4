"""Pages in a real browser, Chromium without a screen: they run without an error, by mouse and by keyboard.

Pictures of what was seen are left in pytest's temporary folder (``pytest --basetemp=seen`` keeps them there).
"""

from __future__ import annotations

import os
import shutil

import numpy as np
import pytest
from test_display import HOSTILE, nested

import scansion as sc
from scansion.display import Sequence, sequence_page

sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed: no tests in a browser")

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# as root, offline: no sandbox, and nothing that looks for the network
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    if "asan" in os.environ.get("LD_PRELOAD", ""):
        pytest.skip("a browser does not run under the sanitizers; the pages need none")
    found = os.environ.get("SCANSION_BROWSER") or next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium found (Debian's package chromium, or its path in SCANSION_BROWSER)")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=FLAGS)
        yield started
        started.close()


class Visit:
    """A page that was opened, what its console said and what it asked the network for."""

    def __init__(self, browser, html, path, **settings):
        path.write_text(html, encoding="utf-8")
        self.context = browser.new_context(**{"viewport": {"width": 1100, "height": 800}, **settings})
        self.page = self.context.new_page()
        self.said, self.requested = [], []
        self.page.on("console", lambda message: self.said.append(message.text))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.page.on("request", lambda request: self.requested.append(request.url))
        self.page.goto(path.as_uri())
        self.folder = path.parent

    def seen(self, name):
        """Leave a picture of the whole page, and check that there is something on it."""
        picture = self.page.screenshot(path=self.folder / f"{name}.png", full_page=True)
        assert len(picture) > 5000

    def overflows(self):
        """How far the page is wider than the window."""
        return self.page.evaluate("document.documentElement.scrollWidth - window.innerWidth")


@pytest.fixture
def visit(browser, tmp_path):
    opened = []

    def open_page(html, **settings):
        opened.append(Visit(browser, html, tmp_path / "page.html", **settings))
        return opened[-1]

    yield open_page
    for one in opened:
        assert one.said == [], "the console must stay empty"
        assert len(one.requested) == 1, "nothing is loaded but the page itself"
        one.context.close()


@pytest.fixture(scope="module")
def report():
    X = [[{"w": w, "shape": w.istitle()} for w in nested().tokens]] * 4
    y = [[(a, b, label) for a, b, label in nested().levels[1]]] * 4
    return sc.SemiCRF(2, length_features="bins", max_iterations=10).fit(X, y).report().html


def test_pointing_at_a_segment_tells_more(visit):
    page = (v := visit(sequence_page([nested()], "A reference"))).page
    tip = page.locator(".tip")
    assert not tip.is_visible()
    page.hover(".bar:has-text('date')")
    assert tip.is_visible()
    text = tip.inner_text()
    assert "fields, tokens 3:6" in text and "Alternatives" in text and "0.200" in text and "3:10" in text
    assert page.locator(".bar.on").count() == 3
    v.seen("hover")
    page.hover("h1")
    assert not tip.is_visible() and page.locator(".bar.on").count() == 0


def test_keyboard(visit):
    page = visit(sequence_page([nested()])).page

    def press(*keys):
        for key in keys:
            page.keyboard.press(key)
        return page.evaluate("document.activeElement.innerText")

    assert press("Tab") == "last"  # one stop for the whole sequence
    assert page.locator(".tip").is_visible()
    assert press("ArrowRight") == "O"
    assert press("ArrowDown") == "author"  # the level above stands below
    assert press("ArrowRight") == "date"
    assert press("ArrowUp") == "year"
    assert press("End") == "main" and press("ArrowRight") == "main"
    assert press("Home") == "last" and press("ArrowLeft") == "last"
    press("Escape")
    assert not page.locator(".tip").is_visible()
    assert "Alternatives" in press("Tab")
    press("Tab")
    assert "Marginals" in press() or page.evaluate("document.activeElement.tagName") == "SUMMARY"
    press("Tab", "ArrowRight", "ArrowRight")
    assert page.locator(".readout").inner_text().startswith("1: ,")
    assert press("Shift+Tab", "Shift+Tab", "Shift+Tab") == "last"  # comes back to where it was


def test_marginals_are_read_out(visit):
    page = visit(sequence_page([nested()])).page
    box = page.locator(".heat svg").bounding_box()
    page.mouse.move(box["x"] + 3 * 20 + 10, box["y"] + 100)
    text = page.locator(".readout").inner_text()
    assert text.startswith("3: ( \u2014 year 0.800")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_light_and_dark(visit, report, scheme):
    for name, html in (("sequence", sequence_page([nested()])), ("report", report)):
        v = visit(html, color_scheme=scheme)
        bright = v.page.evaluate(
            """() => [".scansion", "body"].map((name) => {
                const style = getComputedStyle(document.querySelector(name));
                const sum = (text) => text.match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0);
                return [sum(style.color), sum(style.backgroundColor)];
            })"""
        )
        for ink, paper in bright[:1]:
            assert (ink < 200 and paper > 700) if scheme == "light" else (ink > 600 and paper < 120)
        assert bright[0][1] == bright[1][1]
        v.seen(f"{name}-{scheme}")


@pytest.mark.parametrize("width", [360, 1400])
def test_nothing_is_cut_off(visit, report, width):
    long = Sequence(["word"] * 300, [[(0, 300, "everything")], [(t, t + 50, "part") for t in range(0, 300, 50)]])
    for name, html in (("sequences", sequence_page([nested(), long])), ("report", report)):
        v = visit(html, viewport={"width": width, "height": 700})
        assert v.overflows() <= 0
        v.seen(f"{name}-{width}")


def test_segments_that_go_on_say_their_name_again(visit):
    entry = Sequence(["word"] * 60, [[(0, 60, "everything")]])
    page = visit(sequence_page([entry]), viewport={"width": 500, "height": 700}).page
    page.wait_for_selector(".bar.again")
    count = "new Set([...document.querySelectorAll('.cell')].map((c) => c.offsetTop)).size"
    lines = page.evaluate(count)
    assert page.locator(".bar.again").count() == lines - 1 > 2
    page.set_viewport_size({"width": 1200, "height": 700})
    assert page.evaluate(count) < lines
    sync_api.expect(page.locator(".bar.again")).to_have_count(page.evaluate(count) - 1)


def test_names_of_segments_fit(visit):
    tokens = ["a", "b", "c", "a longer token", "\u6f22\u5b57", "x"]
    level = [(0, 1, "a rather long label"), (1, 3, "another long label"), (3, 4, "L"), (4, 6, "publisher")]
    page = visit(sequence_page([Sequence(tokens, [level])])).page
    over = page.evaluate(
        """() => [...document.querySelectorAll(".bar .name")].map((name) => {
            const key = name.parentElement.dataset.s;
            const pieces = [...document.querySelectorAll(`.bar[data-s="${key}"]`)];
            return name.getBoundingClientRect().right - pieces.at(-1).getBoundingClientRect().right;
        })"""
    )
    assert max(over) <= 3


def test_hostile_text_stays_text(visit):
    levels = [[(i, i + 1, name) for i, name in enumerate(HOSTILE)]]
    entry = Sequence(HOSTILE, levels, ["<i>level</i>"], np.eye(5), HOSTILE, [(levels, 0.5)], name="<b>bold</b>")
    v = visit(sequence_page([entry], "<script>alert(2)</script>"))
    asked = []
    v.page.on("dialog", lambda dialog: (asked.append(dialog.message), dialog.dismiss()))
    for bar in v.page.locator(".bar[role=img]").all():
        bar.hover()
        assert v.page.locator(".tip").is_visible()
    assert asked == []
    assert v.page.locator("img, b, .entry i:not(.meter i, .scale i)").count() == 0
    assert v.page.locator(".token").first.inner_text() == HOSTILE[0]


def test_long_sequences_stay_usable(visit):
    size = 2000
    lower = [(t, t + 4, f"L{t % 5}") for t in range(0, size, 4)]
    upper = [(t, t + 100, "block") for t in range(0, size, 100)]
    marginals = np.tile([0.9, 0.1], (size, 1))
    html = sequence_page([Sequence([f"w{t}" for t in range(size)], [upper, lower], marginals=marginals)])
    page = visit(html).page
    page.keyboard.press("Tab")
    page.keyboard.press("End")
    assert page.evaluate("document.activeElement.dataset.s") == "1.499"
    spent = page.evaluate(
        """() => {
            const before = performance.now();
            for (let i = 0; i < 50; i++) {
                const key = new KeyboardEvent("keydown", {key: "ArrowLeft", bubbles: true, cancelable: true});
                document.activeElement.dispatchEvent(key);
            }
            return performance.now() - before;
        }"""
    )
    assert page.evaluate("document.activeElement.dataset.s") == "1.449"
    assert spent < 50 * 400  # milliseconds; a slip to quadratic work would show


def test_report_by_mouse_and_keyboard(visit, report):
    v = visit(report)
    page = v.page
    total = page.locator("tr[data-feature]").count()
    page.fill(".find input", "ART")
    shown = page.locator("tr[data-feature]:visible")
    assert 0 < shown.count() < total
    assert all("art" in text.lower() for text in shown.locator(".feature").all_inner_texts())
    assert page.locator(".find [role=status]").inner_text() == f"{shown.count()} of {total}"
    page.fill(".find input", "")
    assert page.locator("tr[data-feature]:visible").count() == total
    node = page.locator(".graph .node").first
    node.focus()
    asked = page.locator(".graph.asked")
    assert asked.count() == 1 and 0 < asked.locator(".edge.on").count() < asked.locator(".edge").count()
    v.seen("graph")
    page.keyboard.press("ArrowRight")
    second = page.locator(".graph").first.locator(".node").nth(1)
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == second.get_attribute("aria-label")
    page.keyboard.press("Tab")  # one stop for the whole graph
    assert page.evaluate("document.activeElement.closest('.graph')") is None
    page.click("nav a[href='#lengths']")
    assert page.evaluate("document.querySelector('#lengths').getBoundingClientRect().top") < 800


def test_without_scripts_everything_is_there(visit, report):
    v = visit(sequence_page([nested()]), java_script_enabled=False)
    assert v.page.locator(".cell").count() == 10
    assert v.page.locator("table.alternatives tbody tr").count() == 2
    assert v.page.locator(".heat rect.on").count() == 10
    v = visit(report, java_script_enabled=False)
    assert not v.page.locator(".find").is_visible()
    assert v.page.locator("tr[data-feature]").count() > 10


def test_fragments_live_together(visit):
    """Two cells of a notebook, with the page's own style around them."""
    lattice = sc.ChainLattice(np.arange(12.0).reshape(6, 2) % 5, np.eye(2))
    cells = lattice._repr_html_() + sc.display("ab", ["X", "Y"])._repr_html_() + lattice.compressed()._repr_html_()
    html = f'<!DOCTYPE html><meta charset="utf-8"><body data-jp-theme-light="false"><h1>Notebook</h1>{cells}</body>'
    v = visit(html, color_scheme="light")
    assert v.page.locator(".tip").count() == 2
    v.page.hover(".bar:has-text('X')")
    assert v.page.locator(".tip:visible").count() == 1
    # the notebook's theme wins over the system's, and the heading outside keeps its own look
    assert v.page.evaluate("getComputedStyle(document.querySelector('.scansion')).backgroundColor") == "rgb(20, 23, 28)"
    assert v.page.evaluate("getComputedStyle(document.querySelector('h1')).fontSize") == "32px"
    v.seen("notebook")


def test_printing(visit, report, tmp_path):
    v = visit(report, color_scheme="dark")
    v.page.emulate_media(media="print")
    assert not v.page.locator(".find").is_visible()
    assert (
        v.page.evaluate("getComputedStyle(document.querySelector('.scansion')).backgroundColor") == "rgb(255, 255, 255)"
    )
    assert v.page.pdf(path=tmp_path / "report.pdf").startswith(b"%PDF")


# ---- among other styles ---------------------------------------------------------------------------------------------

NOTEBOOK = """
.jp { color: #c00; font: italic 22px/2 serif; text-align: right }
.jp table { border-collapse: separate; table-layout: fixed; width: 300px; margin: 0 auto; font-size: 9px }
.jp td, .jp th, .jp tr { padding: 1em; text-align: right; white-space: pre; border: 3px solid }
.jp td { position: relative; left: 9px }
.jp.jp tbody tr:nth-child(odd) { background: #eee } .jp span { display: block; float: left }
.jp ul { list-style: square; padding-left: 60px } .jp p, .jp h2 { margin: 3em; font-size: 30px; max-width: none }
"""
PLACES = """[...document.querySelectorAll(".scansion *")].filter((e) => e.offsetParent !== null).map((e) => {
  const box = e.getBoundingClientRect(), style = getComputedStyle(e);
  return [e.tagName, ...[box.x, box.y, box.width].map(Math.round), style.color, style.fontSize].join(" ");
})"""


def test_a_notebooks_styles_change_nothing(visit):
    """Every element of a cell's output stands where it stands without them."""
    X, y = [[{"w": w} for w in "the old man sees".split()]] * 2, [["B-NP", "I-NP", "I-NP", "O"]] * 2
    crf = sc.CRF().fit(X, y)
    cells = crf._repr_html_().replace("<details>", "<details open>") + crf.lattice(X[0])._repr_html_()
    places = []
    for style in ("", NOTEBOOK):
        page = f"<!DOCTYPE html><style>{style}</style><div class='jp' style='padding:0'>{cells}</div>"
        v = visit(page)
        places.append(v.page.evaluate(PLACES))
        v.seen(f"notebook-{'other' if style else 'no'}-styles")
    assert len(places[0]) > 100 and places[0] == places[1]


ROOM = """[...document.querySelectorAll(".bar.first")].filter((bar) => {
  const name = bar.querySelector(".name").getBoundingClientRect();
  const pieces = [...document.querySelectorAll(`.bar[data-s="${bar.dataset.s}"]`)];
  const line = pieces.map((one) => one.getBoundingClientRect()).filter((one) => Math.abs(one.top - name.top) < 4);
  return name.right > Math.max(...line.map((one) => one.right)) + 4;
}).length"""


@pytest.mark.parametrize("width", [1100, 300])
def test_names_of_narrow_segments_are_clipped(visit, width):
    segments = [
        (t, t + 1 + t % 3, ["the preparation of a cucumber", "cut", "x"][t % 3]) for t in (0, 1, 3, 6, 7, 9, 12, 13)
    ]
    entry = Sequence([f"w{t}" for t in range(16)], [segments])
    v = visit(sequence_page([entry]), viewport={"width": width, "height": 800})
    for _ in range(100):  # the page's policy leaves no way to wait for an expression
        if v.page.evaluate("document.querySelector('.bar.first').style.getPropertyValue('--room') !== ''"):
            break
        v.page.wait_for_timeout(50)
    assert v.page.evaluate(ROOM) == 0
    v.seen(f"narrow-{width}")


def test_long_sequences_are_laid_out_in_parts(visit):
    n = 5000
    marginals = np.tile([0.9, 0.1], (n, 1))
    entry = Sequence(
        [f"w{t}" for t in range(n)], [[(t, t + 5, "ab"[t % 2]) for t in range(0, n, 5)]], None, marginals, ["a", "b"]
    )
    v = visit(sequence_page([entry]))
    assert v.page.locator(".part.long").count() == 13
    assert v.page.locator(".heat text").count() == 2000 and "first 2,000 of 5,000 tokens" in v.page.content()
    v.page.locator(".part").last.scroll_into_view_if_needed()
    v.page.locator(".bar.first").last.hover()
    assert "tokens 4995:5000" in v.page.locator(".tip").inner_text()
