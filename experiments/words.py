"""Words out of unsegmented handwriting: paper 004, section 4, "Handwritten word recognition".

The paper's 20 names, none with a doubled letter, each written 20 times for training and 20 times for test out of images
of single letters (16 x 8 pixels; training from folds 0-4, test from folds 5-9) that are glued together without their
empty columns. A position is a column; states are letters. The paper describes a column by the shape contexts of a patch
of seven columns, quantised to 50 words; here a patch is quantised whole: its nearest of 50 centres (k-means of the
training patches), with the neighbours' for context.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data import open_text
from experiments.report import Options, Report
from experiments.trajectories import EXPLAINED, Data, compare, tables
from scansion.metrics import compress

TITLE = "Words glued from handwritten letters (paper 004, section 4)"
NAMES = (
    "jake conor taner wyat cody dustin luke jack scot logan deshawn deandre marquis darnel terel malik reginald tyrone "
    "wilie dominique"
).split()
ROWS, COLUMNS, WIDTH, CENTRES = 16, 8, 7, 50

Image = npt.NDArray[np.float64]  # (16, columns)


def trimmed(image: Image) -> Image:
    """The image without empty columns on either side."""
    used = np.flatnonzero(image.any(axis=0))
    return image[:, used[0] : used[-1] + 1] if used.size else image


def read_letters() -> tuple[dict[str, list[Image]], dict[str, list[Image]]]:
    """Images of the letters that the names need, from folds 0-4 and 5-9."""
    needed = set("".join(NAMES))
    parts: tuple[dict[str, list[Image]], dict[str, list[Image]]] = ({}, {})
    with open_text("letters/letter.data") as lines:
        for line in lines:
            fields = line.split()
            if fields[1] in needed:
                pixels = np.array(fields[6 : 6 + ROWS * COLUMNS], dtype=np.float64).reshape(ROWS, COLUMNS)
                parts[int(fields[5]) >= 5].setdefault(fields[1], []).append(trimmed(pixels))
    return parts


def write(name: str, letters: dict[str, list[Image]], rng: np.random.Generator) -> tuple[Image, list[str]]:
    """A word as one image, and the letter of each column."""
    images = [letters[y][rng.integers(len(letters[y]))] for y in name]
    labels = [y for y, image in zip(name, images, strict=True) for _ in range(image.shape[1])]
    return np.concatenate(images, axis=1), labels


def patches(image: Image) -> npt.NDArray[np.float64]:
    """(T, 16 * 7) the columns around each column."""
    padded = np.pad(image, ((0, 0), (WIDTH // 2, WIDTH // 2)))
    return np.stack([padded[:, t : t + WIDTH].ravel() for t in range(image.shape[1])])


def k_means(x: npt.NDArray[np.float64], k: int, rng: np.random.Generator, rounds: int = 30) -> npt.NDArray[np.float64]:
    """Centres (k, d) by Lloyd's algorithm; a centre that loses all its points stays where it is."""
    centres = x[rng.choice(len(x), k, replace=False)]
    for _ in range(rounds):
        near = nearest(x, centres)
        for j in np.unique(near):
            centres[j] = x[near == j].mean(axis=0)
    return centres


def nearest(x: npt.NDArray[np.float64], centres: npt.NDArray[np.float64]) -> npt.NDArray[np.int64]:
    return np.argmin((centres**2).sum(axis=1) - 2 * x @ centres.T, axis=1)


def attributes(codes: npt.NDArray[np.int64]) -> list[list[str]]:
    """The code of each column and of its neighbours."""
    n = len(codes)
    return [[f"{k:+d}={codes[t + k]}" for k in (-1, 0, 1) if 0 <= t + k < n] for t in range(n)]


def run(options: Options) -> Report:
    rng = np.random.default_rng(0)
    copies = 4 if options.quick else 20
    written = [[write(name, part, rng) for name in NAMES for _ in range(copies)] for part in read_letters()]
    centres = k_means(np.concatenate([patches(image) for image, _ in written[0]]), CENTRES, rng)

    def encoded(words: list[tuple[Image, list[str]]]) -> list[Any]:
        return [attributes(nearest(patches(image), centres)) for image, _ in words]

    train, test = written
    order = rng.permutation(len(train))
    x = encoded(train)
    data = Data(
        [x[i] for i in order], [train[i][1] for i in order], encoded(test), [compress(labels) for _, labels in test]
    )
    semi = {"max_length": COLUMNS, "c2": 0.1, "max_iterations": 100}
    results = compare(options, data, {"c2": 0.1}, semi, len(train), 20_000)
    report = Report("words", TITLE, notes=[EXPLAINED])
    report.results = {"words": results, "n_train": len(train), "n_test": len(test)}
    report.tables.extend(tables({f"{len(train)} + {len(test)} words": results}, ""))
    return report
