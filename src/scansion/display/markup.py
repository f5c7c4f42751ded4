"""HTML and SVG as text, escaped by default: a plain string becomes text, only `Markup` stays as it is."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from typing import Any

__all__ = ["Markup", "details", "element", "escape", "join", "json_script", "number", "signed", "table", "void"]

# NUL, other controls and lone surrogates: browsers drop or refuse them, and UTF-8 cannot hold the last
_UNFIT = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def escape(value: Any) -> Markup:
    """A value as text in HTML, in elements and in attributes alike; `Markup` stays as it is."""
    if isinstance(value, Markup):
        return value
    return Markup(html.escape(_UNFIT.sub("\ufffd", str(value)), quote=True))


def join(parts: Iterable[Any], between: str = "") -> Markup:
    """Parts one after another, each escaped unless it is `Markup`."""
    return Markup(escape(between).join(escape(part) for part in parts if part is not None))


def _attributes(attributes: dict[str, Any]) -> str:
    text = []
    for name, value in attributes.items():
        if value is None or value is False:
            continue
        name = name.rstrip("_").replace("_", "-")
        text.append(f" {name}" if value is True else f' {name}="{escape(_short(value))}"')
    return "".join(text)


def element(tag: str, *content: Any, **attributes: Any) -> Markup:
    """An element with its content; ``class_`` and ``aria_label`` are written class and aria-label.

    An attribute of None or False is left out, one of True stands without a value.
    """
    return Markup(f"<{tag}{_attributes(attributes)}>{join(content)}</{tag}>")


def void(tag: str, **attributes: Any) -> Markup:
    """An element without content: ``<input>`` in HTML, ``<rect/>`` in SVG."""
    return Markup(f"<{tag}{_attributes(attributes)}/>")


def table(names: Iterable[Any], *bodies: Markup | None, **attributes: Any) -> Markup:
    """A table with these names above its columns; a name that is `Markup` is the whole cell."""
    head = [name if isinstance(name, Markup) else element("th", name, scope="col") for name in names]
    return element("table", element("thead", element("tr", *head)), *bodies, **attributes)


def details(title: str, *content: Any, opened: bool = False) -> Markup:
    """What can be opened and closed."""
    return element("details", element("summary", title), *content, open=opened)


def json_script(data: Any, **attributes: Any) -> Markup:
    """Data for scripts, in an element that no content can end early."""
    text = json.dumps(data, ensure_ascii=True, separators=(",", ":"), allow_nan=False)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(f'<script type="application/json"{_attributes(attributes)}>{text}</script>')


def number(value: float, digits: int = 3) -> str:
    """A number for people: thousands apart, `digits` significant digits, a true minus sign."""
    if isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15):
        text = f"{int(value):,}"
    elif 1 <= abs(value) < 1e15:
        text = f"{value:,.{max(0, digits - len(str(int(abs(value)))))}f}"
    else:
        text = f"{value:.{digits}g}"
    return text.replace("-", "\u2212") if text.startswith("-") else text


def signed(value: float, decimals: int = 2) -> str:
    """A weight: always with its sign."""
    text = f"{value:+.{decimals}f}"
    return text.replace("-", "\u2212")


def _short(value: Any) -> Any:
    """Coordinates to two decimals."""
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else value
