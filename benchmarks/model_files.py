"""Reading and writing model files: mapped, copied, and by the safetensors library.

    python benchmarks/model_files.py

Each call runs in an interpreter of its own that has loaded all modules, with the file in the system's cache: memory
that was used before costs less than memory that is new. Processor time, best of several.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import scansion as sc

MODULES = "scansion.models.crf, scansion.models.files"
CALLS = {
    "sc.load(path, mmap=True)": (MODULES, ""),
    "sc.load(path)": (MODULES, ""),
    "model_file.read(path, mmap=True)": ("numpy", ""),
    "model_file.read(path)": ("numpy", ""),
    "safetensors.numpy.load_file(path)": ("safetensors.numpy", ""),
    "model.save(path + '2')": (MODULES, "model = sc.load(path)"),
    "model_file.write(path + '2', f.kind, f.metadata, f.arrays)": ("safetensors.numpy", "f = model_file.read(path)"),
    "safetensors.numpy.save(f.arrays)": ("safetensors.numpy", "f = model_file.read(path)"),
    "importlib.import_module('safetensors.numpy')": ("importlib, numpy", ""),
}


def make(path: Path) -> None:
    """A model of 100,000 attributes and some 450,000 weights."""
    rng = np.random.default_rng(0)
    names = [f"attribute-{i}" for i in range(100_000)]
    X = [
        [[names[2 * t % 100_000], names[(2 * t + 1) % 100_000], names[int(rng.integers(100_000))]] for t in tokens]
        for tokens in np.arange(170_000).reshape(-1, 25).tolist()
    ]
    y = [[f"label-{i}" for i in rng.integers(0, 23, len(x))] for x in X]
    crf = sc.CRF(max_iterations=2).fit(X, y)
    crf.save(path)
    print(f"{len(crf.attributes_)} attributes, {crf.size_} weights, {path.stat().st_size / 1e6:.1f} MB")


def best(path: Path, call: str, modules: str, before: str, repeats: int = 9) -> float:
    """Milliseconds that a call takes."""
    program = (
        f"import sys, time, {modules}\nimport scansion as sc\nfrom scansion import model_file\npath = sys.argv[1]\n"
        f"{before}\nstart = time.process_time()\nresult = {call}\nprint(1000 * (time.process_time() - start))"
    )
    return min(float(subprocess.check_output([sys.executable, "-c", program, str(path)])) for _ in range(repeats))


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "model")
        make(path)
        for call, (modules, before) in CALLS.items():
            print(f"{best(path, call, modules, before):8.1f} ms  {call}")


if __name__ == "__main__":
    main()
