"""Verdicts on the executions of a source: learn, judge, watch, explain. Keys in, keys and figures out.

What computes is imported where it does, so that what is asked of kept verdicts answers at once."""

import json
import logging
import math
from typing import Any, TypedDict, cast

import pandas as pd

from tasks.errors import NotFound
from tasks.nodes.history import BY_START, benchmarks_of, version_of
from tasks.nodes.node_words import (
    CLEARED_KIND,
    DETECTOR,
    HOW_TO_DATE,
    LEAST_DEVIATION,
    STATES,
    WORD,
    MetricReason,
    no_trained_model,
    reason_of_row,
)
from tasks.nodes.params import SEED, AlarmParams, BudgetParams, DetectorParams, PreprocessParams, ScoreParams
from tasks.nodes.type_tables import FEWEST, HASH_DIGITS
from tasks.quantities import counted
from tasks.warehouse.connection import fetch, writing
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import champion, folder_of, new_card, promote, register, require_champion
from tasks.warehouse.sources import key_of, now, read_row, replace_rows

logger = logging.getLogger(__name__)
JUDGED = f"""
SELECT executions.node, executions.aspect, own.execution_id, executions.started_at, own.probability, own.is_flagged,
    executions.is_contaminated, executions.duration_s
FROM nodes.verdicts AS own JOIN nodes.executions AS executions USING (source, execution_id)
WHERE source = $source ORDER BY {BY_START}
"""
UNDER_ALARM = """
WITH under AS (
    SELECT execution_id, executions.node, states.aspect,
        coalesce(is_flagged, false) AND NOT coalesce(is_stressed, false) AS is_unexplained
    FROM nodes.executions AS executions JOIN nodes.states AS states USING (source, node)
    LEFT JOIN nodes.verdicts AS verdicts USING (source, execution_id)
    WHERE source = $source AND states.state IN ('suspected', 'confirmed')
        AND coalesce(executions.aspect, 'unknown') = states.aspect AND executions.started_at >= states.since
)
SELECT DISTINCT execution_id FROM under
QUALIFY count(*) FILTER (is_unexplained) OVER (PARTITION BY node, aspect) >= $flagged
ORDER BY execution_id
"""  # of alarms that known stress does not explain
OPEN = """
SELECT subject, arg_max(alarm_id, (raised_at, kind = 'confirmed-degradation')) AS alarm_id,
    arg_max(message, (raised_at, kind = 'confirmed-degradation')) AS message, any_value(evidence) AS evidence
FROM ops.alarms WHERE word = 'nodes' AND source = $source
GROUP BY subject HAVING NOT bool_or(kind = $cleared) ORDER BY subject
"""
ALL_HEALTHY = "healthy in each aspect by the last watch: an alarm takes several flagged executions among a few"
REASONS = "SELECT * FROM nodes.verdict_reasons WHERE source = $source ORDER BY execution_id, place"  # the worst first


ANNOUNCED = "SELECT DISTINCT subject FROM ops.alarms WHERE word = 'nodes' AND source = $source"


FEW = f"""
WITH completed AS (
    SELECT node, coalesce(aspect, 'unknown') AS aspect, benchmark, template_hash[1:{HASH_DIGITS}] AS template,
        started_at
    FROM nodes.executions WHERE source = $source AND ($node IS NULL OR node = $node) AND status = 'completed'
        AND NOT coalesce(is_contaminated, false) AND NOT list_contains($left_out, coalesce(aspect, 'unknown'))
),
numbers AS (SELECT count(*) AS n FROM completed GROUP BY node, benchmark, template),
placed AS (
    SELECT started_at IS NULL AS is_open, count(started_at) OVER (PARTITION BY node, aspect) AS n_placed FROM completed
)
SELECT (SELECT count(*) FROM numbers) AS n_pairs, (SELECT count(*) FROM numbers WHERE n < $enough) AS n_few,
    (SELECT count(*) FROM placed WHERE is_open AND n_placed > 0) AS n_left_out,
    (SELECT count(*) FROM placed WHERE is_open AND n_placed = 0) AS n_by_name
"""


