"""Small faults, put into a copy of the code one at a time: ``python -m fuzz.mutants``, ``make mutants``.

A mutant is a file, a text in it that occurs once, what takes its place, and the test that must fail then. Those of
``native/`` are compiled (``--native``), which takes a minute or more for each; the others take seconds. The copy is a
temporary directory: the working tree is not touched.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent


class Mutant(NamedTuple):
    """One fault."""

    file: str
    old: str
    new: str
    test: str


P, N = "src/scansion/", "native/"
FAULTS = "tests/test_small_faults.py::"
MUTANTS = [
    # Python
    Mutant(P + "training/orthant.py", "np.less(scratch, 0.0", "np.less_equal(scratch, 0.0", FAULTS + "test_orthants"),
    Mutant(P + "training/orthant.py", "np.greater(scratch, 0.0", "np.greater(w, 0.0", FAULTS + "test_orthants"),
    Mutant(
        P + "models/growth.py",
        "counts.get(window, 0.0) + amount",
        "counts.get(window, 0.0) + 1.0",
        FAULTS + "test_growing_counts_sample_weights",
    ),
    Mutant(
        P + "models/select_nested.py",
        "return index[sums >= self.least]",
        "return index[sums > self.least]",
        FAULTS + "test_nested_models_keep_what_is_as_frequent_as_asked",
    ),
    Mutant(P + "_files.py", "    _sync(directory)\n", "", "tests/test_files.py::test_content_and_name_reach_the_disk"),
    Mutant(
        P + "_files.py",
        "            with _naming(name):\n                os.fsync(descriptor)\n",
        "",
        "tests/test_files.py::test_content_and_name_reach_the_disk",
    ),
    Mutant(
        P + "cli/common.py",
        'with replacing(path, "wb", through=True) as file:',
        'with open(path, "wb") as file:',
        "tests/test_reliability.py::test_outputs_are_replaced_or_left_alone",
    ),
    Mutant(
        P + "_checks.py",
        "if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):",
        "if False:",
        "tests/test_reliability.py::test_masks_are_not_ignored",
    ),
    Mutant(
        P + "_checks.py",
        "    if number > most:\n",
        "    if number > 2**100:\n",
        "tests/test_reliability.py::test_integers_have_an_upper_bound",
    ),
    Mutant(
        P + "data/dataset.py",
        "    _check_values(data)\n",
        "",
        "tests/test_reliability.py::test_values_of_attributes_have_a_range",
    ),
    Mutant(
        P + "training/learn.py",
        "if large.any() or (learnt.log and not math.isfinite(learnt.loss)):",
        "if False:",
        "tests/test_reliability.py::test_training_that_goes_out_of_range_says_so",
    ),
    Mutant(
        P + "models/estimator.py",
        "            model.warn_of_symmetry(known)\n",
        "            pass\n",
        "tests/test_reliability.py::test_unlabelled_levels_are_warned_of",
    ),
    # C++
    Mutant(
        N + "online.hpp",
        "if (o_.pa_type == 1) tau = std::min(c, tau);",
        "tau = std::min(c, tau);",
        FAULTS + "test_one_step_of_each_passive_aggressive_type",
    ),
    Mutant(
        N + "online.hpp",
        "for (double& x : rows_) x *= o_.scale;",
        "",
        FAULTS + "test_a_step_that_forgets_everything",
    ),
    Mutant(
        N + "compressed.hpp",
        "column_[j] > 1e-200 ?",
        "column_[j] > 0.0 ?",
        "tests/test_compressed.py::test_ways_that_vanish_beside_each_other_in_one_column",
    ),
    Mutant(
        N + "compressed.hpp",
        "if (limit == most || rest < lengths[c]) return",
        "if (limit == most || rest < 2.0) return",
        "tests/test_compressed.py::test_trajectories_of_a_hundred_places",
    ),
    Mutant(
        N + "nested_paths.hpp",
        "if (!free.empty()) within += free[t * block.child_stride + s.offset + node.stack];\n"
        "      if (m > cells.extent(t)) continue;",
        "if (m > cells.extent(t)) continue;\n"
        "      if (!free.empty()) within += free[t * block.child_stride + s.offset + node.stack];",
        "tests/test_nested.py::test_free_levels_score_where_no_child_may_begin",
    ),
    Mutant(
        N + "parallel.hpp",
        "} catch (const std::exception&) {  // no more threads, or no memory for them\n",
        "} catch (const std::exception&) {  throw;\n",
        "tests/test_reliability.py::test_threads_that_cannot_start_are_done_without",
    ),
]

# without the finder of an editable installation, which would give the code that is installed
RUN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path.insert(0, "src")
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", *sys.argv[1:]]))
"""


