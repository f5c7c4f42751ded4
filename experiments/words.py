"""Words out of unsegmented handwriting: paper 004, section 4, "Handwritten word recognition", figure 4.

The paper's 20 names, none with a doubled letter, each written 20 times for training and 20 times for test out of images
of single letters (16 x 8 pixels; training from folds 0-4, test from folds 5-9) that are glued together without their
empty columns, five times over. A position is a column; states are letters.

Features are the paper's. Around each column lies a patch of 16 x 7 pixels. Each set pixel of it has a shape context
(Belongie, Malik and Puzicha 2002): how many of the patch's other set pixels lie in each of 5 rings, whose radii grow by
factors, and 12 directions. K-means of the training part's shape contexts makes a dictionary of 50 words; an observation
is the histogram of the words of a patch, its entries shares of the set pixels.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from experiments.data import open_text
from experiments.figures import pictures
from experiments.report import Figure, Options, Report, Table
from experiments.trajectories import EXPLAINED, SEEDS, Data, ask, tables
from scansion.metrics import compress

TITLE = "Words glued from handwritten letters (paper 004, section 4, figure 4)"
NAMES = (
    "jake conor taner wyat cody dustin luke jack scot logan deshawn deandre marquis darnel terel malik reginald tyrone "
    "wilie dominique"
).split()
ROWS, COLUMNS, WIDTH, WORDS = 16, 8, 7, 50
RINGS, DIRECTIONS = 5, 12
SAMPLE = 20_000  # shape contexts that K-means sees
COPIES = 20

Image = npt.NDArray[np.float64]  # (16, columns)
Array = npt.NDArray[np.float64]
Letters = dict[str, list[Image]]


def trimmed(image: Image) -> Image:
    """The image without empty columns on either side."""
    used = np.flatnonzero(image.any(axis=0))
    return image[:, used[0] : used[-1] + 1] if used.size else image


def read_letters() -> tuple[Letters, Letters]:
    """Images of the letters that the names need, from folds 0-4 and 5-9."""
    needed = set("".join(NAMES))
    parts: tuple[Letters, Letters] = ({}, {})
    with open_text("letters/letter.data") as lines:
        for line in lines:
            fields = line.split()
            if fields[1] in needed:
                pixels = np.array(fields[6 : 6 + ROWS * COLUMNS], dtype=np.float64).reshape(ROWS, COLUMNS)
                parts[int(fields[5]) >= 5].setdefault(fields[1], []).append(trimmed(pixels))
    return parts


def write(name: str, letters: Letters, rng: np.random.Generator) -> tuple[Image, list[str]]:
    """A word as one image, and the letter of each column."""
    images = [letters[y][rng.integers(len(letters[y]))] for y in name]
    labels = [y for y, image in zip(name, images, strict=True) for _ in range(image.shape[1])]
    return np.concatenate(images, axis=1), labels


def bins() -> npt.NDArray[np.int64]:
    """(2 * 16 - 1, 2 * 7 - 1) the bin of the pixel that lies so many rows and columns from another; -1: itself."""
    rows, columns = np.mgrid[1 - ROWS : ROWS, 1 - WIDTH : WIDTH]
    distance = np.hypot(rows, columns)
    edges = np.geomspace(1.0, np.hypot(ROWS, WIDTH), RINGS + 1)[1:-1]
    ring = np.searchsorted(edges, distance, side="right")
    direction = np.floor((np.arctan2(rows, columns) / (2 * np.pi) + 1.0) * DIRECTIONS).astype(np.int64) % DIRECTIONS
    return np.where(distance > 0, ring * DIRECTIONS + direction, -1)


def shape_contexts(image: Image) -> tuple[Array, npt.NDArray[np.int64]]:
    """(n, 60) shape contexts of all set pixels of all patches, as shares, and the column that each belongs to."""
    table, half = bins(), WIDTH // 2
    padded = np.pad(image, ((0, 0), (half, half)))
    found, columns = [np.zeros((0, RINGS * DIRECTIONS))], [np.zeros(0, np.int64)]
    for t in range(image.shape[1]):
        row, column = np.nonzero(padded[:, t : t + WIDTH])
        n = len(row)
        kind = table[row[None] - row[:, None] + ROWS - 1, column[None] - column[:, None] + WIDTH - 1]
        size = RINGS * DIRECTIONS + 1  # the pixel itself has a bin of its own, which is left out
        flat = np.arange(n)[:, None] * size + kind + 1
        counts = np.bincount(flat.ravel(), minlength=n * size).reshape(n, size)[:, 1:]
        found.append(counts / max(1, n - 1))
        columns.append(np.full(n, t))
    return np.concatenate(found), np.concatenate(columns)


def dictionary(images: list[Image], seed: int) -> Any:
    """K-means of the shape contexts of images."""
    from sklearn.cluster import KMeans

    everything = np.concatenate([shape_contexts(image)[0] for image in images])
    chosen = np.random.default_rng(seed).permutation(len(everything))[:SAMPLE]
    return KMeans(WORDS, n_init=1, random_state=seed).fit(everything[chosen])


def observations(image: Image, centres: Array) -> list[dict[str, float]]:
    """The histogram of each column's patch."""
    contexts, columns = shape_contexts(image)
    nearest = np.argmin((centres**2).sum(axis=1) - 2 * contexts @ centres.T, axis=1)
    counts = np.zeros((image.shape[1], len(centres)))
    np.add.at(counts, (columns, nearest), 1.0)
    shares = counts / np.maximum(1.0, counts.sum(axis=1, keepdims=True))
    return [{f"word{k}": float(row[k]) for k in np.flatnonzero(row)} for row in shares]


def simulate(letters: tuple[Letters, Letters], copies: int, seed: int) -> Data:
    rng = np.random.default_rng(seed)
    train, test = ([write(name, part, rng) for name in NAMES for _ in range(copies)] for part in letters)
    centres = dictionary([image for image, _ in train], seed).cluster_centers_
    return Data(
        [observations(image, centres) for image, _ in train],
        [labels for _, labels in train],
        [observations(image, centres) for image, _ in test],
        [compress(labels) for _, labels in test],
    )


def run(options: Options) -> Report:
    letters = read_letters()
    copies, seeds = (4, 1) if options.quick else (COPIES, SEEDS)
    runs = []
    for seed in range(seeds):
        options.say(f"  words glued, {seed}:")
        runs.append(ask(options, simulate(letters, copies, seed)).results())
    report = Report("words", TITLE, notes=[EXPLAINED])
    report.results = {"words": runs, "n_train": copies * len(NAMES), "n_test": copies * len(NAMES)}
    report.tables += tables({f"{copies * len(NAMES)} + {copies * len(NAMES)} words": runs}, "")
    claims = Table("Published (as curves; no number is in the text):", ["claim"])
    claims.rows.append(["compressed is ahead of joint and of marginal in both scores"])
    report.tables.append(claims)
    report.figures.append(Figure("images", "Three instances of two names (figures 4a and 4b)", lambda: show(letters)))
    return report


def show(letters: tuple[Letters, Letters]) -> Any:
    """Three instances of "jake" and of "conor"."""
    rng = np.random.default_rng(0)
    names = [name for name in NAMES[:2] for _ in range(3)]
    return pictures({f"{name} {i % 3 + 1}": [(write(name, letters[0], rng)[0], ())] for i, name in enumerate(names)}, 3)
