"""Estimators.

`crf` chains, `semicrf` segments: `base` is what these two share, `flat` the features and weights under both;
`hierarchical` segments inside segments, its features and weights in `nested`; `learner` fit and predict of all;
`estimator` scikit-learn's rules; `files` reading models.
"""

from scansion.models.crf import CRF
from scansion.models.hierarchical import HierarchicalCRF
from scansion.models.semicrf import SemiCRF

__all__ = ["CRF", "HierarchicalCRF", "SemiCRF"]
