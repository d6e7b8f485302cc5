"""Ticks of times: a few round moments for any span, and no warning of matplotlib."""

import warnings

import numpy as np
import pandas as pd
import pytest

from tasks.report.date_ticks import date_axis
from tasks.report.style import new_figure

FIRST = pd.Timestamp("2026-03-01 22:13:11")


@pytest.mark.parametrize("most", [4, 7, 8])
def test_any_span_from_seconds_to_decades_has_ticks_but_no_more_than_asked(most):
    for span_s in np.geomspace(2, 1e9, 60):
        axes = new_figure(4, 2).subplots()
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            date_axis(axes, FIRST, FIRST + pd.Timedelta(seconds=span_s), most=most)
        assert 1 <= len(axes.get_xticks()) <= most, span_s


@pytest.mark.parametrize("span_s", [100, 6_000, 150_000, 5.5e7])
def test_spans_that_matplotlib_has_no_interval_for_have_few_ticks_inside(span_s):
    axes = new_figure(4, 2).subplots()
    last = FIRST + pd.Timedelta(seconds=span_s)
    date_axis(axes, FIRST, last, most=4)
    axes.set_xlim(FIRST, last)
    low, high = axes.get_xlim()
    assert all(low <= tick <= high for tick in axes.get_xticks())
    assert axes.get_xlabel().startswith("submitted (UTC)")
