"""Data frames of pandas and polars as sequences: a row a token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from scansion import _checks as checks

__all__ = ["from_frame", "is_frame", "rows_of"]


def is_frame(value: Any) -> bool:
    """Whether this is a table with named columns."""
    return hasattr(value, "columns") and (hasattr(value, "to_dicts") or hasattr(value, "to_dict"))


def from_frame(
    frame: Any, group: Any, labels: Any = None, columns: Sequence[Any] | None = None
) -> tuple[list[list[dict[str, Any]]], list[Any] | None]:
    """Sequences and labels of a data frame with a row a token.

    Parameters
    ----------
    frame : pandas or polars DataFrame
    group : str
        The column that is the same for the tokens of a sequence, a sentence's number for instance. Sequences come in
        the order of their first rows, and rows stay in their order.
    labels : str, or list of str, optional
        The column of the labels; missing ones are unknown. Several are the levels of a `HierarchicalCRF`.
    columns : sequence of str, optional
        The columns to make attributes of; all others unless given. Text is an attribute ``name:text``, a number the
        attribute ``name`` of this value; what is missing is left out.

    Returns
    -------
    X : list of lists of dicts
    y : list of lists, or of dicts level -> list; None without labels

    Examples
    --------
    >>> import pandas  # doctest: +SKIP
    >>> X, y = from_frame(pandas.read_csv("train.csv"), group="sentence_id", labels="label")  # doctest: +SKIP
    """
    if not is_frame(frame):
        raise TypeError(f"frame must be a DataFrame of pandas or polars, got {type(frame).__name__}")
    several = isinstance(labels, (list, tuple))
    targets = list(labels) if several else [] if labels is None else [labels]
    names = list(frame.columns)
    for name in (group, *targets, *(columns if columns is not None else ())):
        checks.label("a column", name)
    wanted = [name for name in names if name not in (group, *targets)] if columns is None else list(columns)
    for name in (group, *targets, *wanted):
        if name not in names:
            raise ValueError(f"the frame has no column {name!r}; it has {', '.join(map(str, names))}")
    found: dict[Any, list[int]] = {}
    for i, key in enumerate(_column(frame, group)):
        if _missing(key):
            raise ValueError(f"row {i} has nothing in the column {group!r}: to which sequence does it belong?")
        found.setdefault(key, []).append(i)
    tokens = _rows(frame, wanted)
    X = [[tokens[i] for i in rows] for rows in found.values()]
    if labels is None:
        return X, None
    given = {name: [None if _missing(y) else y for y in _column(frame, name)] for name in targets}
    if several:
        return X, [{name: [given[name][i] for i in rows] for name in targets} for rows in found.values()]
    return X, [[given[labels][i] for i in rows] for rows in found.values()]


def rows_of(frame: Any) -> list[dict[str, Any]]:
    """The rows of a frame, each a token; what is missing is left out."""
    return _rows(frame, list(frame.columns))


def _rows(frame: Any, names: Iterable[Any]) -> list[dict[str, Any]]:
    columns = {str(name): _column(frame, name) for name in names}
    count = len(frame)
    tokens: list[dict[str, Any]] = [{} for _ in range(count)]
    for name, cells in columns.items():
        for token, cell in zip(tokens, cells, strict=True):
            if not _missing(cell):
                token[name] = cell
    return tokens


def _column(frame: Any, name: Any) -> list[Any]:
    column = frame[name]
    return list(column.to_list() if hasattr(column, "to_list") else column)


def _missing(value: Any) -> bool:
    """None, NaN, or pandas' NA and NaT, none of which equals itself."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # NA has no truth
        return True
