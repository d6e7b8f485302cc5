"""A method that cannot be had of a machine type is null with its own reason, and takes no other one with it."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.nodes.evaluate.applications import METHODS, NodeMatrix, compare_by_machine_type, is_second_half, rank_figures
from tasks.nodes.evaluate.params import EvaluateParams
from tasks.nodes.scores import Levels

PARAMS = EvaluateParams(resamples=100)
NODES, TYPES = 200, 6
LEVELS = Levels(tuple(f"type-{at}" for at in range(TYPES)), ("cpu", "disk"), np.arange(TYPES) % 2, np.ones(2))


def drawn(machine_type="m"):
    """Nodes with a hidden quality that six microbenchmarks and three applications follow, with noise of their own."""
    rng = np.random.default_rng(0)
    quality = rng.normal(size=(NODES, 1))
    return NodeMatrix(
        tuple(f"{machine_type}-{at}" for at in range(NODES)),
        np.array([machine_type] * NODES, dtype=object),
        quality + rng.normal(size=(NODES, TYPES)),
        LEVELS,
        quality + 0.5 * rng.normal(size=(NODES, 3)),
        ("get", "set", "scan"),
    )


def seldom_run():
    """A third of the nodes ran each microbenchmark, and each node two of the six."""
    matrix = drawn()
    is_run = np.arange(NODES)[:, None] % 3 == np.arange(TYPES) % 3
    return replace(matrix, micro=np.where(is_run, matrix.micro, np.nan))


def varying_beside_no_application():
    """The three microbenchmarks that all nodes ran are the same on each node where an application ran."""
    matrix, seldom = drawn(), seldom_run().micro
    has_applications = np.arange(NODES)[:, None] % 2 == 0
    common = np.where(has_applications, 0.0, matrix.micro)
    micro = np.where(np.arange(TYPES) < 3, common, seldom)
    return replace(matrix, micro=micro, applications=np.where(has_applications, matrix.applications, np.nan))


def figures_of(*matrices):
    return rank_figures([one for matrix in matrices for one in compare_by_machine_type(matrix, PARAMS)], PARAMS)


UNCHOSEN = "no microbenchmark varies beside an application"


@pytest.mark.parametrize(
    ("matrix", "impossible"),
    [
        (seldom_run(), {"shared": "6 types of", "best_single": UNCHOSEN, "best_oracle": UNCHOSEN}),
        (
            varying_beside_no_application(),
            {"shared": "never both vary", "best_single": UNCHOSEN, "best_oracle": UNCHOSEN},
        ),
    ],
)
def test_a_method_that_is_impossible_says_why_and_the_others_are_told(matrix, impossible):
    figures = figures_of(matrix)
    assert {method for method in METHODS if figures[f"rank.{method}.m"] is None} == set(impossible)
    for method, reason in impossible.items():
        for key in (f"rank.{method}.m", f"rank.{method}", f"rank.{method}.mean"):
            assert figures[key] is None and reason in figures[f"{key}.reason"]
    assert "rank.best_single.m.chosen" not in figures
    assert figures["rank.signed.m"] > 0.2 and figures["rank.almost_nothing.m"] is False
    assert figures["rank.series"] == 3


def test_a_method_that_one_half_of_the_nodes_cannot_teach_is_not_told_by_the_other_half_alone():
    matrix = drawn()
    [possible] = compare_by_machine_type(matrix, PARAMS)
    is_constant = is_second_half(matrix.nodes)[:, None]
    [found] = compare_by_machine_type(replace(matrix, micro=np.where(is_constant, 0.0, matrix.micro)), PARAMS)
    assert "pc1" in found.reasons and "pc1" in set(possible.correlations["method"])
    assert "pc1" not in set(found.correlations["method"])


def test_what_one_machine_type_cannot_have_is_told_of_the_other_alone():
    figures = figures_of(seldom_run(), drawn("n"))
    assert figures["rank.shared"] == figures["rank.shared.mean"] == pytest.approx(figures["rank.shared.n"])
    assert figures["rank.pc1.mean"] == pytest.approx((figures["rank.pc1.m"] + figures["rank.pc1.n"]) / 2)


def test_where_nothing_varies_every_method_says_so():
    figures = figures_of(replace(drawn(), micro=np.ones((NODES, TYPES))))
    for method in (*METHODS, "signed"):
        assert figures[f"rank.{method}.m"] is None
        assert any(
            words in figures[f"rank.{method}.m.reason"] for words in ("never both vary", "none of which", "no mic")
        )
    assert figures["rank.almost_nothing.m"] is None
