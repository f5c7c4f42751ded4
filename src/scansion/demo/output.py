"""What the tour leaves behind: pages, models, the data as columns; and what to do with them."""

from __future__ import annotations

import io
import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Any

import numpy as np

from scansion.demo.models import Answers, Folds
from scansion.display.report import report_page
from scansion.display.sequence import Sequence, sequence_page
from scansion.formats import Reading, columns
from scansion.formats.blocks import Record
from scansion.schemes import encode

__all__ = ["commands", "snippet", "write"]

ALTERNATIVES = 5


def write(where: Path, folds: Folds, semicrf: Answers, trees: Answers, flat: Any, deep: Any) -> list[tuple[str, str]]:
    """Write all files; returns their paths with what they hold.

    Parameters
    ----------
    where : Path
        A directory that exists.
    folds, semicrf, trees
        The references, and what models that had not seen them say.
    flat, deep : SemiCRF, HierarchicalCRF
        Models of all references.
    """
    pages = {
        "references.html": (_references(folds, semicrf, trees), "a reference of each style as the models read it"),
        "semicrf.html": (report_page(flat), "what the SemiCRF learnt"),
        "hierarchical.html": (report_page(deep), "what the HierarchicalCRF learnt"),
        "train.txt": (_columns(folds, tested=False), "two thirds of the references: token, field, part"),
        "test.txt": (_columns(folds, tested=True), "the others"),
    }
    for name, (text, _) in pages.items():
        (where / name).write_text(text, encoding="utf-8")
    flat.save(where / "semicrf.safetensors")
    deep.save(where / "hierarchical.safetensors")
    return [(str(where / name), content) for name, (_, content) in pages.items()] + [
        (str(where / "*.safetensors"), "the two models, for scansion.load")
    ]


def _references(folds: Folds, semicrf: Answers, trees: Answers) -> str:
    """One reference of each style: fields and parts, how sure the SemiCRF is, what else it thinks."""
    entries = []
    shown: set[str] = set()
    for i, reference in enumerate(folds.references):
        if reference.style in shown:
            continue
        shown.add(reference.style)
        model, x = semicrf.models[i], [folds.X[i]]
        marginals = model.lattice(folds.X[i]).marginals().labels
        tree = trees.predicted[i]
        entries.append(
            Sequence(
                reference.tokens,
                [tree["field"], tree["part"]],
                level_names=["field", "part"],
                marginals=np.asarray(marginals),
                labels=list(model.classes_),
                alternatives=[([config], float(np.exp(p))) for config, p in model.predict_kbest(x, ALTERNATIVES)[0]],
                name=reference.style
                + (", read without an error" if tree["field"] == reference.levels[0] else ", with errors"),
            )
        )
    title = "References: fields and parts (HierarchicalCRF), probabilities (SemiCRF)"
    return sequence_page(entries, title)


def _columns(folds: Folds, tested: bool) -> str:
    """References as columns of a CoNLL file: token, field, part, in the scheme IOB2."""
    out = io.BytesIO()
    for reference in (r for i, r in enumerate(folds.references) if (i % 3 == 2) == tested):
        labels = [encode(level, len(reference.tokens)) for level in reference.levels]
        record = Record(reference.style, [[token] for token in reference.tokens], None, labels, None, {})
        columns.write(out, record, Reading(separator="\t"))
    return out.getvalue().decode()


def commands(where: Path) -> list[str]:
    """Commands to try, as one would type them here."""
    program = _program()
    names = ("train.txt", "test.txt", "mine.safetensors", "mine.html", "mine.txt")
    train, test, model, page, labelled = (shlex.quote(str(where / name)) for name in names)
    return [
        f"{program} train {train} -o {model} --labels 1 --features ner --c2 0.1",
        f"{program} evaluate {model} {test}",
        f"{program} tag {model} {test} --html {page} -o {labelled}",
    ]


def _program() -> str:
    """How the command is called here."""
    if shutil.which("scansion"):
        return "scansion"
    beside = Path(sys.executable).with_name("scansion")
    return shlex.quote(os.path.relpath(beside)) if beside.exists() else "python -m scansion"


def snippet(where: Path) -> list[str]:
    """Python to try."""
    return [
        "import scansion as sc",
        "from scansion.demo import attributes, tokens_of",
        "",
        f"model = sc.load({str(where / 'semicrf.safetensors')!r})",
        'tokens = tokens_of("R. W. Hamming, Error correcting codes, 1950")',
        "for start, stop, label in model.predict([attributes(tokens)])[0]:",
        '    print(label, " ".join(tokens[start:stop]))',
    ]
