"""Degradation where nobody knows of any: results of nodes that ran long are spoiled from a drawn time on.

Nothing before that time and nothing of other nodes is touched, so that what is told there is a false alarm. Only what
is tested is ever spoiled: training and validation stay as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from tasks.errors import report_progress
from tasks.nodes.detect.alarms import watch_nodes
from tasks.nodes.detect.plain import OUT_OF_FOLD, WITHOUT_LABELS, DetectionCase, Detector
from tasks.nodes.evaluate import alarms
from tasks.nodes.evaluate.detection import Split, case_of, choose_threshold, labels_reason, split_by_time
from tasks.nodes.evaluate.measures import put_seeds
from tasks.nodes.history import History
from tasks.nodes.params import AlarmParams, EvaluateParams, InjectionParams, Kind
from tasks.nodes.type_tables import (
    APPLICATION,
    Bools,
    Floats,
    Ints,
    NodeTables,
    group_medians,
    hours_of,
    is_unstressed,
    robust_deviation,
    type_names,
)
from tasks.report.evaluation import Figures, put

EARLIEST, LATEST = 0.2, 0.6  # where among a node's tested executions the spoiled ones begin
TRAIN, SEEN = 0.4, 0.5  # shares of each node and type: learned from, and with those that choose thresholds
ALTERED_NODES, ALTERED = 0.5, 0.5  # shares: of the nodes, and of their later executions, that are spoiled
MOST_EXECUTIONS = 100_000  # that are judged
CUT = 5.0  # deviations of one metric
TYPES = 9  # stream of the seed: which benchmark types are judged
MONTH_H = 730.5
CALM = "unaltered"
WORSE = "replaced_worse"  # of what is replaced, results that are worse than the level of the node
MEASURES = (
    "recall",
    "auprc",
    "false_alarms_before_per_1000",
    "false_alarms_other_per_1000",
    "delay_executions",
    "delay_hours",
    "missed",
    "alarm_delay_executions",
    "alarm_delay_hours",
    "alarm_missed",
)
CALM_MEASURES = ("false_alarms_per_1000", "alarms", "alarms_per_node_month")
ONE_MACHINE_TYPE = "all long-lived nodes are of one machine type; results of another are needed"
FEW_NODES = "{0} nodes ran a benchmark {1} times or more; at least two are needed"
LABELLED = "some executions are known to be stressed: see detect"
NONE_FLAGGED = "no spoiled node was told, or nothing was spoiled"


def inject(history: History, detectors: Mapping[str, Detector], params: EvaluateParams) -> tuple[Figures, pd.DataFrame]:
    """Spoil results of long-lived nodes, and let the detectors that need no labels find them.

    Every detector learns once, from a first share of each node's executions that is never spoiled, and has its
    threshold from the share after that, where it flags one in a hundred. Applications are left out; of more
    than MOST_EXECUTIONS whole benchmark types are drawn. Whether budgets of false alarms are held is counted
    on the history as it is.

    Returns the figures, means over repeats, and what they are of: one row a repeat, kind and detector; kind `unaltered`
    is the history as it is."""
    injection = params.injection
    judges = {name: detector for name, detector in detectors.items() if name not in OUT_OF_FOLD}
    if not labels_reason(history.executions):
        return _figures(pd.DataFrame(), list(judges), params, LABELLED) | {"inject.nodes": 0}, pd.DataFrame()
    micro = history.where((history.executions["aspect"] != APPLICATION).to_numpy(dtype=bool))
    nodes = long_lived(micro, injection)
    figures: Figures = {"inject.nodes": len(nodes)}
    if len(nodes) < 2:
        reason = FEW_NODES.format(len(nodes), injection.least_runs)
        return figures | _figures(pd.DataFrame(), list(judges), params, reason), pd.DataFrame()
    used = micro.where(micro.executions["node"].astype(str).isin(nodes).to_numpy(dtype=bool))
    used = used.where(types_drawn(used.executions, MOST_EXECUTIONS, np.random.default_rng([params.seed, TYPES])))
    split = split_by_time(used.executions, TRAIN, SEEN)
    case = case_of(used, split, params)
    scores = {name: judge(case) for name, judge in judges.items()}
    tested = used.executions[split.is_test]
    rows: list[dict[str, Any]] = []
    for name, every in scores.items():
        flags = every[split.is_test] > _threshold_of(every, split)
        measured = calm_measures(tested, every[split.is_test], flags, injection.alarm)
        rows.append({"repeat": 0, "kind": CALM, "detector": name, **measured})
    rows += _repeated(case, split, judges, params)
    put(figures, "inject.types", type_names(used.executions).nunique())
    put(figures, "inject.executions", len(used.executions))
    put(figures, "inject.node_months", node_months(tested))
    figures |= _figures(pd.DataFrame(rows), list(judges), params, "")
    if WITHOUT_LABELS in scores:
        figures |= _budgets(used, split, scores[WITHOUT_LABELS], params)
    return figures, pd.DataFrame(rows)


def _figures(rows: pd.DataFrame, names: list[str], params: EvaluateParams, reason: str) -> Figures:
    """Means over repeats, with deviation and interval; null with a reason where nothing could be measured."""
    figures: Figures = {}
    for count in ("types", "executions", "node_months") if reason else ():
        put(figures, f"inject.{count}", None, reason)
    kinds = [*params.injection.kinds, *([WORSE] if "replaced" in params.injection.kinds else [])]
    table = rows.reindex(columns=["kind", "detector", *CALM_MEASURES, *MEASURES])
    for name in names:
        for kind in (CALM, *kinds):
            matching = table[(table["kind"] == kind) & (table["detector"] == name)]
            why_none = ONE_MACHINE_TYPE if kind in ("replaced", WORSE) and matching.empty else NONE_FLAGGED
            for measure in CALM_MEASURES if kind == CALM else MEASURES:
                put_seeds(figures, f"inject.{kind}.{measure}.{name}", matching[measure].tolist(), reason or why_none)
    return figures


def _budgets(history: History, split: Split, scores: Floats, params: EvaluateParams) -> Figures:
    """Whether budgets are held on unaltered executions, by ours without labels."""
    executions, about = history.executions, {"protocol": CALM, "round": 0, "detector": WITHOUT_LABELS}
    learned = (split.is_train | split.is_validation) & is_unstressed(executions).to_numpy(dtype=bool)
    thresholds = [{**about, **row} for row in alarms.thresholds_by_budget(executions, scores, learned, params)]
    tested = np.flatnonzero(split.is_test & ~np.isnan(scores))
    judged = pd.DataFrame({**about, "execution": tested, "score": scores[tested]})
    return alarms.budget_figures(executions, judged, pd.DataFrame(thresholds, columns=alarms.COLUMNS), params)


def _repeated(
    case: DetectionCase, split: Split, judges: Mapping[str, Detector], params: EvaluateParams
) -> Iterator[dict[str, Any]]:
    """The rows of every repeat and kind. A kind that is not possible here has none."""
    injection = params.injection
    for number, kind in enumerate(injection.kinds):
        for repeat in range(injection.repeats):
            report_progress(f"degradation injected, {kind}", repeat, injection.repeats)
            rng = np.random.default_rng([params.seed, number, repeat])
            try:
                spoiled, is_spoiled = spoil(case.history, case.tables, split.is_test, kind, injection, rng)
            except ValueError:
                break
            other = case_of(spoiled, split, params)
            parts: dict[str, Bools] = {kind: split.is_test}
            if kind == "replaced":
                parts[WORSE] = split.is_test & (~is_spoiled | is_worse_than_level(other))
            n_nodes = spoiled.executions.loc[is_spoiled, "node"].nunique()
            for name, judge in judges.items():
                scores = judge(other)
                flags = scores > _threshold_of(scores, split)
                for part, is_in in parts.items():
                    measures = spoiled_measures(
                        spoiled.executions[is_in], scores[is_in], flags[is_in], is_spoiled[is_in], injection.alarm
                    )
                    about = {"repeat": repeat, "kind": part, "detector": name, "n_nodes": n_nodes}
                    yield {**about, "n_spoiled": int(is_spoiled[is_in].sum()), **measures}


def _threshold_of(scores: Floats, split: Split) -> float:
    """What one in a hundred of the validation executions exceeds."""
    validation = scores[split.is_validation & ~np.isnan(scores)]
    return choose_threshold(validation, np.zeros(len(validation), dtype=bool))


def long_lived(history: History, params: InjectionParams) -> list[str]:
    """The nodes that ran a benchmark often enough; of more than max_nodes, those with most executions. By name."""
    keys = pd.DataFrame({"node": history.executions["node"].astype(str), "type": type_names(history.executions)})
    runs = keys.groupby(["node", "type"]).size().groupby(level="node").max()
    sizes = keys.groupby("node").size()
    long = sizes[runs[runs >= params.least_runs].index].sort_values(ascending=False, kind="stable")
    return sorted(str(node) for node in long.index[: params.max_nodes])


def types_drawn(executions: pd.DataFrame, most: int, rng: np.random.Generator) -> Bools:
    """The executions of drawn benchmark types: (n_executions,). Of more than `most` as many types as there is room for,
    of each aspect in turn, one at least; whole ones, so that what is left of a type is as long and as dense as it was.
    """
    if len(executions) <= most:
        return np.ones(len(executions), dtype=bool)
    types = type_names(executions)
    sizes = executions["aspect"].fillna("").astype(str).groupby(types.to_numpy()).agg(["first", "size"])
    sizes = sizes.iloc[rng.permutation(len(sizes))]
    ordered = sizes.iloc[np.argsort(sizes.groupby("first").cumcount().to_numpy(), kind="stable")]
    drawn, room = [ordered.index[0]], most - int(ordered["size"].iloc[0])
    for name, size in ordered["size"].iloc[1:].items():
        if size <= room:  # one that is too large leaves room for those after it
            drawn.append(name)
            room -= int(size)
    return np.asarray(types.isin(drawn), dtype=bool)


def spoil(
    history: History, tables: NodeTables, is_test: Bools, kind: Kind, params: InjectionParams, rng: np.random.Generator
) -> tuple[History, Bools]:
    """The history in which a drawn share of the results of drawn nodes is spoiled, from a drawn time of their tested
    executions on, and which are: (n_executions,).

    tables: of the history; they tell which way a metric is worse. is_test: (n_executions,). At least one node stays as
    it is, and so does an execution of a benchmark that no node of another machine type ran. Raises ValueError with a
    reason where none can be spoiled."""
    node_of, names = pd.factorize(history.executions["node"].astype(str), sort=True)
    nodes = np.unique(node_of[is_test])
    if len(nodes) < 2:
        raise ValueError(FEW_NODES.format(len(nodes), params.least_runs))
    count = min(max(1, round(ALTERED_NODES * len(nodes))), len(nodes) - 1)
    drawn = np.zeros(len(node_of), dtype=bool)
    for node in np.sort(rng.choice(nodes, size=count, replace=False)):
        node_rows = np.flatnonzero(is_test & (node_of == node))
        later = node_rows[int(len(node_rows) * rng.uniform(EARLIEST, LATEST)) :]
        drawn[later[rng.random(len(later)) < ALTERED]] = True
    if kind == "shifted":  # one factor a node, drawn evenly in logarithm
        factors = np.exp(rng.uniform(np.log(params.least_factor), np.log(params.largest_factor), len(names)))
        return shifted(history, tables, np.where(drawn, factors[node_of], 1.0)), drawn
    takers, donors = np.flatnonzero(drawn), donors_of(history, drawn, is_test, rng)
    if not (donors >= 0).any():
        raise ValueError(ONE_MACHINE_TYPE)
    takers, donors = takers[donors >= 0], donors[donors >= 0]
    return replaced(history, takers, donors), np.isin(np.arange(len(drawn)), takers)


def donors_of(history: History, is_drawn: Bools, is_test: Bools, rng: np.random.Generator) -> Ints:
    """For each drawn execution one of the same benchmark on a node of another machine type, of those that test and are
    not drawn themselves: (n_drawn,), -1 where there is none."""
    kinds = pd.factorize(type_names(history.executions))[0]
    machine = pd.factorize(history.executions["machine_type"].fillna("").astype(str))[0]
    donors = np.full(int(is_drawn.sum()), -1, dtype=np.int64)
    drawn = np.flatnonzero(is_drawn)
    for kind, machine_type in sorted({(kinds[row], machine[row]) for row in drawn}):
        givers = np.flatnonzero((kinds == kind) & (machine != machine_type) & is_test & ~is_drawn)
        takers = np.flatnonzero((kinds[drawn] == kind) & (machine[drawn] == machine_type))
        if len(givers):
            donors[takers] = rng.choice(givers, size=len(takers))
    return donors


def replaced(history: History, takers: Ints, donors: Ints) -> History:
    """The history in which some executions have the metrics and the duration of others. takers, donors: (k,) rows."""
    pairs = pd.DataFrame({"taker": takers, "execution": donors})
    given = (
        pairs.merge(history.metrics, on="execution").drop(columns="execution").rename(columns={"taker": "execution"})
    )
    kept = history.metrics[~history.metrics["execution"].isin(takers)]
    joined = pd.concat([kept, given[kept.columns]]).sort_values("execution", kind="stable", ignore_index=True)
    duration = history.executions["duration_s"].to_numpy(dtype=np.float64, na_value=np.nan).copy()
    duration[takers] = duration[donors]
    return replace(history, executions=history.executions.assign(duration_s=duration), metrics=joined)


def shifted(history: History, tables: NodeTables, factors: Floats) -> History:
    """The history in which results are worse by a factor: rates are divided by it, costs are multiplied.

    factors: (n_executions,), 1 where nothing changes. Metrics that are not kept have no better or worse, and stay."""
    signs = {
        (table.name, metric): sign
        for table in tables.tables
        for metric, sign in zip(table.metrics, table.orientation, strict=True)
    }
    of = history.metrics["execution"].to_numpy(dtype=np.int64)
    names = type_names(history.executions).to_numpy(dtype=object)
    touched = np.flatnonzero(factors[of] != 1)
    keys = zip(names[of[touched]], history.metrics["metric"].iloc[touched].astype(str), strict=True)
    sign = np.array([signs.get(key, 0.0) for key in keys], dtype=np.float64)
    value = history.metrics["value"].to_numpy(dtype=np.float64).copy()
    value[touched] = value[touched] * factors[of[touched]] ** -sign
    return replace(history, metrics=history.metrics.assign(value=value))


def is_worse_than_level(case: DetectionCase) -> Bools:
    """Executions whose metrics are worse, on the mean over those with a direction, than their node's training median,
    in deviations of the type: (n_executions,)."""
    is_worse = np.zeros(len(case.is_train), dtype=bool)
    for table in case.tables.tables:
        learned, directed = case.is_train[table.executions], table.is_directed
        if not learned.any():
            continue
        level = group_medians(table.natural[learned], table.nodes[learned], len(case.tables.nodes))
        apart = (table.natural - level[table.nodes]) * table.orientation
        spread = robust_deviation(apart[learned])
        counts = (spread > 0) if directed is None else (spread > 0) & directed
        deviations = np.clip(apart[:, counts] / spread[counts], -CUT, CUT)
        is_worse[table.executions] = np.nan_to_num(deviations).sum(axis=1) < 0
    return is_worse


def spoiled_measures(
    executions: pd.DataFrame, scores: Floats, is_flagged: Bools, is_spoiled: Bools, params: AlarmParams
) -> dict[str, float]:
    """MEASURES by name, NaN where there is nothing to measure. All: m tested executions in time order; scores: NaN
    where nothing is said.

    Delays run from the first spoiled execution of a node to the first of them that is flagged, and to the first alarm
    about the node raised from then on: in executions of that node, and in hours; medians over the nodes where it comes.
    missed: share of the nodes where it never does."""
    from sklearn.metrics import average_precision_score  # type: ignore[import-untyped, unused-ignore]

    is_scored = ~np.isnan(scores)
    rows = pd.DataFrame({"node": executions["node"].astype(str).to_numpy(), "hours": hours_of(executions)})
    rows = rows.assign(place=rows.groupby("node").cumcount())
    begin = rows[is_spoiled].drop_duplicates("node").set_index("node")
    place = rows["place"].to_numpy()
    first = rows["node"].map(begin["place"]).to_numpy(dtype=np.float64)  # NaN of other nodes
    is_any = is_spoiled[is_scored].any()
    measures = {
        "recall": _share(is_flagged[is_spoiled & is_scored]),
        "auprc": float(average_precision_score(is_spoiled[is_scored], scores[is_scored])) if is_any else np.nan,
        "false_alarms_before_per_1000": 1000 * _share(is_flagged[(place < first) & is_scored]),
        "false_alarms_other_per_1000": 1000 * _share(is_flagged[np.isnan(first) & is_scored]),
    }
    is_raised = np.isin(np.arange(len(rows)), alarm_rows(executions, scores, is_flagged, params))
    for name, is_hit in (("", is_spoiled & is_flagged), ("alarm_", is_raised)):
        hits = rows[is_hit & (place >= first)].drop_duplicates("node").set_index("node")
        waited = hits.reindex(begin.index) - begin
        measures |= {
            f"{name}delay_executions": float(waited["place"].median()),
            f"{name}delay_hours": float(waited["hours"].median()),
            f"{name}missed": float(waited["place"].isna().mean()),
        }
    return measures


def calm_measures(executions: pd.DataFrame, scores: Floats, is_flagged: Bools, params: AlarmParams) -> dict[str, float]:
    """CALM_MEASURES by name, of tested executions of which nothing was spoiled."""
    n_alarms, months = len(alarm_rows(executions, scores, is_flagged, params)), node_months(executions)
    return {
        "false_alarms_per_1000": 1000 * _share(is_flagged[~np.isnan(scores)]),
        "alarms": float(n_alarms),
        "alarms_per_node_month": n_alarms / months if months > 0 else np.nan,
    }


def node_months(executions: pd.DataFrame) -> float:
    """Months from the first to the last execution of each node, all nodes together."""
    hours = pd.Series(hours_of(executions)).groupby(executions["node"].astype(str).to_numpy())
    return float((hours.max() - hours.min()).sum() / MONTH_H)


def alarm_rows(executions: pd.DataFrame, scores: Floats, is_flagged: Bools, params: AlarmParams) -> Ints:
    """The executions that raised an alarm about their node, by the stated rules: numbers from 0 to m, rising."""
    rows = executions[["node", "aspect", "execution_id", "started_at", "is_contaminated"]].reset_index(drop=True)
    rows = rows.assign(probability=np.where(np.isnan(scores), np.nan, is_flagged * 1.0), is_flagged=is_flagged)
    raised = watch_nodes(rows, params).alarms["raised_by"]
    return np.flatnonzero(rows["execution_id"].isin(raised))


def _share(values: Bools) -> float:
    return float(values.mean()) if len(values) else np.nan
