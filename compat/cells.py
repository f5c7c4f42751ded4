"""The cells of a notebook one after another, without Jupyter: what each gave, or how it failed.

    python compat/cells.py NOTEBOOK [OLD=>NEW ...]    OLD in the sources of cells is replaced by NEW

Lines that begin with % are left out. Ends with one line of JSON: a cell's number, seconds of processor time, value or
error.
"""

from __future__ import annotations

import ast
import contextlib
import io
import json
import sys
import time
from pathlib import Path
from typing import Any


def run(notebook: Path, replaced: dict[str, str]) -> list[tuple[int, float, str, str]]:
    """(cell, seconds, value or what was printed, error) of each cell of code."""
    space: dict[str, Any] = {"__name__": "__main__"}
    found = []
    for number, cell in enumerate(json.loads(notebook.read_text(encoding="utf-8"))["cells"]):
        source = "".join(line for line in cell["source"] if not line.startswith("%"))
        if cell["cell_type"] != "code" or not source.strip():
            continue
        for old, new in replaced.items():
            source = source.replace(old, new)
        begun, printed, value, error = time.process_time(), io.StringIO(), None, ""
        tree = ast.parse(source)
        last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
        try:
            with contextlib.redirect_stdout(printed):
                exec(compile(tree, f"cell {number}", "exec"), space)
                if isinstance(last, ast.Expr):
                    value = eval(compile(ast.Expression(last.value), f"cell {number}", "eval"), space)
        except Exception as caught:
            error = f"{type(caught).__name__}: {caught}"
        told = printed.getvalue() if value is None else repr(value)
        found.append((number, round(time.process_time() - begun, 1), told, error))
    return found


if __name__ == "__main__":
    print(json.dumps(run(Path(sys.argv[1]), dict(pair.split("=>") for pair in sys.argv[2:]))))
