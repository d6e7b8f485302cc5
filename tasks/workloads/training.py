"""Training on a source of the warehouse: learn from labelled runs, measure on those held out, then learn those as well,
and keep the better model."""

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped, unused-ignore]

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, new_card, promote, register
from tasks.warehouse.sources import data_version, kinds_of
from tasks.workloads.evaluate.items import Item, Split, Splits, cut, splits_of
from tasks.workloads.evaluate.scores import confusion_of, score_of
from tasks.workloads.identify.identification import Identification, can_answer, identify_all
from tasks.workloads.identify.model import Model, fit_model, save_model
from tasks.workloads.intake import fetch_runs
from tasks.workloads.models import KIND, WORD, TrainedModel, champion_of, write_training
from tasks.workloads.params import EvaluateParams, IdentifyParams, TrainParams
from tasks.workloads.telemetry import Telemetry

METRIC = "held_out.accuracy"
OF_SPLIT = ("held_out", "left_out", "train")  # parameters of a model that say which runs it was measured on
WINDOW = re.compile(r"@[\d.e+-]+s$")  # at the end of the name of a window, after that of its run
UNKNOWN = ""  # in confusions: none of the known workloads
MOST_WINDOWS = 120  # of one long trace, evenly spread: more of the same teaches nothing
EARLIER_SHARE = 0.7  # of each workload's runs, or of a long trace, that is learned from where time decides
Figures = dict[str, Any]
logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class LabelledSplit:
    """Runs, or windows of long traces, to learn from and to be measured on. name: of the split, such as `round 5`.

    items: all of them, also windows across the border, which are on neither side; tested: those of test."""

    items: list[Item]
    train: list[Telemetry]
    tested: list[Item]
    name: str

    @property
    def runs(self) -> list[Telemetry]:
        """Of all items."""
        return [item.run for item in self.items]

    @property
    def test(self) -> list[Telemetry]:
        """The runs to be measured on."""
        return [item.run for item in self.tested]


def train_source(
    warehouse: Warehouse,
    source: str,
    identifying: IdentifyParams,
    params: TrainParams,
    *,
    run_id: str,
    left_out: Sequence[str] = (),
) -> TrainedModel:
    """Measure on runs held out what the others teach, learn all, register, promote if it is the better model; write
    figures and confusion.

    What is kept has learned the held-out runs as well: of few labelled runs each counts. Better: more held-out runs
    identified, before they were learned; of other data the present model is asked about those that are new to it.
    run_id: of the flow run; the same one with the same data and parameters gives the same model.
    left_out: runs that are neither learned nor measured. Raises NotFound without labelled runs,
    BadInput where nothing can be held out."""
    runs, version = labelled_runs(warehouse, source, left_out)
    parameters = {"identify": identifying.model_dump(mode="json"), "train": params.model_dump(mode="json")}
    with threadpool_limits(1):
        parts = hold_out(runs, params)
        measured = fit_model(parts.train, identifying)
        answers = identify_all(parts.test, measured, with_reasons=False)
        model = fit_model(parts.runs, identifying)
    figures = figures_of(parts, answers)
    card = new_card(
        word=WORD,
        source=source,
        kind=KIND,
        run_id=run_id,
        data_version=version,
        seed=identifying.seed,
        parameters=parameters | {"left_out": sorted(left_out), "held_out": parts.name},
        figures=figures,
        identity=f"{run_id}{parameters}{sorted(left_out)}",
    )
    register(warehouse, card, lambda folder: save_model(model, folder))
    in_use = _promoted(warehouse, card, measured, parts, model.learned_ids)
    logger.info("trained %s of source %s: %s %.3f; in use: %s", card.model_id, source, METRIC, figures[METRIC], in_use)
    write_training(warehouse, source, card.model_id, figures, confusion(parts.test, answers))
    return TrainedModel(
        model_id=card.model_id,
        champion_id=in_use,
        data_version=version,
        accuracy=figures[METRIC],
        held_out=parts.name,
    )


def labelled_runs(warehouse: Warehouse, source: str, left_out: Sequence[str] = ()) -> tuple[list[Telemetry], str]:
    """The labelled runs of a source but those left out, and the version of its data.

    Raises NotFound if there are none, BadInput if simulated runs stand among measured ones."""
    with reading(warehouse) as connection:
        kinds_of(connection, "workloads.runs", source)
        version = data_version(connection, WORD, source)
    runs = [run for run in fetch_runs(warehouse, source) if run.workload is not None and run.run_id not in left_out]
    if not runs:
        raise NotFound(
            f"source {source!r} has no labelled runs of workloads; ingest some whose files say what ran, or name it "
            "with --label-from stem|name|parent|column:NAME or --manifest FILE"
        )
    return runs, version


def _promoted(
    warehouse: Warehouse, card: ModelCard, measured: Model, parts: LabelledSplit, learned_ids: Sequence[str]
) -> str:
    """The id of the model in use after the new one was compared with the one before it.

    measured: what the new one was before it learned the held-out runs; learned_ids: what it has learned in the end."""
    new, reason = card.metrics[METRIC], "first of its kind"
    try:
        present = champion_of(warehouse, card.source)
    except BadInput as error:  # it says: train again
        present, reason = None, "the model in use before cannot be read"
        logger.warning("%s: %s", reason, error)
    if present is None:
        promote(warehouse, WORD, card.model_id, f"{reason}, {METRIC} {new:.4g}")
        return card.model_id
    old_card, old = present
    if old_card.model_id == card.model_id:
        return card.model_id
    is_same = card.data_version == old_card.data_version
    is_cut_alike = card.parameters["train"]["windows"] == old_card.parameters.get("train", {}).get("windows")

    def name(run_id: str) -> str:
        """What tells whether a run, or a window, was learned: of windows that are cut otherwise the whole run."""
        return run_id if is_cut_alike else WINDOW.sub("", run_id)

    learned = set(map(name, old.learned_ids))
    score: float | None
    new_score: float | None
    if is_same and all(card.parameters[key] == old_card.parameters.get(key) for key in OF_SPLIT):
        score, new_score = old_card.metrics.get(METRIC), new
    else:
        fresh = [run for run in parts.test if name(run.run_id) not in learned]
        score, new_score = accuracy_on(old, fresh), accuracy_on(measured, fresh)
    knows_no_more = is_same and len(set(map(name, learned_ids))) <= len(learned)
    if score is not None and new_score is not None and (new_score < score or (new_score == score and knows_no_more)):
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