def copied(folder: Path) -> Path:
    """The code, with the extension module that is installed."""
    there = folder / "scansion"
    left_out = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, there, ignore=left_out)
    for module in Path(sysconfig.get_path("platlib"), "scansion").glob("_core*"):
        shutil.copy(module, there / "src/scansion")
    return there


def build(there: Path) -> None:
    """Compile the extension module of a copy."""
    import nanobind

    where = there / "build"
    if not (where / "build.ninja").exists():
        cmake = ["cmake", "-G", "Ninja", "-S", str(there), "-B", str(where), "-DCMAKE_BUILD_TYPE=Release"]
        cmake += [f"-Dnanobind_DIR={nanobind.cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
        subprocess.run([*cmake, "-DSKBUILD=2", "-DSKBUILD_PROJECT_NAME=scansion"], check=True, capture_output=True)
    subprocess.run(["ninja", "-C", str(where), "_core"], check=True, capture_output=True)
    for module in where.glob("_core*.so"):
        shutil.copy(module, there / "src/scansion")


def fails(there: Path, test: str) -> bool:
    """Whether the test fails."""
    environment = {**os.environ, "PYTHONPATH": str(there / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, "-c", RUN, test], cwd=there, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1):
        raise SystemExit(f"{test} could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode == 1


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if a mutant lives."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description="Small faults that tests must notice.")
    parser.add_argument("--native", action="store_true", help="those of C++, too")
    parser.add_argument("--only", help="those whose file, text or test has this in it")
    parser.add_argument("--list", action="store_true", help="list them")
    given = parser.parse_args(arguments)
    alive = 0
    chosen = [m for m in MUTANTS if given.native or not m.file.startswith(N)]
    chosen = [m for m in chosen if not given.only or any(given.only in text for text in m)]
    if given.list:
        print("\n".join(f"{m.file}: {m.old.strip()!r} -> {m.new.strip()!r}, {m.test}" for m in chosen))
        return 0
    with tempfile.TemporaryDirectory() as folder:
        there = copied(Path(folder))
        if any(m.file.startswith(N) for m in chosen):
            build(there)
        for test in sorted({m.test for m in chosen}):
            if fails(there, test):
                raise SystemExit(f"{test} fails without a fault")
        for mutant in chosen:
            begin = time.perf_counter()
            path = there / mutant.file
            text = path.read_text()
            if text.count(mutant.old) != 1:
                raise SystemExit(f"{mutant.file} has {mutant.old!r} {text.count(mutant.old)} times, not once")
            path.write_text(text.replace(mutant.old, mutant.new))
            if mutant.file.startswith(N):
                build(there)
            noticed = fails(there, mutant.test)
            path.write_text(text)
            alive += not noticed
            word = "noticed" if noticed else "ALIVE"
            where = f"{mutant.file}: {mutant.old.strip().splitlines()[0]}"
            print(f"{word:8} {time.perf_counter() - begin:5.1f} s  {where}", flush=True)
            if mutant.file.startswith(N):
                os.utime(path)  # later than the build
    print(f"{len(chosen)} mutants, {alive} alive")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
