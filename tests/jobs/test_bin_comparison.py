"""Numbers of bins compared: what too few of them hide shows in the score of unseen runs."""

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.bin_comparison import compare_bins
from tasks.jobs.pmf import bins_of
from tasks.jobs.shape_params import BinParams, PosteriorParams, ShapeParams

RATIO = bins_of("ratio", BinParams(n_bins=100))


def test_few_bins_blur_narrow_shapes_and_their_log_score_shows_it(planted):
    values, groups, _ = planted(n_jobs=40, n_runs=100)
    params = ShapeParams(k=2, n_init=2, compared_n_bins=(6, 200))
    order = np.random.default_rng(5).permutation(len(values))
    first, second = (
        compare_bins(x, g, RATIO, params, PosteriorParams(), np.random.default_rng(7))
        for x, g in ((values, groups), (values[order], groups[order]))
    )
    pd.testing.assert_frame_equal(first, second)
    assert first["n_bins"].tolist() == [6, 200]
    assert first["log_score"][1] > first["log_score"][0] + 0.5
    assert first["stability"][1] == 1
    assert first["n_groups"].tolist() == [40, 40]


def test_bins_of_no_run_are_refused_in_one_line():
    with pytest.raises(BadInput, match=r"^jobs: none of 0 has"):
        compare_bins([], [], RATIO, ShapeParams(k=2), PosteriorParams(), np.random.default_rng(0))
