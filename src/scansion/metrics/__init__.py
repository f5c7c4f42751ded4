"""Scores of predicted label sequences, segments and trajectories.

Conventions
-----------
- `y_true` and `y_pred` are lists of sequences in the same order. A sequence is a list of labels, one per
  token; the segment scores also take lists of ``(start, stop, label)``.
- tp, fp, fn count true positives, false positives and false negatives::

      precision = tp / (tp + fp)    recall = tp / (tp + fn)
      F_beta = (1 + beta^2) tp / ((1 + beta^2) tp + beta^2 fn + fp)

  (van Rijsbergen 1979, Information Retrieval, chapter 7).
- Scores lie in [0, 1], those of trajectories in [0, 100] as in their paper. Without any sequence or token,
  accuracies and trajectory scores are 0.
"""

from __future__ import annotations

from scansion.metrics.actions import (
    ActionScores,
    action_scores,
    boundary_f1_score,
    overlap_scores,
    relaxed_accuracy_score,
)
from scansion.metrics.scorers import Scorer, scorer
from scansion.metrics.segments import Score, SegmentScores, conlleval, segment_scores
from scansion.metrics.significance import RandomizationTest, randomization_test
from scansion.metrics.tokens import (
    flat_accuracy_score,
    flat_classification_report,
    flat_f1_score,
    flat_fbeta_score,
    flat_precision_score,
    flat_recall_score,
    sequence_accuracy_score,
)
from scansion.metrics.trajectories import compress, edit_distance, edit_distance_score, exact_match_score

# fmt: off
__all__ = [
    "ActionScores", "RandomizationTest", "Score", "Scorer", "SegmentScores", "action_scores", "boundary_f1_score",
    "compress", "conlleval", "edit_distance", "edit_distance_score", "exact_match_score", "flat_accuracy_score",
    "flat_classification_report", "flat_f1_score", "flat_fbeta_score", "flat_precision_score", "flat_recall_score",
    "overlap_scores", "randomization_test", "relaxed_accuracy_score", "scorer", "segment_scores",
    "sequence_accuracy_score",
]
# fmt: on
