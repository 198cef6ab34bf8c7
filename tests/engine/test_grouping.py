"""Columns as numpy."""

import warnings

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays

from tailburn.engine.grouping import F64, medians


@given(
    arrays(
        np.float64,
        array_shapes(min_dims=2, max_dims=2, max_side=7),
        elements=st.sampled_from([np.nan, 0.1, 0.2, 0.7, 3.0]),
    )
)
def test_medians_leave_out_what_is_not_known(values: F64) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # numpy's, for rows of nan alone
        expected = np.nanmedian(values, axis=1)
    np.testing.assert_array_equal(medians(values), expected)
