"""What the flows about Perona's model are asked: shared fields in their order, and how settings fill them in."""

from pathlib import Path

import pytest

from flows.engine.forms import resolved_parameters
from flows.parameters import (
    NodeFingerprintParams,
    NodePreprocessParams,
    NodeRankParams,
    NodeTrainParams,
    NodeTuneParams,
    NodeWatchParams,
    filled_in,
)
from tasks.errors import BadSetting
from tasks.nodes.params import NodesParams
from tasks.nodes.perona.params import FitParams, ModelParams
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse

SHARED = ["train", "preprocess", "score", "warehouse"]
OF_DETECTOR = ["detect", "budget", "alarm"]
CHANGED = {
    "preprocess": {"variant": "paper"},
    "score": {"resamples": 123},
    "detect": {"headlines": {"spin": ["rate"]}},
    "budget": {"alarms_per_day": 0.1},
    "train": {"train_share": 0.5},
    "search": {"n_trials": 7},
    "alarm": {"flagged": 4},
    "model": {"fit": {"epochs": 3}},
}


def test_forms_of_training_and_search_show_their_own_fields_first_and_share_the_rest() -> None:
    assert list(NodeTrainParams.model_fields) == [
        "source", "variant", *OF_DETECTOR, "as_in_use", "trains_again", "model", *SHARED,
    ]  # fmt: skip
    assert list(NodeTuneParams.model_fields) == ["source", "search", "model", *SHARED]


@pytest.mark.parametrize(
    ("name", "asked"),
    [
        ("nodes-preprocess", NodePreprocessParams),
        ("nodes-rank", NodeRankParams),
        ("nodes-train", NodeTrainParams),
        ("nodes-tune", NodeTuneParams),
        ("nodes-fingerprint", NodeFingerprintParams),
        ("nodes-watch", NodeWatchParams),
    ],
)
def test_settings_fill_in_what_a_deployment_of_the_flow_shows(name: str, asked: type[Params], tmp_path: Path) -> None:
    settings = Settings.model_validate({"whorl": {"home": str(tmp_path)}, "nodes": CHANGED})
    shown = resolved_parameters(settings, name, list(asked.model_fields))
    found = filled_in(asked, settings.nodes, settings.warehouse, "log").model_dump(mode="json")
    assert {key: found[key] for key in shown} == shown
    assert found["source"] == "log"


def test_what_a_flow_is_given_wins_over_the_settings(tmp_path: Path) -> None:
    other = ModelParams(fit=FitParams(epochs=2))
    warehouse = Warehouse(home=tmp_path)
    found = filled_in(NodeTrainParams, NodesParams(), warehouse, "log", model=other, as_in_use=False)
    assert (found.model, found.as_in_use) == (other, False)
    watching = filled_in(NodeWatchParams, NodesParams(), warehouse, "log", asks_for_benchmarks=False)
    assert not watching.asks_for_benchmarks


def test_a_source_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"source ' main': not a name that everyone can type"):
        filled_in(NodeTrainParams, NodesParams(), Warehouse(home=tmp_path), " main")
