import json

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.nodes.perona.inputs import inputs_of, learn_inputs, load_inputs, save_inputs
from tasks.nodes.perona.params import ModelParams
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.score_params import ScoreParams


@pytest.mark.parametrize("variant", ["ours", "paper"])
def test_what_was_saved_gives_the_same_numbers(small, variant, tmp_path):
    params = ModelParams(variant=variant)
    is_train = np.arange(len(small.executions)) < 30
    scales = learn_inputs(small, is_train, params, PreprocessParams(), ScoreParams(largest_ratio=50.0))
    save_inputs(scales, tmp_path / "model")
    loaded = load_inputs(tmp_path / "model")
    assert loaded.score == scales.score
    assert loaded.node_metrics == scales.node_metrics
    assert loaded.types == scales.types
    one, two = inputs_of(small, scales, params), inputs_of(small, loaded, params)
    for name in ("x", "during", "before", "performance"):
        assert np.array_equal(getattr(one, name), getattr(two, name), equal_nan=True), name


@pytest.mark.parametrize(
    "damage",
    [
        lambda main: main.update(version=99),
        lambda main: main.pop("score"),
        lambda main: main["node_metrics"]["centre"].append(0.0),
        lambda main: main["node_metrics"].update(variant="neither"),
    ],
)
def test_damaged_inputs_are_refused(small, ours, tmp_path, damage):
    everything = np.ones(len(small.executions), dtype=bool)
    save_inputs(learn_inputs(small, everything, ours, PreprocessParams(), ScoreParams()), tmp_path)
    main = json.loads((tmp_path / "inputs.json").read_text())
    damage(main)
    (tmp_path / "inputs.json").write_text(json.dumps(main))
    with pytest.raises(BadInput, match=r"no inputs of a model of nodes.*train again"):
        load_inputs(tmp_path)


def test_missing_inputs_are_refused(tmp_path):
    with pytest.raises(BadInput, match="expected what a training of nodes wrote"):
        load_inputs(tmp_path)
