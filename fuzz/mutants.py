"""Small faults, put into a copy of the code one at a time: ``python -m fuzz.mutants``, ``make mutants``.

A mutant is a file, a text in it that occurs once, what takes its place, and the test that must fail then: one of
pytest, or "fuzz KIND N", a run of the fuzzer over N problems that must find a fault. Those of ``native/``
(``--native``) are all compiled into one module, in which a variable of the environment turns one of them on: C++ is
compiled once, which takes a minute or more, and all else takes seconds. The copy is a temporary directory: the working
tree is not touched.
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
CHOSEN = "SCANSION_MUTANT"


class Mutant(NamedTuple):
    """One fault; in C++, what is replaced is an expression, or one or more whole statements (they end in ; or })."""

    file: str
    old: str
    new: str
    test: str

    @property
    def native(self) -> bool:
        """Whether it is of C++."""
        return self.file.startswith(N)

    def switched(self, number: int) -> str:
        """C++ that is one or the other, as the environment says."""
        if self.old.rstrip().endswith((";", "}")):
            return f"if (scansion::mutant({number})) {{ {self.new} }} else {{ {self.old} }}"
        return f"(scansion::mutant({number}) ? ({self.new}) : ({self.old}))"


P, N = "src/scansion/", "native/"
FAULTS = "tests/test_small_faults.py::"
TIES = "tests/test_segment.py::test_shorter_segments_win_ties"
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
        'replacing(path, "wb", through=True)',
        'open(path, "wb")',
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
    Mutant(
        P + "formats/blocks.py",
        "given = range(max(width, 0)) if",
        "given = range(max(width - 1, 0)) if",
        FAULTS + "test_tagging_words_alone",
    ),
    Mutant(
        P + "training/optimizers.py",
        "if norm == 0.0 or norm <=",
        "if norm <=",
        "tests/test_reliability.py::test_a_loss_of_nothing",
    ),
    Mutant(
        P + "rules/expressions.py",
        " and value.isprintable()",
        "",
        "tests/test_reliability.py::test_rules_print_what_terminals_can_show",
    ),
    # C++: what is learnt, walks and ties
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
        "column_[j] > 1e-200",
        "column_[j] > 0.0",
        "tests/test_compressed.py::test_ways_that_vanish_beside_each_other_in_one_column",
    ),
    Mutant(
        N + "compressed.hpp",
        "rest < lengths[c]",
        "rest < 2.0",
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
        "for (int64_t worker = 1; worker < threads; ++worker) pool.emplace_back(work, worker);",
        "for (int64_t worker = 1; worker < threads; ++worker) {"
        " try { pool.emplace_back(work, worker); } catch (...) { std::abort(); } }",
        "tests/test_reliability.py::test_threads_that_cannot_start_are_done_without",
    ),
    Mutant(N + "viterbi.hpp", "key_length_[k] < key_length_[best]", "key_length_[k] > key_length_[best]", TIES),
    Mutant(N + "viterbi.hpp", "length[p] < length[q]", "length[p] > length[q]", TIES),
    Mutant(N + "viterbi.hpp", "x > h[k]", "x >= h[k]", TIES),
    # guards: what they watch for is rare, and the fuzzer's coarse grids find it
    Mutant(N + "chain.hpp", "least > kNoUnderflow", "true", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "guard.smallest == 0.0", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!guard.survives(a, L, stride, lows[t], *w)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!guard.survives(beta, L, stride, lows[t], *w)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!(sum * w->smallest > kTiny)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!(mass > kTiny)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!(pairs > kTiny)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!(std::abs(shift) <= kMostShift)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!edge_is_tame(c, t, shift)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!edge_is_tame(c, t, 0.0)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "chain.hpp", "!chain_is_tame(c)", "false", "fuzz lattices.chain 20000"),
    Mutant(N + "nested.hpp", "top > 0.0 || !lossless", "false", "fuzz lattices.nested 20000"),
    Mutant(N + "nested.hpp", "row[i] < kTiny", "false", "fuzz lattices.nested 20000"),
    Mutant(N + "nested.hpp", "mass > 0.0 || bounds[0] <= kNoLoss", "false", "fuzz lattices.nested 20000"),
    Mutant(N + "segment.hpp", "x[j] < kTiny && j != except", "false", "fuzz lattices.segments 20000"),
    Mutant(
        N + "segment.hpp",
        "if (!(w.tame && heaviest.fits())) return w.tame = false;\n      w.a_scale[v] = heaviest.scale;",
        "w.a_scale[v] = heaviest.scale;",
        "fuzz lattices.segments 20000",
    ),
    Mutant(N + "segment_additive.hpp", "!(product > kTinyProduct)", "false", "fuzz lattices.long_segments 5000"),
    Mutant(N + "segment_log.hpp", "w.tame && heaviest.fits()", "true", "fuzz lattices.segments 20000"),
]

# without the finder of an editable installation, which would give the code that is installed
OWN = """
import sys
sys.meta_path[:] = [f for f in sys.meta_path if "editable" not in type(f).__module__]
sys.path[:0] = ["src", "."]
"""
PYTEST = (
    OWN
    + """
import pytest
sys.exit(pytest.main(["-q", "-x", "-p", "no:cacheprovider", "-p", "no:randomly", *sys.argv[1:]]))
"""
)
FUZZ = (
    OWN
    + """
