"""What all estimators share: parameters by keyword, and scikit-learn's rules.

scikit-learn is not imported here: its conventions are kept (no logic in ``__init__``, fitted attributes end in ``_``)
and its tags and exceptions are used when it is there already.
"""

from __future__ import annotations

import inspect
import os
import sys
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from scansion.display import Page

__all__ = ["Estimator", "NotFittedError", "not_fitted"]

Self = TypeVar("Self")


class NotFittedError(ValueError, AttributeError):
    """Raised when a question needs a fitted estimator; scikit-learn's class of this name catches it as well."""

    def __reduce__(self) -> tuple[Any, ...]:
        return not_fitted, (str(self),)


def not_fitted(message: str) -> NotFittedError:
    """The error, of a class that is scikit-learn's too if that was imported."""
    theirs = sys.modules.get("sklearn.exceptions")
    if theirs is None:
        return NotFittedError(message)
    both: type[NotFittedError] = type("NotFittedError", (NotFittedError, theirs.NotFittedError), {})
    return both(message)


class Estimator:
    """Parameters by keyword, as scikit-learn's clone, Pipeline and GridSearchCV expect them."""

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls.__init__).parameters if name != "self"]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The parameters given to the constructor."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self: Self, **params: Any) -> Self:
        """Change parameters; returns the estimator."""
        assert isinstance(self, Estimator)
        valid = self._parameter_names()
        for name in params:
            if name not in valid:
                raise ValueError(f"{type(self).__name__} has no parameter {name!r}; it has {', '.join(valid)}")
        for name, value in params.items():
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (
            f"{name}={value!r}" for name, value in self.get_params().items() if not _same(value, defaults[name].default)
        )
        return f"{type(self).__name__}({', '.join(changed)})"

    def report(self, path: str | os.PathLike[str] | None = None, top: int = 20) -> Page:
        """What was learnt, as one self-contained page: the strongest features of each label, transitions, lengths.

        Parameters
        ----------
        path : str or path, optional
            File to write the page to.
        top : int
            Features of each label, for it and against it, to show.

        Returns
        -------
        scansion.display.Page
            Shown by notebooks; ``.save(path)`` writes it, ``.html`` is the document.
        """
        from scansion.display import report

        page = report(self, top)
        if path is not None:
            page.save(path)
        return page

    def _repr_html_(self) -> str | None:
        """A short report for notebooks; nothing before fit, where the plain form serves."""
        return self.report(top=5)._repr_html_() if self.__sklearn_is_fitted__() else None

    def __sklearn_tags__(self) -> Any:
        """Tags for scikit-learn: no estimator type, ragged lists in, targets needed."""
        from sklearn.utils import InputTags, Tags, TargetTags

        return Tags(
            estimator_type=None,
            target_tags=TargetTags(required=True, one_d_labels=False, two_d_labels=False),
            transformer_tags=None,
            classifier_tags=None,
            regressor_tags=None,
            input_tags=InputTags(two_d_array=False, dict=True, string=True),
            non_deterministic=False,
        )

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "model_")


def _same(a: Any, b: Any) -> bool:
    try:
        return bool(a is b or a == b)
    except (ValueError, TypeError):
        return False
