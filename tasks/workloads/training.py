"""Training on a source of the warehouse: learn from labelled runs, measure on those held out, keep the better model."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import fetch, reading
from tasks.warehouse.new_card import new_card
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, promote, register
from tasks.warehouse.versions import data_version
from tasks.workloads.champions import KIND, WORD, champion_of
from tasks.workloads.held_out_figures import METRIC, Figures, accuracy_on, confusion, figures_of
from tasks.workloads.holding_out import HeldOut, hold_out
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import Model, fit_model
from tasks.workloads.identify.params import IdentifyParams
from tasks.workloads.identify.saving import save_model
from tasks.workloads.stored import fetch_runs
from tasks.workloads.telemetry import Telemetry
from tasks.workloads.training_params import TrainParams

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Training:
    """model_id: of the new model; champion_id: of the one in use afterwards; figures: of the held-out runs.

    held_out: the split; confusion: workload, identified_as (UNKNOWN: none), n_runs."""

    model_id: str
    champion_id: str
    data_version: str
    held_out: str
    figures: Figures
    confusion: pd.DataFrame


def train_source(
    warehouse: Warehouse,
    source: str,
    identifying: IdentifyParams,
    params: TrainParams,
    *,
    run_id: str,
    left_out: Sequence[str] = (),
    kind: str = KIND,
) -> Training:
    """Learn the labelled runs of a source, measure on those held out, register, promote if it is the better model.

    Better: more held-out runs identified, the present model being asked about the same ones as far as it has not
    learned them itself. run_id: of the flow run; the same one with the same data and parameters gives the same model.
    left_out: runs that are neither learned nor measured. kind: of the model. Raises NotFound without labelled runs,
    BadInput where nothing can be held out."""
    runs, version = labelled_runs(warehouse, source, left_out)
    parameters = {"identify": identifying.model_dump(mode="json"), "train": params.model_dump(mode="json")}
    with threadpool_limits(1):
        parts = hold_out(runs, params)
        model = fit_model(parts.train, identifying)
        told = identify_all(parts.test, model, with_reasons=False)
    figures = figures_of(parts, told)
    card = new_card(
        word=WORD,
        source=source,
        kind=kind,
        run_id=run_id,
        data_version=version,
        seed=identifying.seed,
        parameters=parameters | {"left_out": sorted(left_out), "held_out": parts.name},
        figures=figures,
        identity=f"{run_id}{parameters}{sorted(left_out)}",
    )
    register(warehouse, card, lambda folder: save_model(model, folder))
    in_use = _promoted(warehouse, card, model, parts)
    logger.info("trained %s of source %s: %s %.3f; in use: %s", card.model_id, source, METRIC, figures[METRIC], in_use)
    return Training(card.model_id, in_use, version, parts.name, figures, confusion(parts.test, told))


def has_own_counters(warehouse: Warehouse, source: str) -> bool:
    """Whether some run of a source has counters of its own control group."""
    found = fetch(
        warehouse,
        "SELECT count(*) AS n FROM workloads.counters WHERE source = $source AND scope = 'workload'",
        {"source": source},
    )
    return bool(found["n"].iloc[0])


def labelled_runs(warehouse: Warehouse, source: str, left_out: Sequence[str] = ()) -> tuple[list[Telemetry], str]:
    """The labelled runs of a source but those left out, and the version of its data.

    Raises NotFound if there are none, BadInput if simulated runs stand among measured ones."""
    refuse_mixture(warehouse, source)
    with reading(warehouse) as connection:
        version = data_version(connection, WORD, source)
    runs = [run for run in fetch_runs(warehouse, source) if run.workload is not None and run.run_id not in left_out]
    if not runs:
        raise NotFound(
            f"source {source!r} has no labelled runs of workloads; ingest some whose files say what ran, or name it "
            "with --label-from stem|parent|column:NAME or --manifest FILE"
        )
    return runs, version


def refuse_mixture(warehouse: Warehouse, source: str) -> None:
    """Raise BadInput if simulated runs stand among measured ones."""
    found = fetch(
        warehouse,
        "SELECT count(*) FILTER (is_simulated) AS drawn, count(*) FILTER (NOT is_simulated) AS measured "
        "FROM workloads.runs WHERE source = $source",
        {"source": source},
    )
    drawn, measured = int(found["drawn"].iloc[0]), int(found["measured"].iloc[0])
    if drawn and measured:
        problem = f"{drawn:,} simulated runs stand among {measured:,} measured ones"
        fix = "ingest the simulated runs under a source of their own"
        raise BadInput(f"source {source!r}", problem, "one kind only, so that no figure mixes them", fix)


def _promoted(warehouse: Warehouse, card: ModelCard, model: Model, parts: HeldOut) -> str:
    """The id of the model in use after the new one was compared with the one before it."""
    new, reason = card.metrics[METRIC], "first of its kind"
    try:
        present = champion_of(warehouse, card.source, card.kind)
    except BadInput as error:  # it says: train again
        present, reason = None, "the model in use before cannot be read"
        logger.warning("%s: %s", reason, error)
    if present is None:
        promote(warehouse, WORD, card.model_id, f"{reason}, {METRIC} {new:.4g}")
        return card.model_id
    old_card, old = present
    if old_card.model_id == card.model_id:
        return card.model_id
    learned = set(old.learned_ids)
    fresh = [run for run in parts.test if run.run_id not in learned]
    score, new_score = accuracy_on(old, fresh), accuracy_on(model, fresh)
    is_newer = card.data_version != old_card.data_version
    if score is not None and new_score is not None and (new_score < score or (new_score == score and not is_newer)):
        logger.info("kept %s: %s %.4g against %.4g of %s", old_card.model_id, METRIC, score, new_score, card.model_id)
        return old_card.model_id
    had = "has learned all of them itself" if score is None else f"had {score:.4g} on the same runs"
    promote(
        warehouse,
        WORD,
        card.model_id,
        f"{METRIC} {new if new_score is None else new_score:.4g}, {old_card.model_id} {had}",
    )
    return card.model_id
