"""Dask: the model of one machine, on any number of workers, whatever happens to them."""

import os
import signal

import numpy as np
import pytest
from test_shards import CUTS, assert_same_model, cut, nested, sequences

import scansion as sc

WHY = "Dask is not installed: pip install 'scansion[dask]'"
dask = pytest.importorskip("dask", reason=WHY)
distributed = pytest.importorskip("distributed", reason=WHY)
bag = pytest.importorskip("dask.bag", reason=WHY)
scd = pytest.importorskip("scansion.dask", reason=WHY)

pytestmark = pytest.mark.filterwarnings("ignore")  # Dask's own, of ports and of workers that were killed


@pytest.fixture(scope="module")
def client():
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def parts(whole):
    """Delayed lists of sequences."""
    return [dask.delayed(whole[a:b], pure=False) for a, b in zip(CUTS, CUTS[1:], strict=False)]


def bagged(whole):
    return bag.from_delayed(parts(whole))


def test_bags_give_the_model_of_one_machine(client):
    X, y = sequences()
    one, here = sc.CRF(max_iterations=8).fit(X, y), sc.CRF(max_iterations=8).fit(cut(X), y)
    there = scd.CRF(max_iterations=8).fit(bagged(X), bagged(y))
    assert_same_model(one, there)
    np.testing.assert_array_equal(here.model_.weights, there.model_.weights)  # the same parts: the same bits
    lazily = there.predict(bagged(X))
    assert isinstance(lazily, bag.Bag)
    assert lazily.compute() == one.predict(X) == there.predict(X)
    found = there.predict_marginals(parts(X))
    assert [one for part in dask.compute(*found) for one in part] == there.local().predict_marginals(X)
    assert there.score(X, y) == one.score(X, y)


def test_segments_and_levels_from_futures(client, tmp_path):
    X, y = sequences()
    futures = client.compute(parts(X))
    few = {"min_freq": 2, "max_iterations": 5}
    assert_same_model(sc.SemiCRF(**few).fit(X, y), scd.SemiCRF(**few, client=client).fit(futures, y))
    levels = {"levels": ["top", "low"], "max_length": {"low": 1}, "max_iterations": 5}
    model = scd.HierarchicalCRF(**levels).fit(futures, parts(nested(y)))
    one = sc.HierarchicalCRF(**levels).fit(X, nested(y))
    assert_same_model(one, model)
    model.save(tmp_path / "model")
    assert sc.load(tmp_path / "model").predict(X) == one.predict(X)


def test_a_worker_that_is_killed_changes_nothing(client):
    X, y = sequences()
    expected = sc.CRF(max_iterations=8).fit(cut(X), y)
    model = scd.CRF(max_iterations=8)
    problem, calls = model.problem, []

    def fragile(*given):
        found = problem(*given)
        evaluate = found.objective.log_loss

        def killing_one(*arguments):
            calls.append(1)
            if len(calls) == 3:
                os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
            return evaluate(*arguments)

        found.objective.log_loss = killing_one
        return found

    model.problem = fragile
    model.fit(bagged(X), y)
    assert len(calls) > 3
    np.testing.assert_array_equal(expected.model_.weights, model.model_.weights)
    client.wait_for_workers(2, timeout=60)


def test_bad_data_name_the_sequence_and_leave_the_cluster_usable(client):
    X, y = sequences()
    with pytest.raises(TypeError, match="in part 2: X, sequence 1, position 1"):
        scd.CRF().fit(bagged([*X[:14], [["fine"], "a string"], *X[15:]]), y)
    with pytest.raises(ValueError, match=r"y\[3\] has"):
        scd.CRF().fit(bagged(X), [*y[:3], [*y[3], "A"], *y[4:]])
    assert scd.CRF(max_iterations=2).fit(bagged(X), y).predict(X[:1])


def test_what_is_wrong_is_said(client):
    X, y = sequences()
    with pytest.raises(TypeError, match=r"X must be a dask\.bag.*got list"):
        scd.CRF().fit(X, y)
    with pytest.raises(ValueError, match="algorithm must be 'lbfgs'"):
        scd.CRF(algorithm="l2sgd").fit(bagged(X), y)
    with pytest.raises(ValueError, match="grow"):
        scd.CRF(grow=3).fit(bagged(X), y)
    with pytest.raises(AttributeError, match="not fitted"):
        scd.CRF().predict(bagged(X))


def test_without_a_client_it_says_so(monkeypatch):
    def none_found():
        raise ValueError("No global client found and no address provided")

    monkeypatch.setattr(distributed, "get_client", none_found)
    with pytest.raises(ValueError, match="there is no Dask client"):
        scd.DaskWorkers()
