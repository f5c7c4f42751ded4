"""``import scansion`` is quick: it loads nothing that is not needed yet."""

import json
import subprocess
import sys

import pytest

HEAVY = ("scipy", "sklearn", "pandas", "matplotlib", "torch", "safetensors", "hypothesis")


def modules_after(code):
    """Names of the modules that a new interpreter has loaded after `code`."""
    report = "import json, sys; json.dump(sorted(sys.modules), sys.stdout)"
    done = subprocess.run([sys.executable, "-c", f"{code}\n{report}"], check=True, capture_output=True, text=True)
    return set(json.loads(done.stdout))


@pytest.fixture(scope="module")
def bare():
    """What the interpreter and the environment load by themselves."""
    return modules_after("")


def heavy(modules, bare):
    return sorted(name for name in modules - bare if name.split(".")[0] in HEAVY)


def test_import_is_lazy(bare):
    modules = modules_after("import scansion")
    loaded = sorted(name for name in modules - bare if name.split(".")[0] == "scansion")
    assert loaded == ["scansion"]
    assert "numpy" not in modules - bare
    assert heavy(modules, bare) == []


@pytest.mark.parametrize(
    "code",
    [
        "import scansion.lattice",
        "import scansion as sc; sc.ChainLattice([[1.0, 0.0], [0.0, 0.0]], [[0.5, 0.0], [0.0, 0.5]]).marginals()",
        "import scansion as sc; sc.SegmentLattice([[[1.0]], [[2.0]]], [(0,)], 1).viterbi()",
        "import scansion as sc; sc.PatternAutomaton([(0, 1)], 2).states",
        "import scansion.reference.segment",
    ],
)
def test_lattices_need_numpy_only(bare, code):
    modules = modules_after(code)
    assert heavy(modules, bare) == []
    assert "numpy" in modules


def test_lattices_do_not_load_the_reference(bare):
    modules = modules_after("import scansion as sc; sc.ChainLattice([[1.0]], [[0.0]]).kbest(2)")
    assert not any(name.startswith("scansion.reference") for name in modules)


def test_every_public_name_can_be_loaded():
    modules_after("import scansion\nfor name in dir(scansion): getattr(scansion, name)")


def test_unknown_names():
    import scansion

    with pytest.raises(AttributeError, match="no_such_name"):
        _ = scansion.no_such_name
    assert set(scansion.__all__) <= set(dir(scansion))
