"""Attributes times weights and back, against dense matrices."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from scansion.models.nested.inputs import Entries, Table


@st.composite
def problems(draw):
    """Entries of some items, a table of features, and both as dense matrices."""
    seed = draw(st.integers(0, 2**32 - 1))
    items, attributes, width = draw(st.integers(0, 9)), draw(st.integers(1, 6)), draw(st.integers(1, 5))
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 4, size=items)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    ids = rng.integers(0, attributes, size=offsets[-1]).astype(np.int32)
    values = rng.normal(size=len(ids)) if draw(st.booleans()) else None
    index = np.flatnonzero(rng.random(attributes * width) < draw(st.sampled_from([0.0, 0.3, 1.0])))
    for array in (offsets, ids, values, index):
        if array is not None:
            array.flags.writeable = False
    dense = np.zeros((items, attributes))
    np.add.at(dense, (np.repeat(np.arange(items), counts), ids), 1.0 if values is None else values)
    return Entries(offsets, ids, values, attributes), Table.of(index, attributes, width), index, dense, rng


@given(problems())
def test_scores_are_products_with_a_matrix_of_weights(problem):
    entries, table, index, dense, rng = problem
    w = rng.normal(size=len(index))
    matrix = np.zeros(dense.shape[1] * table.width)
    matrix[index] = w
    one = entries.scores(table, w, 1)
    assert_allclose(one, dense @ matrix.reshape(-1, table.width), rtol=1e-12, atol=1e-12)
    assert_array_equal(entries.scores(table, w, 3), one)


@given(problems())
def test_counts_are_products_with_the_transposed_matrix(problem):
    entries, table, index, dense, rng = problem
    counts = rng.normal(size=(len(dense), table.width))
    one = entries.counts(table, counts, 1)
    assert_allclose(one, (dense.T @ counts).ravel()[index], rtol=1e-12, atol=1e-12)
    assert_array_equal(entries.counts(table, counts, 3), one)


@given(problems())
def test_entries_of_items_with_columns(problem):
    entries, table, _, dense, rng = problem
    items = rng.integers(0, max(1, len(dense)), size=5 if len(dense) else 0)
    columns = rng.integers(0, table.width, size=len(items))
    number, entry, value = entries.expanded(items, columns, table.width)
    found = np.zeros((len(items), dense.shape[1] * table.width))
    np.add.at(found, (number, entry), value)
    wanted = np.zeros((len(items), dense.shape[1], table.width))
    for i, (item, column) in enumerate(zip(items, columns, strict=True)):
        wanted[i, :, column] = dense[item]
    assert_allclose(found.reshape(wanted.shape), wanted, rtol=1e-12, atol=1e-12)
