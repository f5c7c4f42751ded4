"""Estimators.

`crf` chains, `semicrf` segments; `base` their fit and predict; `flat` the features and weights under both; `estimator`
scikit-learn's rules; `files` reading models.
"""

from scansion.models.crf import CRF
from scansion.models.semicrf import SemiCRF

__all__ = ["CRF", "SemiCRF"]