class LearnedVerdicts(TypedDict):
    """model_id: of the detector, which is in use now. figures: out of fold, empty where no stress is known.

    n_learned: executions, n_stressed of them known to be. threshold: in logits. alarms_per_day: false ones to be
    expected over the fleet at executions_per_day; None where a precision or a recall chose the threshold. Without known
    times there is no pace: alarms_per_day is then of as many executions as were learned from.
    is_from_before: the same data, parameters and code had made this detector already."""

    model_id: str
    data_version: str
    figures: dict[str, float]
    n_learned: int
    n_stressed: int
    threshold: float
    alarms_per_day: float | None
    executions_per_day: float | None
    is_from_before: bool


class JudgedSource(TypedDict):
    """n_executions: of benchmarks; n_judged: of them with a verdict; n_flagged: of these."""

    model_id: str
    n_executions: int
    n_judged: int
    n_flagged: int


class WatchedNodes(TypedDict):
    """alarms: ids that nobody was told of yet. suspected: those that should run a fresh benchmark: node, aspect, and
    start of the newest execution that counts. excluded: nodes with a confirmed alarm."""

    model_id: str
    n_nodes: int
    alarms: list[str]
    suspected: list[list[str]]
    excluded: list[str]


class VerdictExplanation(TypedDict):
    """answer: a sentence. executions: of a node those that are flagged, the latest first, each with its reasons in
    words (is_together: none of them is unusual by itself). states: of a node, a line an aspect that is not
    healthy, or one for all."""

    what: str
    name: str
    answer: str
    n_executions: int
    n_flagged: int
    states: list[str]
    executions: list[dict[str, Any]]


def learn(
    warehouse: Warehouse,
    source: str,
    preprocess: PreprocessParams,
    detect: DetectorParams,
    budget: BudgetParams,
    alarm: AlarmParams,
    score: ScoreParams,
    run_id: str,
    *,
    again: bool = False,
) -> LearnedVerdicts:
    """Learn a detector from all executions of a source, and use it from now on.

    What a node did while an alarm goes on does not count as calm, or a sickness that lasts would become what is usual;
    unless fewer of its flags than raise an alarm are without known stress: then the stressor raised it.
    The same data, alarms, parameters and code make the same detector once, unless `again` says so. Raises NotFound
    without executions, BadInput where there is too little to learn from."""
    from tasks.nodes.detect.verdicts import learn_verdicts, save_verdict_model

    version = version_of(warehouse, source)
    parts = {"preprocess": preprocess, "detect": detect, "budget": budget, "alarm": alarm}
    params = {name: part.model_dump(mode="json") for name, part in parts.items()}
    under_alarm = fetch(warehouse, UNDER_ALARM, {"source": source, "flagged": alarm.flagged})
    left_out = under_alarm["execution_id"].astype(str).tolist()
    key = key_of(source, version, params, left_out)
    present = champion(warehouse.models, WORD, source, DETECTOR)
    if present is not None and present.parameters.get("key") == key and not again:
        before = cast(LearnedVerdicts, present.parameters["learned"])
        return {**before, "model_id": present.model_id, "is_from_before": True}

    history, _ = benchmarks_of(warehouse, source, score)
    learned = learn_verdicts(history, preprocess, detect, budget, alarm, under_alarm=left_out, seed=SEED)
    fitted = learned.model.budget
    answer = LearnedVerdicts(
        model_id="", data_version=version, figures=learned.figures, n_learned=learned.n_learned,
        n_stressed=learned.n_stressed, threshold=learned.model.threshold,
        alarms_per_day=fitted.alarms_per_day if fitted else None,
        executions_per_day=fitted.executions_per_day if fitted and fitted.is_timed else None, is_from_before=False,
    )  # fmt: skip
    card = new_card(
        word=WORD, source=source, kind=DETECTOR, run_id=run_id, data_version=version, seed=SEED,
        parameters={**params, "key": key, "learned": dict(answer)}, figures=learned.figures, identity=f"{run_id}{key}",
    )  # fmt: skip
    register(warehouse, card, lambda folder: save_verdict_model(learned.model, folder))
    why = f"learned from {learned.n_learned:,} executions, {learned.n_stressed:,} of them known to be stressed"
    promote(warehouse, WORD, card.model_id, why)
    logger.info("learned %s of source %s: %s", card.model_id, source, learned.figures)
    return {**answer, "model_id": card.model_id}


