"""A page: everything in one file, shown by browsers, notebooks and printers."""

from __future__ import annotations

import os
from functools import cache
from importlib.resources import files
from pathlib import Path

from scansion._files import replacing
from scansion.display import palette
from scansion.display.markup import Markup, element, escape, join

__all__ = ["Page"]

# what the page may do: nothing but its own styles and scripts, no connection to anywhere
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:"


@cache
def _asset(name: str) -> str:
    return files("scansion.display").joinpath(name).read_text(encoding="utf-8")


def _style() -> Markup:
    return element("style", Markup(_asset("page.css") + palette.style()))


@cache
def _style_among_others() -> Markup:
    """The styles for a place that has styles of its own: those are undone first, then ours count for more."""
    # SVG keeps its colours in attributes, which "revert" would take away
    undone = ".scansion" * 5 + " :where(:not(svg):not(svg *):not(style):not(script)) { all: revert; }\n"
    ours = (_asset("page.css") + palette.style()).replace(".scansion", ".scansion" * 6)
    return element("style", Markup(undone + ours))


def _script() -> Markup:
    return element("script", Markup(_asset("page.js")))


class Page:
    """A self-contained page; a notebook shows it by itself.

    Parameters
    ----------
    title : str
    body : Markup
        What the page shows, in HTML.
    """

    def __init__(self, title: str, body: Markup) -> None:
        self.title = title
        self.body = body

    @property
    def html(self) -> str:
        """The page as a document."""
        head = join(
            [
                Markup('<meta charset="utf-8">'),
                Markup('<meta name="viewport" content="width=device-width, initial-scale=1">'),
                Markup(f'<meta http-equiv="Content-Security-Policy" content="{escape(_POLICY)}">'),
                Markup('<meta name="color-scheme" content="light dark">'),
                element("title", self.title),
                _style(),
            ],
            "\n",
        )
        root = element("div", self.body, class_="scansion page")
        body = f"<body>\n{root}\n{_script()}\n</body>"
        return f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{head}\n</head>\n{body}\n</html>\n'

    def _repr_html_(self) -> str:
        """A fragment for notebooks: no style of one acts on the other, and it is readable without its script."""
        return element("div", _style_among_others(), self.body, _script(), class_="scansion cell-output")

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the document, all of it or nothing; returns where it is."""
        with replacing(path, through=True) as file:
            file.write(self.html)
        return Path(path)

    def __repr__(self) -> str:
        return f"Page({self.title!r}, {len(self.html):,} characters)"
