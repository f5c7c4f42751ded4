"""Programs that are written for python-crfsuite, with it and with scansion in its place.

    make compat                             packages from PyPI, the same work with both engines: answers must be equal
    make compat ARGS="--sources DIRECTORY"  also their own tests, where DIRECTORY holds checkouts of their repositories

Packages are installed into build/compat, never into the project. Checkouts that are known: python-crfsuite,
sklearn-crfsuite, usaddress, probablepeople, parserator. Where NLTK finds the corpus conll2002 (NLTK_DATA),
sklearn-crfsuite's tutorial is run too, cell by cell; its random search tries two settings in place of fifty.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).parent
FOLDER = HERE.parent / "build" / "compat"
SITE = FOLDER / "site"
PACKAGES = (
    *("usaddress", "probablepeople", "parserator", "nltk", "sklearn-crfsuite"),
    *("probableparsing", "doublemetaphone", "tabulate", "tqdm", "lxml", "regex", "chardet", "click", "defusedxml"),
)

# scansion in place of python-crfsuite, and of sklearn-crfsuite
STAND_INS = {
    "as_pycrfsuite": 'import sys, scansion.pycrfsuite\nsys.modules["pycrfsuite"] = scansion.pycrfsuite\n',
    "as_sklearn_crfsuite": "import sys, scansion.sklearn_crfsuite\n"
    'sys.modules["sklearn_crfsuite"] = scansion.sklearn_crfsuite\n',
    "as_scansion": "import sys, scansion, scansion.metrics\n"
    'sys.modules["sklearn_crfsuite"] = scansion\nsys.modules["sklearn_crfsuite.metrics"] = scansion.metrics\n',
}

# ---- the same work with both engines ---------------------------------------------------------------------------------
# Each prints one JSON value.
PROGRAMS = {
    "usaddress: parse and tag": """
import usaddress
texts = [f"{n} {d} {s} {k}, {c} {z}" for n in (1, 22, "305 1/2") for d in ("N.", "", "West") for s in ("Main", "5th")
         for k in ("St", "Avenue #4", "Blvd. Apt 3B") for c in ("Chicago, IL", "New York NY") for z in ("60606", "1")]
texts += ["Robie House, 5757 South Woodlawn Avenue, Chicago, IL 60637", "PO Box 12 Springfield", "Oak & Elm", ""]
print(json.dumps([[usaddress.parse(t) for t in texts], [usaddress.tag(t) for t in texts[:50]]]))
""",
    "probablepeople: parse": """
import probablepeople
texts = [f"{t} {a} {b}{c}" for t in ("", "Mr.", "Dr") for a in ("Mary", "J. R.") for b in ("Smith", "de la Cruz")
         for c in ("", " Jr.", " & Sons, Inc.", " and Ann Jones", " LLC")]
print(json.dumps([probablepeople.parse(t) for t in texts]))
""",
    "parserator: training": """
import io, types
from parserator import training
from lxml import etree
rows = ["<One><A>red</A> <B>cat</B></One>", "<One><A>big</A> <A>red</A> <B>dog</B></One>", "<One><B>dog</B></One>"] * 5
xml = "<Collection>" + "".join(rows) + "</Collection>"
module = types.SimpleNamespace(
    GROUP_LABEL="Collection", LABELS=["A", "B"],
    tokenize=str.split,
    tokens2features=lambda tokens: [{"w": t, "last": i == len(tokens) - 1} for i, t in enumerate(tokens)])
open("data.xml", "w").write(xml)
data = list(training.readTrainingData(["data.xml"], "Collection"))
training.trainModel(data, module, "model.crfsuite")
import pycrfsuite
tagger = pycrfsuite.Tagger()
tagger.open("model.crfsuite")
texts = ["red dog", "big big cat", "cat", "red red red"]
print(json.dumps([tagger.tag(module.tokens2features(text.split())) for text in texts]))
""",
    "NLTK: CRFTagger": """
import nltk, os
nltk.data.path.append(os.getcwd())
from nltk.tag import CRFTagger
train = [[("University", "Noun"), ("is", "Verb"), ("a", "Det"), ("good", "Adj"), ("place", "Noun")],
         [("dog", "Noun"), ("eat", "Verb"), ("meat", "Noun")]]
