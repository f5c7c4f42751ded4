"""Estimators.

`crf` chains, `semicrf` segments; `base` what these two share, `flat` the features and weights under both; `learner` fit
and predict of all; `estimator` scikit-learn's rules; `files` reading models.
"""

from scansion.models.crf import CRF
from scansion.models.semicrf import SemiCRF

__all__ = ["CRF", "SemiCRF"]
