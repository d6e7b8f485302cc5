"""Parameters of nodes: what is left to the variant becomes numbers, what cannot be is told, and none needs torch."""

import subprocess
import sys
from pathlib import Path

import pytest
from pydantic import ValidationError

from tasks.nodes.params import ALL, FitParams, InjectionParams, LossParams, ModelParams

OURS, PAPER = ModelParams(), ModelParams(variant="paper")


@pytest.mark.parametrize(
    ("n_graphs", "batch_size", "rate"),
    [
        (1, 16, 0.01),
        (135, 16, 0.01),  # an eighth of them is 16.9
        (512, 64, 0.0158740),  # 0.01 · 4^(1/3)
        (1080, 128, 0.02),  # 0.01 · 8^(1/3)
        (100_000, 128, 0.02),
    ],
)
def test_ours_takes_an_eighth_of_the_graphs_a_step_and_a_rate_that_fits(n_graphs, batch_size, rate):
    found = OURS.settled(n_graphs)
    assert found.fit.batch_size == batch_size and found.fit.learning_rate == pytest.approx(rate, rel=1e-5)
    assert found.loss.mined_per_type == 16 and found.fit.epochs == 48


@pytest.mark.parametrize("n_graphs", [1, 1080, 100_000])
def test_the_papers_has_batches_of_16_its_rate_and_all_triplets(n_graphs):
    found = PAPER.settled(n_graphs)
    assert (found.fit.batch_size, found.fit.learning_rate) == (16, 0.001)
    assert found.loss.mined_per_type == ALL


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_what_is_asked_for_stays_and_nothing_else_is_settled(variant):
    params = ModelParams(variant=variant)
    left = {"fit": {"epochs", "batch_size", "learning_rate"}, "loss": {"mined_per_type"}}
    assert params.settled(1080).model_dump(exclude=left) == params.model_dump(exclude=left)
    fit, loss = FitParams(epochs=7, batch_size=100, learning_rate=0.001), LossParams(mined_per_type=3)
    asked = params.model_copy(update={"fit": fit, "loss": loss})
    assert asked.settled(1080) == asked
    rate = params.model_copy(update={"fit": FitParams(batch_size=128)}).settled(20).fit.learning_rate
    assert rate == pytest.approx(0.02 if variant == "ours" else 0.001)  # in ours it follows the batch that is asked for


def test_the_papers_defaults_are_what_its_search_found_and_its_edges_tell_node_metrics():
    network, loss = PAPER.network, PAPER.loss
    assert (network.heads, network.beta, network.root_weight, network.dropout, network.edge_dropout) == (5, 0, 0, 0, 0)
    assert (loss.focal_gamma, loss.class_balance) == (0.5, 0.999)
    assert (PAPER.epochs, PAPER.fit.weight_decay, PAPER.graph.node_metrics) == (64, 0.001, True)
    assert (PAPER.n_predecessors, OURS.n_predecessors) == (3, 0)


ROOT = Path(__file__).parents[2]


def test_factors_that_cannot_be_are_told():
    with pytest.raises(ValidationError, match=r"least_factor \(2\) must not be more than largest_factor \(1.5\)"):
        InjectionParams(least_factor=2)


@pytest.mark.slow
def test_an_evaluation_that_asks_for_no_variant_needs_no_torch():
    code = (
        "import sys\n"
        "from tasks.nodes.params import EvaluateParams\n"
        "from tasks.nodes.evaluate.protocol import evaluate_history\n"
        "from tests.nodes.synthetic import synthetic_history\n"
        "evaluate_history(synthetic_history(nodes=2, runs=6, types=1), EvaluateParams(resamples=100))\n"
        "print(sorted(set(sys.modules) & {'torch', 'torch_geometric', 'pytorch_lightning'}))\n"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert found.stdout.strip() == "[]"
