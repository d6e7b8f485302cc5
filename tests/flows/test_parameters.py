"""How settings fill in what the flows about nodes are asked."""

from importlib import import_module
from pathlib import Path
from typing import Any, get_args

import pytest

from flows.engine.deploying import read_deployments
from flows.engine.forms import filled_in, from_form, resolved_parameters
from flows.nodes import (
    NodeFingerprintParams,
    NodePreprocessParams,
    NodeRankParams,
    NodeTrainParams,
    NodeTuneParams,
    NodeWatchParams,
)
from tasks.choices import NodeReader, ReaderName, TelemetryReader
from tasks.errors import BadSetting
from tasks.nodes.params import FitParams, ModelParams, NodesParams
from tasks.params import Params
from tasks.settings import Settings
from tasks.warehouse.place import Warehouse

CHANGED = {
    "preprocess": {"variant": "paper"}, "score": {"resamples": 123}, "detect": {"headlines": {"spin": ["rate"]}},
    "budget": {"alarms_per_day": 0.1}, "search": {"n_trials": 7}, "alarm": {"flagged": 4},
}  # fmt: skip


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
    [entry] = [entry for entry in read_deployments() if entry.name == name]
    shown = resolved_parameters(settings, entry.load_flow())
    found: Any = filled_in(asked, dict(settings.nodes), source="log", warehouse=settings.warehouse)
    assert from_form(asked, {"source": "log", **shown}) == found
    assert found.source == "log"


def test_what_a_flow_is_given_wins_over_the_settings(tmp_path: Path) -> None:
    other = ModelParams(fit=FitParams(epochs=2))
    known = {"source": "log", "warehouse": Warehouse(home=tmp_path), **dict(NodesParams())}
    found = filled_in(NodeTrainParams, known, model=other, as_in_use=False)
    assert (found.model, found.as_in_use) == (other, False)
    watching = filled_in(NodeWatchParams, known, asks_for_benchmarks=False)
    assert not watching.asks_for_benchmarks


def test_a_source_that_cannot_be_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSetting, match=r"source ' main': not a name that everyone can type"):
        filled_in(NodeTrainParams, dict(NodesParams()), source=" main", warehouse=Warehouse(home=tmp_path))


@pytest.mark.parametrize(
    ("names", "room"), [(ReaderName, "jobs"), (NodeReader, "nodes"), (TelemetryReader, "workloads")]
)
def test_forms_name_every_reader(names: Any, room: str) -> None:
    assert set(get_args(names)) == {"auto", *import_module(f"tasks.{room}.readers").READERS}
