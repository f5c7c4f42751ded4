"""The specification: every recursion in plain NumPy, and brute force by enumeration.

Nothing here is fast and nothing here is used to answer a user's question. Each native kernel has a twin in
this package that states what it computes, and the tests demand that the two agree.

========================================  ==========================================================
:mod:`scansion.reference.enumeration`     all configurations of a tiny problem, scored by definition
:mod:`scansion.reference.segment`         forward-backward over the pattern automaton, in log space
:mod:`scansion.reference.ranges`          the same sums over ranges of states that go one way
:mod:`scansion.reference.chain`           forward-backward of a first-order chain, single and batched
:mod:`scansion.reference.sum_difference`  variable-order chains on position-dependent pattern sets
:mod:`scansion.reference.compressed`      trajectories without transition points, on a chain
:mod:`scansion.reference.nested`          inside-outside of segments inside segments, in log space
:mod:`scansion.reference.trees`           all trees of a tiny nested problem, scored by definition
:mod:`scansion.reference.online`          losses and passes of online algorithms over listed configurations
========================================  ==========================================================

Conventions
-----------
Times are ``0 .. T-1``; a segment is a plain tuple ``(start, stop, label)`` with ``stop`` exclusive; all
scores are natural logarithms and ``-inf`` means forbidden. ``L`` is the number of labels, ``M`` the longest
segment, ``P`` the number of patterns. The sentinels ``BOS = -1`` and ``EOS = -2`` may open and close a
pattern.
"""
