"""A scikit-learn user: tokens as dicts, cross-validation, a grid of parameters with scorers of segments.

.venv/bin/python examples/model_selection.py      (needs scikit-learn)
"""

from __future__ import annotations

import warnings

from sklearn.model_selection import GridSearchCV, cross_val_predict

import scansion as sc
from scansion.demo import attributes, references


def main(most: int = 60) -> None:
    """Fields of bibliographic references, which come with the package."""
    some = references()[:most]
    X = [attributes(one.tokens) for one in some]
    y = [sc.schemes.convert(one.fields, "plain", "iob2", outside=None) for one in some]

    warnings.simplefilter("ignore", sc.ConvergenceWarning)  # 20 iterations are enough to compare
    crf = sc.CRF(max_iterations=20)
    predicted = cross_val_predict(crf, X, y, cv=3)
    print(sc.metrics.segment_scores(y, predicted))

    scoring = {"f1": sc.metrics.scorer("segment_f1"), "tokens": sc.metrics.scorer("accuracy")}
    search = GridSearchCV(crf, {"c2": [0.03, 0.3], "order": [1, 2]}, scoring=scoring, refit="f1", cv=3).fit(X, y)
    print("best:", search.best_params_, f"F1 {search.best_score_:.3f}")

    # the same as segments: a model of whole fields
    fields = [sc.schemes.covered(sc.schemes.segments(tags, "iob2"), len(tags)) for tags in y]
    semi = sc.SemiCRF(attribute_parts={"": ("start", "inside", "end")}, max_iterations=20)
    print("SemiCRF:", repr(sc.metrics.segment_scores(fields, cross_val_predict(semi, X, fields, cv=3))))


if __name__ == "__main__":
    main()