gold = [[("dog", "Noun"), ("is", "Verb"), ("good", "Adj")], [("Cat", "Noun"), ("eat", "Verb"), ("meat", "Noun")]]
path = os.path.join(os.getcwd(), "model.crf.tagger")
one = CRFTagger()
one.train(train, path)
two = CRFTagger()
two.set_model_file(path)
tagged = one.tag_sents([["dog", "is", "good"], ["Cat", "eat", "meat"]])
print(json.dumps([tagged, one.accuracy(gold), two.accuracy(gold)]))
""",
    "NLTK: docstring, nothing skipped": """
import doctest, nltk, os
from nltk.tag import crf
nltk.data.path.append(os.getcwd())
text = crf.CRFTagger.__doc__.replace("# doctest: +SKIP", "")
flags = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
runner = doctest.DocTestRunner(verbose=False, optionflags=flags)
result = runner.run(doctest.DocTestParser().get_doctest(text, {}, "CRFTagger", None, 0))
assert result.failed == 0, f"{result.failed} of {result.attempted} examples failed"
print(json.dumps([result.attempted, result.failed]))
""",
    "sklearn-crfsuite: its CRF": """
import warnings
warnings.simplefilter("ignore")
from sklearn_crfsuite import CRF, metrics
texts = ["The cat sat", "A dog ran off", "Anna met Bob"] * 5
X = [[{"w": w, "n": len(w), "up": w.istitle()} for w in text.split()] for text in texts]
y = [["D", "N", "V"], ["D", "N", "V", "P"], ["N", "V", "N"]] * 5
found = []
for given in ({"algorithm": "lbfgs", "c1": 0.1, "c2": 0.1}, {"algorithm": "lbfgs", "all_possible_transitions": True}):
    crf = CRF(max_iterations=50, **given).fit(X, y)
    guess = [list(row) for row in crf.predict(X)]
    found.append([guess, sorted(crf.classes_), metrics.flat_f1_score(y, guess, average="macro")])