def hold_out(runs: Sequence[Telemetry], params: TrainParams) -> LabelledSplit:
    """Split labelled runs; long traces are cut into windows first.

    Raises BadInput where nothing can be held out: then nobody could say how good a model is."""
    items = thinned(cut(runs, params.windows).items, MOST_WINDOWS)
    split, reasons = _split(items, params)
    if split is None:
        labels = sorted({str(run.workload) for run in runs})
        is_each_its_own = 1 < len(labels) == len(runs)
        raise BadInput(
            f"{len(runs)} labelled runs",
            f"none can be held out: {'; '.join(reasons)}",
            "two rounds, or runs of each workload that say when they started",
            f"where {labels[0]!r} and {labels[1]!r} are one workload, ingest them again with --label-from name, which "
            "leaves out a number at the end, with parent, for folders of that name, or with --manifest"
            if is_each_its_own
            else "record or ingest more runs, or choose another train.hold_out",
        )
    return LabelledSplit(items, [items[at].run for at in split.train], [items[at] for at in split.test], split.name)


def thinned(items: Sequence[Item], most: int) -> list[Item]:
    """At most so many windows of each trace, evenly spread over it; whole runs stay."""
    windows: dict[str, list[int]] = {}
    for at, item in enumerate(items):
        if item.is_window:
            windows.setdefault(item.trace, []).append(at)
    left_out: set[int] = set()
    for places in windows.values():
        if len(places) > most:
            left_out |= set(places) - {places[place] for place in np.linspace(0, len(places) - 1, most).astype(int)}
    return [item for at, item in enumerate(items) if at not in left_out]


def _split(items: Sequence[Item], params: TrainParams) -> tuple[Split | None, list[str]]:
    protocol = EvaluateParams()
    has_windows = any(item.is_window for item in items)
    reasons = []
    if params.hold_out != "time" and not (has_windows and params.hold_out == "auto"):
        by_round = splits_of(items, "by_round", protocol)
        if last := _usable(by_round):
            return last, []
        reasons.append(by_round.reason or "the last round holds no run of a workload that another round has")
    if params.hold_out != "round":
        by_time = splits_of(items, "by_time", protocol, earlier_share=EARLIER_SHARE)
        if last := _usable(by_time):
            return last, []
        reasons.append(by_time.reason)
    return None, reasons


def _usable(splits: Splits) -> Split | None:
    """The last split, if it has something on both sides."""
    last = splits.splits[-1] if splits.splits else None
    return last if last and len(last.train) and len(last.test) else None


def figures_of(parts: LabelledSplit, answers: Sequence[Identification]) -> Figures:
    """What identifying the held-out runs was worth; a run that is called unknown is not identified.

    Workloads that only the held-out part has are not among them: they were to be called unknown."""
    classes = {str(run.workload) for run in parts.train}
    pairs = [(str(run.workload), answer) for run, answer in zip(parts.test, answers, strict=True)]
    ours = [(workload, answer) for workload, answer in pairs if workload in classes]
    if not ours:
        raise BadInput(parts.name, "no run of a workload that was learned", "runs of the same workloads", "record more")
    score = score_of([workload for workload, _ in ours], [called(answer) for _, answer in ours])
    new = [answer for workload, answer in pairs if workload not in classes]
    return {
        METRIC: score.accuracy,
        "held_out.macro_f1": score.macro_f1,
        "held_out.false_unknown": sum(not answer.is_known for _, answer in ours) / len(ours),
        "held_out.nearest_accuracy": sum(answer.nearest[0].workload == name for name, answer in ours) / len(ours),
        "held_out.confidence": sum(answer.confidence for _, answer in ours) / len(ours),
        "held_out.n": len(ours),
        "held_out.n_windows": sum(item.is_window and item.workload in classes for item in parts.tested),
        "held_out.n_new": len(new),
        "held_out.n_new_unknown": sum(not answer.is_known for answer in new),
        "trained.n": len(parts.runs),
        "trained.n_windows": sum(item.is_window for item in parts.items),
        "trained.classes": len({run.workload for run in parts.runs}),
    }


def confusion(runs: Sequence[Telemetry], answers: Sequence[Identification]) -> pd.DataFrame:
    """How often each workload was taken for which: workload, identified_as, n_runs."""
    counted = confusion_of([str(run.workload) for run in runs], [called(answer) for answer in answers])
    return counted.rename(columns={"actual": "workload", "predicted": "identified_as", "n": "n_runs"})


def called(answer: Identification) -> str:
    """What a run was taken for; UNKNOWN if for none of the known workloads."""
    return answer.workload if answer.is_known and answer.workload is not None else UNKNOWN


def accuracy_on(model: Model, runs: Sequence[Telemetry]) -> float | None:
    """Share of the runs that a model identifies; None without a run. One that lacks its counters is not identified."""
    able = [run for run in runs if can_answer(model, run)]
    answers = identify_all(able, model, with_reasons=False)
    n_right = sum(called(answer) == run.workload for run, answer in zip(able, answers, strict=True))
    return n_right / len(runs) if runs else None