from fuzz.rounds import problems_of
kind, most = sys.argv[1], int(sys.argv[2])
done = number = 0
while done < most:
    try:
        done += problems_of(1, kind, number)
    except Exception as error:
        print(f"round {number}: {error}"[:300])
        sys.exit(1)
    number += 1
"""
)
SWITCH = """
#include <cstdlib>
namespace scansion {
inline bool mutant(int number) {
  static const char* const name = std::getenv("SCANSION_MUTANT");
  static const int chosen = name ? std::atoi(name) : -1;
  return chosen == number;
}
}  // namespace scansion
"""


def copied(folder: Path) -> Path:
    """The code, with the extension module that is installed."""
    there = folder / "scansion"
    left_out = shutil.ignore_patterns(".git", ".venv*", "build", "dist", "__pycache__", ".*_cache", ".hypothesis")
    shutil.copytree(ROOT, there, ignore=left_out)
    for module in Path(sysconfig.get_path("platlib"), "scansion").glob("_core*"):
        shutil.copy(module, there / "src/scansion")
    return there


def replaced(there: Path, mutant: Mutant, new: str) -> str:
    """Put a text in the place of a mutant's; what the file was before."""
    path = there / mutant.file
    text = path.read_text()
    if text.count(mutant.old) != 1:
        raise SystemExit(f"{mutant.file} has {mutant.old!r} {text.count(mutant.old)} times, not once")
    path.write_text(text.replace(mutant.old, new))
    return text


def build(there: Path, mutants: list[Mutant]) -> None:
    """Compile the extension module of a copy, with all mutants in it."""
    import nanobind

    for number, mutant in enumerate(mutants):
        if mutant.native:
            replaced(there, mutant, mutant.switched(number))
    numeric = there / "native/numeric.hpp"
    numeric.write_text(numeric.read_text() + SWITCH)
    for path in there.joinpath("native").rglob("*.hpp"):  # before anything uses it
        if path != numeric and "scansion::mutant(" in path.read_text():
            include = os.path.relpath(numeric, path.parent)
            path.write_text(path.read_text().replace("#pragma once", f'#pragma once\n#include "{include}"', 1))
    where = there / "build"
    cmake = ["cmake", "-G", "Ninja", "-S", str(there), "-B", str(where), "-DCMAKE_BUILD_TYPE=Release"]
    cmake += [f"-Dnanobind_DIR={nanobind.cmake_dir()}", f"-DPython_EXECUTABLE={sys.executable}"]
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ.get("PATH", "")])  # its CMake and Ninja
    for command in ([*cmake, "-DSKBUILD=2", "-DSKBUILD_PROJECT_NAME=scansion"], ["ninja", "-C", str(where), "_core"]):
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, "PATH": path})
        if done.returncode:
            raise SystemExit(f"{' '.join(command)} failed:\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    for module in where.glob("_core*.so"):
        shutil.copy(module, there / "src/scansion")


def fails(there: Path, test: str, chosen: int = -1) -> bool:
    """Whether the test fails with a mutant of C++ turned on."""
    environment = {**os.environ, "PYTHONPATH": str(there / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment[CHOSEN] = str(chosen)
    command = [FUZZ, *test.split()[1:]] if test.startswith("fuzz ") else [PYTEST, test]
    done = subprocess.run([sys.executable, "-c", *command], cwd=there, env=environment, capture_output=True, text=True)
    if done.returncode not in (0, 1) and chosen < 0:
        raise SystemExit(f"{test} could not be run:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.returncode != 0  # a mutant of C++ may end the process


def main(arguments: list[str] | None = None) -> int:
    """Exit code 1 if a mutant lives."""
    parser = argparse.ArgumentParser(prog="python -m fuzz.mutants", description="Small faults that tests must notice.")
    parser.add_argument("--native", action="store_true", help="those of C++, too")
    parser.add_argument("--only", help="those whose file, text or test has this in it")
    parser.add_argument("--list", action="store_true", help="list them")
    given = parser.parse_args(arguments)
    chosen = [m for m in MUTANTS if given.native or not m.native]
    chosen = [m for m in chosen if not given.only or any(given.only in text for text in m)]
    if given.list:
        print("\n".join(f"{m.file}: {m.old.strip()!r} -> {m.new.strip()!r}, {m.test}" for m in chosen))
        return 0
    alive, start = 0, time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        there = copied(Path(folder))
        if any(m.native for m in chosen):
            build(there, chosen)
            print(f"C++ compiled after {time.perf_counter() - start:.0f} s", flush=True)
        for test in sorted({m.test for m in chosen}):
            if fails(there, test):
                raise SystemExit(f"{test} fails without a fault")
        for number, mutant in enumerate(chosen):
            begin = time.perf_counter()
            if mutant.native:
                noticed = fails(there, mutant.test, number)
            else:
                before = replaced(there, mutant, mutant.new)
                noticed = fails(there, mutant.test)
                (there / mutant.file).write_text(before)
            alive += not noticed
            where = f"{mutant.file}: {mutant.old.strip().splitlines()[0]}"
            print(f"{'noticed' if noticed else 'ALIVE':8} {time.perf_counter() - begin:5.1f} s  {where}", flush=True)
    print(f"{len(chosen)} mutants, {alive} alive, {time.perf_counter() - start:.0f} s")
    return 1 if alive else 0


if __name__ == "__main__":
    sys.exit(main())