def judge(warehouse: Warehouse, source: str, score: ScoreParams) -> JudgedSource:
    """Verdicts and their reasons for all executions of a source, in place of what was there.

    With the same data, detector and code what stands there is given again. Raises NotFound without a detector."""
    model_id, version = require_detector(warehouse, source), version_of(warehouse, source)
    key = key_of(version, model_id, score.model_dump(mode="json"))
    row = read_row(warehouse, "nodes.judgings", source)
    if row is None or row["key"] != key:
        from tasks.nodes.detect.verdicts import judge_history, load_verdict_model

        model = load_verdict_model(folder_of(warehouse.models, WORD, model_id))
        history, _ = benchmarks_of(warehouse, source, score)
        judged = judge_history(history, model)
        about: dict[str, Any] = {
            "key": key, "data_version": version, "n_executions": len(history.executions),
            "n_judged": int(judged.executions["probability"].notna().sum()),
            "n_flagged": int(judged.executions["is_flagged"].sum()), "threshold": model.threshold,
            "alarms_per_day": model.budget.alarms_per_day if model.budget else None,
            "executions_per_day": model.budget.executions_per_day if model.budget and model.budget.is_timed else None,
            "judged_at": now(),
        }  # fmt: skip
        verdicts = {"verdicts": judged.executions.drop(columns="score"), "verdict_reasons": judged.reasons}
        kept = verdicts | {"judgings": pd.DataFrame([about])}
        replace_rows(warehouse, WORD, {"source": source, "model_id": model_id}, kept)
        row = about
    n_executions, n_judged, n_flagged = (int(row[name]) for name in ("n_executions", "n_judged", "n_flagged"))
    return JudgedSource(model_id=model_id, n_executions=n_executions, n_judged=n_judged, n_flagged=n_flagged)


def watch(warehouse: Warehouse, source: str, alarm: AlarmParams, after: str) -> WatchedNodes:
    """Turn the latest verdicts into states of nodes and alarms; twice raises nothing new.

    after: what the verdicts rest on; a continued run with another looks again."""
    from tasks.nodes.detect.alarms import degradations, time_shares
    from tasks.warehouse.alarms import raise_alarms, unannounced

    row = read_row(warehouse, "nodes.judgings", source)
    if row is None:
        raise NotFound(no_trained_model(source))
    judged = fetch(warehouse, JUDGED, {"source": source})
    reasons = fetch(warehouse, REASONS, {"source": source})
    subjects = fetch(warehouse, ANNOUNCED, {"source": source})["subject"]
    announced, still_open = {str(subject) for subject in subjects}, read_open(warehouse, source)
    model_id = str(row["model_id"])
    watched, raised = degradations(source, judged, reasons, model_id, alarm, announced=announced, still_open=still_open)
    states = watched.states.assign(is_excluded=watched.states["node"].isin(watched.excluded))
    states = states.assign(cost_share=states["node"].map(time_shares(judged)).astype("float64"), watched_at=now())
    replace_rows(warehouse, WORD, {"source": source, "model_id": model_id}, {"states": states})
    with writing(warehouse) as connection:
        new = raise_alarms(connection, raised)
    asking = states[states["asks_for_benchmark"]]
    logger.info("%d open alarms of source %s after %s, %d new", len(raised), source, after, len(new))
    return WatchedNodes(
        model_id=model_id,
        n_nodes=int(states["node"].nunique()),
        alarms=unannounced(warehouse, WORD, source),
        suspected=[[str(cell) for cell in row] for row in asking[["node", "aspect", "last_at"]].to_numpy()],
        excluded=list(watched.excluded),
    )


