"""Training and prediction on a Dask cluster: `CRF`, `SemiCRF`, `HierarchicalCRF` with the parameters they always have.

``pip install scansion[dask]``. X and y are bags, or lists of delayed objects or futures, each a list of sequences: a
partition. A partition is encoded, and its loss and gradient evaluated, where its worker has it; the optimiser runs in
the process that calls `fit`. In an iteration one vector goes out and one comes back, added up in a tree of fixed shape:
for the same partitions, results are the same on one worker and on many. A worker that dies loses nothing: Dask computes
its partitions again.

Examples
--------
>>> import dask.bag as db, scansion.dask  # doctest: +SKIP
>>> X, y = db.from_sequence(X, npartitions=8), db.from_sequence(y, npartitions=8)  # doctest: +SKIP
>>> tags = scansion.dask.CRF(c2=0.1).fit(X, y).predict(X).compute()  # doctest: +SKIP
"""

from __future__ import annotations

import copy
import uuid
import warnings
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from scansion import models
from scansion.data.partitions import Partitions
from scansion.models.parameters import parameter
from scansion.training.shards import added, pairwise

try:
    import dask
    import distributed
    from dask import bag
    from dask.delayed import Delayed
except ImportError as error:
    raise ImportError(f"scansion.dask needs Dask with its scheduler: pip install 'scansion[dask]' ({error})") from error

__all__ = ["CRF", "DaskWorkers", "HierarchicalCRF", "SemiCRF"]

Self = TypeVar("Self")

if TYPE_CHECKING:
    from scansion.models.estimator import Estimator as _Base
else:
    _Base = object  # the fields of the estimators must not come twice


