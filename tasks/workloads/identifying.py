"""Runs of the warehouse, of files, or of what runs now, identified by the model in use for a source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard
from tasks.workloads.champions import models_in_use
from tasks.workloads.evaluate.params import WindowParams
from tasks.workloads.evaluate.windows import cut
from tasks.workloads.identification_rows import Which, runs_asked_for, write_identifications
from tasks.workloads.stored import fetch_runs
from tasks.workloads.telemetry import Telemetry
from tasks.workloads.training_params import TrainParams

if TYPE_CHECKING:
    from tasks.workloads.identify.identification import Identification
    from tasks.workloads.identify.model import Model


@dataclass(frozen=True)
class Identified:
    """model_id: of the model in use. found: id of the model that says so, and what it says, in the order of the runs.

    refused: of runs that cannot be compared with the model."""

    model_id: str
    found: "list[tuple[str, Identification]]"
    refused: tuple[BadInput, ...]


def identify_source(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None, which: Which) -> Identified:
    """Identify runs of a source by its model in use, and write workloads.identifications; twice changes nothing.

    run_ids: None or empty for those that `which` says. A run that lacks the counters of the model is listed, and does
    not hold up the others. Raises NotFound without a model or for a run that is not there, BadInput for a broken
    model."""
    models = models_in_use(warehouse, source)
    asked = runs_asked_for(warehouse, source, [card.model_id for card, _ in models], run_ids, which)
    found = identify_each(fetch_runs(warehouse, source, asked) if asked else [], models)
    if found.found:
        write_identifications(warehouse, source, found.found)
    return found


def identify_runs(warehouse: Warehouse, source: str, runs: Sequence[Telemetry]) -> Identified:
    """Identify runs in memory by the model in use for a source; nothing is kept. Raises NotFound, BadInput."""
    return identify_each(runs, models_in_use(warehouse, source))


def identify_each(runs: Sequence[Telemetry], models: "Sequence[tuple[ModelCard, Model]]") -> Identified:
    """Identify each run by the first of the models whose counters it has; of a long trace what ran last, in a window
    as that model learned them."""
    from tasks.workloads.identify.identification import identify_all

    first = models[0][0].model_id
    waiting: dict[str, list[Telemetry]] = {card.model_id: [] for card, _ in models}
    refused = []
    for run in runs:
        try:
            waiting[_first_able(run, models)].append(run)
        except BadInput as error:
            refused.append(error)
    said: dict[str, tuple[str, Identification]] = {}
    for card, model in models:
        own = waiting[card.model_id]
        windows = TrainParams.model_validate(card.parameters["train"]).windows
        told = identify_all([_last_window(run, windows) for run in own], model)
        said |= {
            run.run_id: (card.model_id, replace(one, run_id=run.run_id)) for run, one in zip(own, told, strict=True)
        }
    return Identified(first, [said[run.run_id] for run in runs if run.run_id in said], tuple(refused))


def _first_able(run: Telemetry, models: "Sequence[tuple[ModelCard, Model]]") -> str:
    """The id of the first model whose counters the run has. Raises the BadInput of the first if there is none."""
    from tasks.workloads.identify.counters import comparable

    problem: BadInput | None = None
    for card, model in models:
        try:
            comparable(run, model.maker.counters, model.params.fingerprint.least_common)
        except BadInput as error:
            problem = problem or error
            continue
        return card.model_id
    raise problem or BadInput(f"run {run.run_id}", "no model", "a model in use", "train one")


def _last_window(run: Telemetry, windows: WindowParams) -> Telemetry:
    """What ran last in a long trace; a short run is itself."""
    pieces = cut([run], windows).items
    return pieces[-1].run if pieces else run
