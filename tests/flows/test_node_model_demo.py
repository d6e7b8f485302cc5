"""The model of the demo: trained in seconds, by few and large steps of the same network."""

import pytest

from flows.node_model_demo import MOST_EPOCHS, quick
from tasks.nodes.perona.params import FitParams, LossParams, ModelParams


def test_a_quick_training_takes_fewer_and_larger_steps_of_the_same_network() -> None:
    model = ModelParams(fit=FitParams(batch_size=16, learning_rate=0.01))
    found = quick(model)
    assert found.fit.epochs == MOST_EPOCHS <= model.fit.epochs_in("ours")
    settled = found.settled(1080)
    assert (settled.fit.batch_size, settled.loss.mined_per_type) == (128, 16)
    assert settled.fit.learning_rate == pytest.approx(0.02)
    assert (found.network, found.variant) == (model.network, model.variant)
    assert found.graph == model.graph and not found.graph.node_metrics
    assert found.loss == model.loss
    assert quick(ModelParams(fit=FitParams(epochs=2))).fit.epochs == 2


def test_the_steps_of_the_settings_make_no_other_training_of_the_demo_but_their_seed_does() -> None:
    """A training is known again by its parameters: steps that the demo sets itself must not make it train anew."""
    other_steps = FitParams(epochs=50, batch_size=7, learning_rate=0.5)
    assert quick(ModelParams(fit=other_steps, loss=LossParams(mined_per_type=3))) == quick(ModelParams())
    assert quick(ModelParams(fit=FitParams(seed=1))) != quick(ModelParams())
