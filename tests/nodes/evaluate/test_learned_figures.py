"""Means, deviations and intervals over fits, by hand; every key that is asked for is there, or says why not."""

import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.measures import FIT_COLUMNS, WITHOUT_ONE_HOT, LearnedResults, learned_figures, put_seeds
from tasks.nodes.evaluate.measures import FIT_MEASURES as MEASURES


def fits_of(*rows):
    return pd.DataFrame([dict(zip(FIT_COLUMNS, [*row, *[np.nan] * 20], strict=False)) for row in rows])


def test_the_interval_of_three_fits():
    """1, 2, 3: mean 2, deviation 1; Student's t of two degrees at 97.5 % is 4.30265: 2 ± 4.30265 / √3."""
    figures = {}
    put_seeds(figures, "a", [1.0, None, 2.0, np.nan, 3.0])
    assert figures["a"] == 2 and figures["a.deviation"] == 1
    assert figures["a.low"] == pytest.approx(2 - 2.484138, abs=1e-6)
    assert figures["a.high"] == pytest.approx(2 + 2.484138, abs=1e-6)


def test_one_fit_has_no_interval_and_none_has_a_reason():
    figures = {}
    put_seeds(figures, "one", [0.5])
    put_seeds(figures, "none", [], "nobody knows")
    assert figures == {"one": 0.5, "none": None, "none.reason": "nobody knows"}


def test_the_splits_of_a_round_count_once():
    """Round 0 has 1 and 3, round 1 has 4: the mean of 2 and 4 is 3."""
    fits = fits_of(*[("left_node", number, name, "model", 0) for number, name in ((0, "a"), (0, "b"), (1, "a"))])
    found = LearnedResults(pd.DataFrame(), fits.assign(mse_own=[1.0, 3.0, 4.0]), {("left_node", "model"): ""})
    figures = learned_figures(found)
    assert figures["reconstruction.mse.own.model.left_node"] == 3
    assert figures["reconstruction.mse.model.left_node"] is None
    assert figures["fit.rounds.model.left_node"] == 2


def test_every_measure_of_every_variant_and_protocol_has_a_key():
    reasons = {(protocol, name): "no label" for protocol in ("chronological", "paper") for name in ("model", "paper")}
    figures = learned_figures(LearnedResults(pd.DataFrame(), pd.DataFrame(columns=FIT_COLUMNS), reasons))
    for template in MEASURES.values():
        for name in ("model", "paper"):
            for suffix in ("", ".paper"):
                assert figures[template.format(name=name) + suffix] is None
                assert figures[template.format(name=name) + suffix + ".reason"] == "no label"
    assert figures["type.accuracy_without_one_hot.paper.reason"] == "no label"
    assert figures["fit.rounds.paper"] is None and figures["fit.rounds.paper.reason"] == "no label"


def test_the_fit_without_the_type_is_one_of_several():
    fits = fits_of(("chronological", 0, "all", "paper", 0), ("chronological", 1, "all", "paper", 1))
    fits = fits.assign(type_accuracy=[1.0, 1.0], **{WITHOUT_ONE_HOT: [0.75, np.nan]})
    figures = learned_figures(LearnedResults(pd.DataFrame(), fits, {("chronological", "paper"): ""}))
    assert figures["type.accuracy.paper"] == 1 and figures["type.accuracy_without_one_hot.paper"] == 0.75