class DaskWorkers:
    """The workers of a Dask cluster (see `scansion.training.shards.Workers`); handles are futures.

    Parameters
    ----------
    client : distributed.Client, optional
        The current one unless given.
    """

    def __init__(self, client: distributed.Client | None = None) -> None:
        if client is None:
            try:
                client = distributed.get_client()
            except ValueError:
                raise ValueError(
                    "there is no Dask client: make one, client = distributed.Client(...), or give client="
                ) from None
        self.client = client

    def check_versions(self) -> None:
        """Raise unless all workers have the scansion that is here."""
        here = _version()
        for worker, there in self.client.run(_version).items():
            if there != here:
                raise RuntimeError(f"the worker {worker} has scansion {there}, here it is {here}: install the same one")

    def _submit(self, function: Callable[..., Any], *arguments: Any) -> Any:
        # the scheduler keeps the arguments: what was lost with a worker is computed again (scattered data are not)
        name = function.__qualname__.replace("_", "").replace(".", "-").lower()
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Sending large graph")
            return self.client.submit(function, *arguments, key=f"scansion-{name}-{uuid.uuid4().hex}", pure=False)

    def share(self, value: Any) -> Any:
        """As in `Workers`."""
        return self._submit(_shared, value)

    def apply(self, function: Callable[..., Any], *columns: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        return [self._submit(function, *row) for row in zip(*columns, strict=True)]

    def fetch(self, handles: Sequence[Any]) -> list[Any]:
        """As in `Workers`."""
        return list(self.client.gather(list(handles)))

    def total(self, handles: Sequence[Any]) -> Any:
        """As in `Workers`: the tree is on the cluster, one sum comes here."""
        return pairwise(handles, lambda one, other: self._submit(added, one, other)).result()


def _version() -> str:
    import scansion

    return str(scansion.__version__)


def _shared(value: Any) -> Any:
    return value


def _parts(name: str, given: Any, client: distributed.Client) -> list[Any]:
    """Futures of the partitions."""
    found = given.to_delayed() if isinstance(given, bag.Bag) else given
    if isinstance(found, (Delayed, distributed.Future)):
        found = [found]
    if not isinstance(found, (list, tuple)) or not all(isinstance(one, (Delayed, distributed.Future)) for one in found):
        raise TypeError(
            f"{name} must be a dask.bag, or a list of delayed objects or futures, each a list of sequences; got "
            f"{type(given).__name__}"
        )
    return [client.compute(one) if isinstance(one, Delayed) else one for one in found]


def _asked(part: Any, estimator: Any, question: str, keywords: dict[str, Any]) -> list[Any]:
    return list(getattr(estimator, question)(list(part), **keywords))


@dataclass(repr=False, eq=False)
class _OnDask(_Base):
    """fit and predict on bags."""

    _: KW_ONLY
    client: Any = parameter(None, "distributed.Client, optional", "The cluster; the current client unless given.")

    def fit(self: Self, X: Any, y: Any, X_dev: Any = None, y_dev: Any = None, *, sample_weight: Any = None) -> Self:
        """Learn the weights.

        Parameters
        ----------
        X : dask.bag of sequences, or list of delayed objects or futures of lists of sequences
            A sequence is as in the class on one machine.
        y : likewise, of the same partitions; or a list of all targets
        X_dev, y_dev : lists, optional
            Development data, scored where `fit` is called.
        sample_weight : (B,), optional

        Notes
        -----
        The algorithm must be "lbfgs". `n_jobs` is the number of threads of a task. y comes to this process once.
        """
        assert isinstance(self, _OnDask)
        if getattr(self, "grow", None) is not None:
            raise ValueError("grow does not go with data in parts: choose the patterns first, then give them")
        workers = DaskWorkers(self.client)
        workers.check_versions()
        X = Partitions(_parts("X", X, workers.client), workers)
        if not isinstance(y, (list, tuple)) or any(isinstance(one, (Delayed, distributed.Future)) for one in y):
            y = Partitions(_parts("y", y, workers.client), workers)
        super().fit(X, y, X_dev, y_dev, sample_weight=sample_weight)
        return self

    def _plain(self) -> Any:
        """The estimator on one machine of the same parameters."""
        kind = next(base for base in type(self).__mro__ if base.__module__.startswith("scansion.models."))
        params = self.get_params()
        del params["client"]
        return kind(**params)

    def local(self) -> Any:
        """The fitted model as the class on one machine has it."""
        estimator = self._plain()
        for name in ("model_", "training_log_", "loss_", "message_", "n_iter_", "n_features_in_", "reading_"):
            setattr(estimator, name, copy.copy(getattr(self, name)))
        return estimator

    def save(self, path: Any, format: Any = "scansion") -> None:
        """Write the model as the class on one machine does: `scansion.load` gives that class."""
        self._model  # noqa: B018  (not fitted)
        self.local().save(path, format)

    def _lazily(self, X: Any, question: str, **keywords: Any) -> Any:
        """A question put to partitions, when they are computed; None: X is no such thing."""
        several = isinstance(X, (list, tuple)) and any(isinstance(one, (Delayed, distributed.Future)) for one in X)
        if not several and not isinstance(X, bag.Bag):
            return None
        self._model  # noqa: B018  (not fitted)
        estimator = dask.delayed(self.local(), pure=False)
        if isinstance(X, bag.Bag):
            return X.map_partitions(_asked, estimator, question, keywords)
        return [dask.delayed(_asked)(part, estimator, question, keywords) for part in X]

    def predict(self, X: Any, constraints: Any = None, rules: Any = None, decode: Any = "viterbi") -> Any:
        """The best configurations: of a bag a bag, of a list of delayed objects or futures a list of delayed.

        Nothing runs before ``compute``. Other X and the other parameters as in the class on one machine; `constraints`
        go with sequences alone.
        """
        lazily = self._lazily(X, "predict", rules=rules, decode=decode)
        _check_constraints(lazily, constraints)
        return super().predict(X, constraints, rules, decode) if lazily is None else lazily

    def predict_marginals(self, X: Any, constraints: Any = None, rules: Any = None) -> Any:
        """Label probabilities; lazily, as in `predict`."""
        lazily = self._lazily(X, "predict_marginals", rules=rules)
        _check_constraints(lazily, constraints)
        marginals: Any = super().predict_marginals  # type: ignore[misc]
        return marginals(X, constraints, rules) if lazily is None else lazily


def _check_constraints(lazily: Any, constraints: Any) -> None:
    if lazily is not None and constraints is not None:
        raise ValueError("constraints go with sequences, not with bags: ask the partitions one by one")


@dataclass(repr=False, eq=False)
class CRF(_OnDask, models.CRF):
    """`scansion.CRF` on a Dask cluster; the parameters are its own, and `client`."""


@dataclass(repr=False, eq=False)
class SemiCRF(_OnDask, models.SemiCRF):
    """`scansion.SemiCRF` on a Dask cluster; the parameters are its own, and `client`."""


@dataclass(repr=False, eq=False)
class HierarchicalCRF(_OnDask, models.HierarchicalCRF):
    """`scansion.HierarchicalCRF` on a Dask cluster; the parameters are its own, and `client`."""