def explain(warehouse: Warehouse, source: str, what: str, score: ScoreParams) -> VerdictExplanation:
    """Why an execution or a node looks degraded, or does not. Verdicts are made where there are none of these data.

    what: a node of the source, or the id of an execution. Raises NotFound for a name that is neither."""
    judge(warehouse, source, score)
    rows = _named(warehouse, source, what)
    if not len(rows):
        raise NotFound(
            f"source {source!r} has no node and no execution {what!r}; see whorl nodes rank --source {source}"
        )
    is_node = not (rows["execution_id"] == what).any()
    shown = rows[rows["is_flagged"]] if is_node else rows
    reasons = _reasons_of(warehouse, source, shown["execution_id"].tolist())
    executions = []
    for row in shown.iloc[::-1].to_dict("records"):
        row_reasons = reasons.get(str(row["execution_id"]), [])
        described: dict[str, Any] = {name: str(row[name]) for name in ("execution_id", "benchmark")}
        described["started_at"] = None if pd.isna(row["started_at"]) else row["started_at"].isoformat()
        described["probability"] = None if pd.isna(row["probability"]) else float(row["probability"])
        described |= {name: bool(row[name]) for name in ("is_flagged", "by_labels")}
        described |= {"reasons": [reason.words() for reason in row_reasons]}
        executions.append(
            described | {"is_together": all(reason.deviation < LEAST_DEVIATION for reason in row_reasons)}
        )
    return VerdictExplanation(
        what="node" if is_node else "execution",
        name=what,
        answer=_answer(what, rows, is_node, float((read_row(warehouse, "nodes.judgings", source) or {})["threshold"])),
        n_executions=len(rows),
        n_flagged=int(rows["is_flagged"].sum()),
        states=_states_of(warehouse, source, str(rows["node"].iloc[0])) if is_node else [],
        executions=executions,
    )


def cautions(
    warehouse: Warehouse, source: str, alarm: AlarmParams, score: ScoreParams, node: str | None = None
) -> list[str]:
    """Why a source, or one of its nodes, may look healthy and not be, in words: too few executions, or no starts."""
    enough = FEWEST + alarm.last
    named = {"source": source, "node": node, "enough": enough, "left_out": list(score.left_out_aspects)}
    [row] = fetch(warehouse, FEW, named).astype(int).to_dict("records")
    lines = []
    if row["n_few"]:
        short = f"{row['n_few']:,} of {row['n_pairs']:,} series of a node and benchmark hold fewer than {enough}"
        why = f"{FEWEST} to compare with and the {alarm.last} that an alarm looks at"
        lines.append(f"too few executions to tell a degradation: {short}, {why}")
    fates = {"left out": row["n_left_out"], "in the order of their names": row["n_by_name"]}
    if without := [f"{counted(n, 'execution')} {fate}" for fate, n in fates.items() if n]:
        lines.append(f"without a start: {', '.join(without)}; {HOW_TO_DATE}")
    return lines


def require_detector(warehouse: Warehouse, source: str) -> str:
    """The id of the detector in use for a source. Raises NotFound before the first training."""
    return require_champion(warehouse.models, WORD, source, DETECTOR, no_trained_model(source)).model_id


def read_flagged(warehouse: Warehouse, source: str) -> set[str]:
    """The ids of the flagged executions of a source."""
    sql = "SELECT execution_id FROM nodes.verdicts WHERE source = $source AND is_flagged"
    return {str(execution_id) for execution_id in fetch(warehouse, sql, {"source": source})["execution_id"]}


def read_states(warehouse: Warehouse, source: str) -> pd.DataFrame:
    """The states of the nodes of a source, those that need looking at first; is_emulated of each beside it."""
    return fetch(warehouse, STATES, {"source": source})