print(json.dumps(found))
""",
}

# ---- their own tests -------------------------------------------------------------------------------------------------
# checkout, what is put in place of python-crfsuite or sklearn-crfsuite, what is copied beside the tests
SUITES = [
    ("python-crfsuite", "as_pycrfsuite", ()),
    ("sklearn-crfsuite", "as_pycrfsuite", ()),
    ("sklearn-crfsuite", "as_sklearn_crfsuite", ()),
    ("sklearn-crfsuite", "as_scansion", ()),
    ("usaddress", "as_pycrfsuite", ("measure_performance", "training")),
    ("probablepeople", "as_pycrfsuite", ("name_data",)),
    ("parserator", "as_pycrfsuite", ()),
]

# tests that fail because `scansion.CRF` answers in other types: lists, errors before fit and for unequal lengths
OTHER_TYPES = {
    "as_scansion": r"::(test_crf\[|test_crf_verbose\[|test_attributes|test_sequence_accuracy)",
}
# cells that fail with sklearn-crfsuite itself: scikit-learn has no grid_scores_ any more
OUTDATED_CELLS = {24}


def install() -> None:
    """Packages into build/compat, once."""
    if SITE.exists():
        return
    print("compat: installing packages into", os.path.relpath(SITE), flush=True)
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    try:
        subprocess.run([*pip, "--target", str(SITE), *PACKAGES], check=True)
    except BaseException:
        shutil.rmtree(SITE, ignore_errors=True)
        raise


def environment() -> dict[str, str]:
    """Where the packages and the stand-ins are found."""
    for name, code in STAND_INS.items():
        (FOLDER / f"{name}.py").write_text(code)
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(FOLDER), str(SITE)])}


def answers(code: str, engine: str, env: dict[str, str]) -> str:
    """What a program prints."""
    head = "import json\n" + ("import as_pycrfsuite\n" if engine == "scansion" else "")
    with tempfile.TemporaryDirectory() as folder:
        done = subprocess.run([sys.executable, "-c", head + code], cwd=folder, env=env, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr else "no answer")
    return done.stdout.strip().splitlines()[-1]


def programs(env: dict[str, str]) -> int:
    """The same work with both engines; how many differ."""
    wrong = 0
    for name, code in PROGRAMS.items():
        try:
            same = json.loads(answers(code, "scansion", env)) == json.loads(answers(code, "python-crfsuite", env))
            said = "the same answers" if same else "OTHER ANSWERS"
        except RuntimeError as error:
            same, said = False, f"FAILED: {error}"
        wrong += not same
        print(f"{name:<36} {said}", flush=True)
    return wrong


def suites(sources: Path, env: dict[str, str]) -> int:
    """Their own tests with scansion; how many suites have failures."""
    wrong = 0
    for name, stand_in, beside in SUITES:
        if not (sources / name / "tests").is_dir():
            print(f"{name:<36} not in {sources}")
            continue
        with tempfile.TemporaryDirectory() as folder:
            for part in ("tests", *beside):
                if (sources / name / part).is_dir():
                    shutil.copytree(sources / name / part, Path(folder, part))
            pytest = [sys.executable, "-m", "pytest", "-q", "-p", stand_in, "-p", "no:cacheprovider"]
            command = [*pytest, "-c", os.devnull, "--rootdir", folder, "tests"]
            done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        last = (done.stdout.strip().splitlines() or [done.stderr.strip()])[-1]
        failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
        known = OTHER_TYPES.get(stand_in, "$^")
        others = [line for line in failed if not re.search(known, line)]
        wrong += bool(others) or done.returncode > 1
        said = f" ({len(failed) - len(others)} of other types)" if len(failed) > len(others) else ""
        print(f"{f'{name} ({stand_in})':<36} {re.sub(r' in [0-9.]+s.*', '', last)}{said}", flush=True)
        for line in others:
            print(f"    {line}")
    return wrong


def tutorial(sources: Path, env: dict[str, str]) -> int:
    """The cells of sklearn-crfsuite's tutorial with scansion's module; how many fail that should not."""
    notebook, name = sources / "sklearn-crfsuite" / "docs" / "CoNLL2002.ipynb", "sklearn-crfsuite: CoNLL-2002 tutorial"
    command = "import matplotlib, nltk; matplotlib.use('Agg'); nltk.data.find('corpora/conll2002.zip')"
    missing = subprocess.run([sys.executable, "-c", command], env=env, capture_output=True).returncode
    if missing or not notebook.is_file():
        print(f"{name:<36} not run: needs {notebook.name}, matplotlib and NLTK's corpus conll2002")
        return 0
    command = f"import as_sklearn_crfsuite, runpy, sys; sys.argv[0] = {str(HERE / 'cells.py')!r}; "
    command += "runpy.run_path(sys.argv[0], run_name='__main__')"
    smaller = ["n_iter=50=>n_iter=2", "n_jobs=-1=>n_jobs=1"]
    with tempfile.TemporaryDirectory() as folder:
        run = [sys.executable, "-W", "ignore", "-c", command, str(notebook), *smaller]
        done = subprocess.run(run, cwd=folder, env={**env, "MPLBACKEND": "agg"}, capture_output=True, text=True)
    if done.returncode:
        print(f"{name:<36} FAILED: {done.stderr.strip().splitlines()[-1]}")
        return 1
    cells = json.loads(done.stdout.splitlines()[-1])
    failed = {number: error for number, _, _, error in cells if error}
    said = f"{len(cells) - len(failed)} of {len(cells)} cells, {sum(c[1] for c in cells):.0f} s"
    print(f"{name:<36} {said}; failed with itself, too: {sorted(OUTDATED_CELLS & set(failed))}", flush=True)
    for number in sorted(set(failed) - OUTDATED_CELLS):
        print(f"    cell {number}: {failed[number]}")
    return len(set(failed) - OUTDATED_CELLS)


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sources", type=Path, help="directory with checkouts, whose tests are run")
    parser.add_argument("--or-skip", action="store_true", help="no error where packages cannot be had")
    args = parser.parse_args()
    try:
        install()
    except subprocess.CalledProcessError:
        print("compat: the packages could not be installed; nothing was compared")
        return 0 if args.or_skip else 1
    env = environment()
    wrong = programs(env)
    if args.sources is not None:
        wrong += suites(args.sources.resolve(), env) + tutorial(args.sources.resolve(), env)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
