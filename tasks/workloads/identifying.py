"""Runs of the warehouse, of files, or of what runs now, identified by the model in use for a source."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tasks.errors import BadInput
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard
from tasks.workloads.champions import model_in_use
from tasks.workloads.evaluate.items import cut
from tasks.workloads.identification_rows import Which, runs_asked_for, write_identifications
from tasks.workloads.identify.params import TrainParams
from tasks.workloads.stored import fetch_runs
from tasks.workloads.telemetry import Telemetry

if TYPE_CHECKING:
    from tasks.workloads.identify.identification import Identification
    from tasks.workloads.identify.model import Model


@dataclass(frozen=True)
class Identified:
    """model_id: of the model in use. found: what it says, in the order of the runs. refused: of runs that cannot be
    compared with the model."""

    model_id: str
    found: "list[Identification]"
    refused: tuple[BadInput, ...]


def identify_source(warehouse: Warehouse, source: str, run_ids: Sequence[str] | None, which: Which) -> Identified:
    """Identify runs of a source by its model in use, and write workloads.identifications; twice changes nothing.

    run_ids: None or empty for those that `which` says. A run that lacks the counters of the model is listed, and does
    not hold up the others. Raises NotFound without a model or for a run that is not there, BadInput for a broken
    model."""
    card, model = model_in_use(warehouse, source)
    asked = runs_asked_for(warehouse, source, [card.model_id], run_ids, which)
    found = identify_each(fetch_runs(warehouse, source, asked) if asked else [], card, model)
    if found.found:
        write_identifications(warehouse, source, [(card.model_id, one) for one in found.found])
    return found


def identify_runs(warehouse: Warehouse, source: str, runs: Sequence[Telemetry]) -> Identified:
    """Identify runs in memory by the model in use for a source; nothing is kept. Raises NotFound, BadInput."""
    return identify_each(runs, *model_in_use(warehouse, source))


def identify_each(runs: Sequence[Telemetry], card: ModelCard, model: "Model") -> Identified:
    """Identify each run; of a long trace what ran last, in a window as the model learned them."""
    from tasks.workloads.identify.identification import identify_all

    windows = TrainParams.model_validate(card.parameters["train"]).windows
    found, refused = [], []
    for run in runs:
        pieces = cut([run], windows).items
        try:
            [answer] = identify_all([pieces[-1].run if pieces else run], model)
        except BadInput as error:
            refused.append(error)
        else:
            found.append(replace(answer, run_id=run.run_id))
    return Identified(card.model_id, found, tuple(refused))