def _answer(what: str, rows: pd.DataFrame, is_node: bool, threshold: float) -> str:
    """The sentence that answers. threshold: in logits."""
    if is_node:
        n, flagged = len(rows), int(rows["is_flagged"].sum())
        counts = rows.groupby("benchmark")["is_flagged"].agg(["sum", "size"]).sort_values("sum", ascending=False)
        most = [f"{name} {row['sum']} of {row['size']}" for name, row in counts[counts["sum"] > 0].head(3).iterrows()]
        return f"node {what}: {flagged:,} of {n:,} executions flagged" + (f" ({', '.join(most)})" if most else "")
    row = rows.iloc[0]
    if pd.isna(row["probability"]):
        return f"execution {what}: no verdict, the detector did not learn its benchmark"
    verdict = "flagged" if row["is_flagged"] else "not flagged"
    if row["is_cold"]:
        verdict += ", but there was nothing to compare it with: the node was new"
    basis = (
        "by models that know stress of this benchmark" if row["by_labels"] else "by the benchmark's headline metrics"
    )
    limit = 1 / (1 + math.exp(-threshold))
    sure = f"probability {row['probability']:.3f}, flagged above {limit:.3f}"
    return f"execution {what} on {row['node']}: {verdict} ({sure}, {basis})"


def _named(warehouse: Warehouse, source: str, what: str) -> pd.DataFrame:
    """The verdicts on an execution, or on all executions of a node, in time order; of both, the execution counts."""
    sql = f"""
    SELECT executions.node, executions.benchmark, own.execution_id, executions.started_at, own.probability,
        own.is_flagged, own.is_cold, own.by_labels
    FROM nodes.verdicts AS own JOIN nodes.executions AS executions USING (source, execution_id)
    WHERE source = $source AND (own.execution_id = $what OR executions.node = $what)
    ORDER BY {BY_START}
    """
    verdicts = fetch(warehouse, sql, {"source": source, "what": what})
    is_meant = verdicts["execution_id"] == what
    return verdicts[is_meant] if is_meant.any() else verdicts


def _reasons_of(warehouse: Warehouse, source: str, ids: list[str]) -> dict[str, list[MetricReason]]:
    """The reasons of some executions, the most telling first."""
    sql = """
    SELECT * FROM nodes.verdict_reasons WHERE source = $source AND list_contains($ids, execution_id)
    ORDER BY execution_id, place
    """
    by_execution = fetch(warehouse, sql, {"source": source, "ids": ids}).groupby("execution_id", sort=False)
    return {str(name): [reason_of_row(row) for row in rows.to_dict("records")] for name, rows in by_execution}


def _states_of(warehouse: Warehouse, source: str, node: str) -> list[str]:
    """A line for each aspect of a node that is not healthy, as the last watch left it; one line where all are."""
    from tasks.nodes.detect.alarms import when

    sql = """
    SELECT aspect, state, since, since_execution FROM nodes.states
    WHERE source = $source AND node = $node ORDER BY aspect
    """
    states = fetch(warehouse, sql, {"source": source, "node": node})
    shown = states[states["state"] != "healthy"].to_dict("records")
    lines = [f"{row['aspect']}: {row['state']} since {when(row['since'], row['since_execution'])}" for row in shown]
    return lines or ([ALL_HEALTHY] if len(states) else [])


def open_messages(warehouse: Warehouse, source: str) -> dict[str, str]:
    """What was told last of each alarm that goes on, by its id: since when, what it rests on, what clears it."""
    rows = fetch(warehouse, OPEN, {"source": source, "cleared": CLEARED_KIND})
    return dict(zip(rows["alarm_id"].astype(str), rows["message"].astype(str), strict=True))


def read_open(warehouse: Warehouse, source: str) -> dict[str, tuple[str, str]]:
    """Node and aspect, by subject, of the alarms about the nodes of a source that nothing has cleared since."""
    rows = fetch(warehouse, OPEN, {"source": source, "cleared": CLEARED_KIND})
    alarms = zip(rows["subject"], map(json.loads, rows["evidence"]), strict=True)
    return {str(subject): (str(evidence["node"]), str(evidence["aspect"])) for subject, evidence in alarms}
