import numpy as np
import pandas as pd
import pytest

from tasks.nodes.evaluate.network_detection import (
    ABLATION_COLUMNS as COLUMNS,
)
from tasks.nodes.evaluate.network_detection import (
    ABLATION_MEASURES as MEASURES,
)
from tasks.nodes.evaluate.network_detection import (
    NONE,
    TERMS,
    Ablation,
    ablate,
    ablation_figures,
    without,
)
from tasks.nodes.evaluate.params import LearnedParams
from tasks.nodes.perona.params import LossParams, ModelParams


def test_every_term_of_the_loss_is_left_out_alone():
    assert TERMS == ("reconstruction", "detection", "clustering", "classification", "ranking", "stressed_ranking")
    for term in TERMS:
        assert without(ModelParams(), term).loss == LossParams(**{term: False})
    assert without(ModelParams(), NONE) == ModelParams()


def test_figures_are_means_over_seeds_or_say_why_not():
    rows = pd.DataFrame(
        [("model", "ranking", seed, *[value] * len(MEASURES)) for seed, value in ((0, 1.0), (1, 3.0))],
        columns=COLUMNS,
    )
    figures = ablation_figures(Ablation(rows, {"model": "", "paper": "nobody is labelled"}))
    assert figures["ablation.ranking.auprc.model"] == 2
    assert figures["ablation.ranking.auprc.model.deviation"] == pytest.approx(np.sqrt(2))
    assert figures["ablation.none.mse_own.paper"] is None
    assert figures["ablation.none.mse_own.paper.reason"] == "nobody is labelled"


def test_unlabelled_executions_have_no_ablation(history, prepare, unlabelled, asked):
    found = ablate(unlabelled(history), prepare, asked(ablation_seeds=1))
    assert found.rows.empty and "is_stressed" in found.reasons["model"]


@pytest.mark.slow
def test_every_term_is_measured(history, prepare, asked):
    params = asked(ablation_seeds=1, epochs=1)
    found = ablate(history, prepare, params)
    assert found.rows["term"].tolist() == [NONE, *TERMS]
    others = found.rows[found.rows["term"] != "detection"]  # without it there are no verdicts to measure
    assert others[list(MEASURES)].notna().all(axis=None)
    figures = ablation_figures(found)
    assert {f"ablation.{term}.{measure}.model" for term in (NONE, *TERMS) for measure in MEASURES} <= set(figures)
    assert isinstance(params.learned, LearnedParams)
