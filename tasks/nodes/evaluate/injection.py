"""Degradation where nobody knows of any: results of nodes that ran long are spoiled from a drawn time on.

Nothing before that time and nothing of other nodes is touched, so that what is told there is a false alarm. Only what
is tested is ever spoiled: training and validation stay as they are."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from tasks.nodes.aspects import APPLICATION, is_unstressed, type_names
from tasks.nodes.detect.alarms import watch_nodes
from tasks.nodes.detect.params import AlarmParams
from tasks.nodes.detect.plain import OUT_OF_FOLD, WITHOUT_LABELS, Case, Detector
from tasks.nodes.evaluate import alarms
from tasks.nodes.evaluate.detection import Prepare, case_of, labels_reason
from tasks.nodes.evaluate.measures import Figures, average_precision, precision_recall, put, put_seeds
from tasks.nodes.evaluate.params import EvaluateParams, InjectionParams, Kind
from tasks.nodes.evaluate.splits import Split, choose_threshold, splits_of
from tasks.nodes.history import History
from tasks.nodes.type_tables import Bools, Floats, Ints, NodeTables, group_medians, robust_deviation
from tasks.progress import report_progress

EARLIEST, LATEST = 0.2, 0.6  # where among a node's tested executions the spoiled ones begin
ONE_MACHINE_TYPE = "all long-lived nodes are of one machine type; results of another are needed"
FEW_NODES = "{0} nodes ran a benchmark {1} times or more; at least two are needed"
CALM = "unaltered"
CUT = 5.0  # deviations of one metric
TYPES = 9  # stream of the seed: which benchmark types are judged
LABELLED = "some executions are known to be stressed: see detect"
NOT_TOLD = "no spoiled node was told, or nothing was spoiled"
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
HOUR_S, MONTH_H = 3600.0, 730.5


@dataclass(frozen=True)
class Spoiled:
    """history: with spoiled results. is_spoiled: (n_executions,). nodes: names of the nodes that have any."""

    history: History
    is_spoiled: Bools
    nodes: tuple[str, ...]


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
    each = executions["aspect"].fillna("").astype(str).groupby(types.to_numpy()).agg(["first", "size"])
    each = each.iloc[rng.permutation(len(each))]
    ordered = each.iloc[np.argsort(each.groupby("first").cumcount().to_numpy(), kind="stable")]
    chosen, room = [ordered.index[0]], most - int(ordered["size"].iloc[0])
    for name, size in ordered["size"].iloc[1:].items():
        if size <= room:  # one that is too large leaves room for those after it
            chosen.append(name)
            room -= int(size)
    return np.asarray(types.isin(chosen), dtype=bool)


def spoil(
    history: History, tables: NodeTables, is_test: Bools, kind: Kind, params: InjectionParams, rng: np.random.Generator
) -> Spoiled:
    """Spoil a drawn share of the results of drawn nodes, from a drawn time of their tested executions on.

    tables: of the history; they tell which way a metric is worse. is_test: (n_executions,). An execution of a benchmark
    that no node of another machine type ran stays as it is. Raises ValueError with a reason where none can be spoiled.
    """
    drawn = _drawn(history, is_test, params, rng)
    if kind == "replaced":
        donors = donors_of(history, drawn, is_test, rng)
        is_spoiled = np.zeros_like(drawn)
        is_spoiled[np.flatnonzero(drawn)[donors >= 0]] = True
        if not is_spoiled.any():
            raise ValueError(ONE_MACHINE_TYPE)
        found = replaced(history, np.flatnonzero(is_spoiled), donors[donors >= 0])
    else:
        is_spoiled = drawn
        found = shifted(history, tables, _factors(history, drawn, params, rng))
    nodes = sorted(history.executions["node"].astype(str)[is_spoiled].unique())
    return Spoiled(found, is_spoiled, tuple(nodes))


def _drawn(history: History, is_test: Bools, params: InjectionParams, rng: np.random.Generator) -> Bools:
    """The executions to be spoiled: (n_executions,). At least one node stays as it is."""
    node = history.executions["node"].astype(str).to_numpy(dtype=object)
    nodes = sorted(set(node[is_test]))
    if len(nodes) < 2:
        raise ValueError(FEW_NODES.format(len(nodes), params.least_runs))
    count = min(max(1, round(params.altered_nodes * len(nodes))), len(nodes) - 1)
    found = np.zeros(len(node), dtype=bool)
    for name in sorted(rng.choice(np.array(nodes, dtype=object), size=count, replace=False)):
        own = np.flatnonzero(is_test & (node == name))
        later = own[int(len(own) * rng.uniform(EARLIEST, LATEST)) :]
        found[later[rng.random(len(later)) < params.altered_share]] = True
    return found


def donors_of(history: History, is_drawn: Bools, is_test: Bools, rng: np.random.Generator) -> Ints:
    """For each drawn execution one of the same benchmark on a node of another machine type, of those that test and are
    not drawn themselves: (n_drawn,), -1 where there is none."""
    kinds = pd.factorize(type_names(history.executions))[0]
    machine = pd.factorize(history.executions["machine_type"].fillna("").astype(str))[0]
    found = np.full(int(is_drawn.sum()), -1, dtype=np.int64)
    asked = np.flatnonzero(is_drawn)
    for kind, own in sorted({(kinds[row], machine[row]) for row in asked}):
        givers = np.flatnonzero((kinds == kind) & (machine != own) & is_test & ~is_drawn)
        takers = np.flatnonzero((kinds[asked] == kind) & (machine[asked] == own))
        if len(givers):
            found[takers] = rng.choice(givers, size=len(takers))
    return found


def replaced(history: History, takers: Ints, donors: Ints) -> History:
    """The history in which some executions have the metrics and the duration of others. takers, donors: (k,) rows."""
    metrics, executions = history.metrics, history.executions
    order = np.argsort(metrics["execution"].to_numpy(), kind="stable")
    ordered = metrics.iloc[order].reset_index(drop=True)
    of = ordered["execution"].to_numpy(dtype=np.int64)
    first, end = np.searchsorted(of, donors), np.searchsorted(of, donors, side="right")
    counts = end - first
    places = np.repeat(first - np.append(0, np.cumsum(counts)[:-1]), counts) + np.arange(int(counts.sum()))
    given = ordered.iloc[places].assign(execution=np.repeat(takers, counts))
    kept = ordered[~np.isin(of, takers)]
    joined = pd.concat([kept, given], ignore_index=True).sort_values("execution", kind="stable", ignore_index=True)
    duration = executions["duration_s"].to_numpy(dtype=np.float64, na_value=np.nan).copy()
    duration[takers] = duration[donors]
    return replace(history, executions=executions.assign(duration_s=duration), metrics=joined)


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


def _factors(history: History, drawn: Bools, params: InjectionParams, rng: np.random.Generator) -> Floats:
    """One factor a node, drawn evenly in logarithm; 1 for executions that are not drawn. (n_executions,)"""
    node_of, nodes = pd.factorize(history.executions["node"].astype(str), sort=True)
    low, high = np.log(params.least_factor), np.log(params.largest_factor)
    each = np.exp(rng.uniform(low, high, len(nodes)))
    return np.asarray(np.where(drawn, each[node_of], 1.0))


@dataclass(frozen=True)
class Verdicts:
    """Tested executions in time order, m of them.

    executions: their rows of the history. scores: (m,), NaN where nothing is said. is_flagged: (m,)."""

    executions: pd.DataFrame
    scores: Floats
    is_flagged: Bools

    @property
    def nodes(self) -> np.ndarray:
        """(m,) names."""
        return self.executions["node"].astype(str).to_numpy(dtype=object)


def spoiled_measures(verdicts: Verdicts, is_spoiled: Bools, params: AlarmParams) -> dict[str, float]:
    """MEASURES by name, NaN where there is nothing to measure. is_spoiled: (m,).

    Delays run from the first spoiled execution of a node to the first of them that is flagged, and to the first alarm
    about the node raised from then on: in executions of that node, and in hours; medians over the nodes where it comes.
    missed: share of the nodes where it never does."""
    names, is_scored = verdicts.nodes, ~np.isnan(verdicts.scores)
    nodes = sorted(set(names[is_spoiled]))
    first = {node: int(np.flatnonzero(is_spoiled & (names == node))[0]) for node in nodes}
    is_before = np.array([at < first.get(node, -1) for at, node in enumerate(names)], dtype=bool)
    is_other = ~np.isin(names, np.array(nodes, dtype=object))
    curve = precision_recall(verdicts.scores[is_scored], is_spoiled[is_scored]) if is_spoiled[is_scored].any() else None
    is_raised = np.isin(np.arange(len(names)), alarm_rows(verdicts, params))
    flags = [_delay(verdicts, node, first[node], is_spoiled & verdicts.is_flagged) for node in nodes]
    raised = [_delay(verdicts, node, first[node], is_raised) for node in nodes]
    return {
        "recall": _share(verdicts.is_flagged[is_spoiled & is_scored]),
        "auprc": average_precision(curve) if curve is not None else np.nan,
        "false_alarms_before_per_1000": 1000 * _share(verdicts.is_flagged[is_before & is_scored]),
        "false_alarms_other_per_1000": 1000 * _share(verdicts.is_flagged[is_other & is_scored]),
        **_delays("", flags),
        **_delays("alarm_", raised),
    }


def calm_measures(verdicts: Verdicts, params: AlarmParams) -> dict[str, float]:
    """CALM_MEASURES by name, of a history in which nothing was spoiled."""
    n_alarms, months = len(alarm_rows(verdicts, params)), node_months(verdicts)
    return {
        "false_alarms_per_1000": 1000 * _share(verdicts.is_flagged[~np.isnan(verdicts.scores)]),
        "alarms": float(n_alarms),
        "alarms_per_node_month": n_alarms / months if months > 0 else np.nan,
    }


def node_months(verdicts: Verdicts) -> float:
    """Months from the first to the last tested execution of each node, all nodes together."""
    times = _seconds(verdicts.executions)
    spans = pd.Series(times).groupby(verdicts.nodes).agg(lambda own: own.max() - own.min())
    return float(spans.sum() / HOUR_S / MONTH_H)


def alarm_rows(verdicts: Verdicts, params: AlarmParams) -> Ints:
    """The executions that raised an alarm about their node, by the stated rules: numbers from 0 to m, rising."""
    told = verdicts.executions[["node", "aspect", "execution_id", "started_at", "is_contaminated"]].reset_index(
        drop=True
    )
    is_scored = ~np.isnan(verdicts.scores)
    told = told.assign(
        probability=np.where(is_scored, verdicts.is_flagged.astype(np.float64), np.nan), is_flagged=verdicts.is_flagged
    )
    by_verdict = params.model_copy(update={"threshold": 0.0})  # scores of plain detectors are no probabilities
    raised = watch_nodes(told, by_verdict).alarms["raised_by"].tolist()
    place = dict(zip(told["execution_id"].tolist(), range(len(told)), strict=True))
    return np.array(sorted(place[one] for one in raised), dtype=np.int64)


def _delay(verdicts: Verdicts, node: str, first: int, is_told: Bools) -> tuple[float, float]:
    """Executions of the node and hours from a row to the first told one of the node from then on; NaN if none is."""
    own = np.flatnonzero(verdicts.nodes == node)
    told = own[(own >= first) & is_told[own]]
    if not len(told):
        return np.nan, np.nan
    times = _seconds(verdicts.executions)
    n_between = int(((own >= first) & (own < told[0])).sum())
    return float(n_between), float(times[told[0]] - times[first]) / HOUR_S


def _delays(name: str, found: list[tuple[float, float]]) -> dict[str, float]:
    executions, hours = np.array(found, dtype=np.float64).reshape(-1, 2).T
    known = ~np.isnan(executions)
    return {
        f"{name}delay_executions": float(np.median(executions[known])) if known.any() else np.nan,
        f"{name}delay_hours": float(np.nanmedian(hours[known])) if (known & ~np.isnan(hours)).any() else np.nan,
        f"{name}missed": _share(~known),
    }


def _seconds(executions: pd.DataFrame) -> Floats:
    """(m,) since the epoch, NaN where unknown."""
    elapsed = pd.to_datetime(executions["started_at"]) - pd.Timestamp(0)
    return np.asarray(elapsed.dt.total_seconds().to_numpy(), dtype=np.float64)


def _share(values: Bools) -> float:
    return float(values.mean()) if len(values) else np.nan


@dataclass(frozen=True)
class Injected:
    """rows: one a repeat, kind and detector: repeat, kind, detector, n_nodes (spoiled), n_spoiled, and the measures;
    kind `unaltered` is the history as it is. reasons: by detector, empty where it judged. n_nodes: long-lived ones;
    n_types, n_executions: what was judged of them. budgets: figures of budgets of false alarms."""

    rows: pd.DataFrame
    reasons: dict[str, str]
    n_nodes: int
    node_months: float
    n_types: int = 0
    n_executions: int = 0
    budgets: Figures = field(default_factory=dict)


def inject(history: History, prepare: Prepare, detectors: Mapping[str, Detector], params: EvaluateParams) -> Injected:
    """Spoil results of long-lived nodes, and let the detectors that need no labels find them.

    Every detector learns once, from a first share of each node's executions that is never spoiled, and has its
    threshold from the share after that, where it flags params.false_alarm_share. Applications are left out; of more
    than injection.most_executions whole benchmark types are drawn. Whether budgets of false alarms are held is counted
    on the history as it is."""
    asked = params.injection
    judges = {name: one for name, one in detectors.items() if name not in OUT_OF_FOLD}
    names = list(judges)
    if not labels_reason(history.executions):
        return Injected(pd.DataFrame(), dict.fromkeys(names, LABELLED), 0, 0.0)
    micro = history.where((history.executions["aspect"] != APPLICATION).to_numpy(dtype=bool))
    nodes = long_lived(micro, asked)
    if len(nodes) < 2:
        reason = FEW_NODES.format(len(nodes), asked.least_runs)
        return Injected(pd.DataFrame(), dict.fromkeys(names, reason), len(nodes), 0.0)
    own = micro.where(micro.executions["node"].astype(str).isin(nodes).to_numpy(dtype=bool))
    own = own.where(types_drawn(own.executions, asked.most_executions, np.random.default_rng([params.seed, TYPES])))
    shares = {"train_share": asked.train_share, "validation_share": asked.validation_share}
    types = type_names(own.executions).tolist()
    ((split,),) = splits_of(own.executions, types, "chronological", params.model_copy(update=shares)).rounds
    case = case_of(own, split, prepare, params.seed)
    scores = {name: judge(case) for name, judge in judges.items()}
    calm = {name: _verdicts(told, case, split, params) for name, told in scores.items()}
    rows: list[dict[str, Any]] = [
        {"repeat": 0, "kind": CALM, "detector": name, **calm_measures(one, asked.alarm)} for name, one in calm.items()
    ]
    rows += _repeated(case, split, prepare, judges, params)
    months = node_months(next(iter(calm.values()))) if calm else 0.0
    n_types = len(set(types))
    reasons = dict.fromkeys(names, "")
    budgets = _budgets(case, split, scores[WITHOUT_LABELS], params) if WITHOUT_LABELS in scores else {}
    return Injected(pd.DataFrame(rows), reasons, len(nodes), months, n_types, len(own.executions), budgets)


def _budgets(case: Case, split: Split, scores: Floats, params: EvaluateParams) -> Figures:
    """Whether budgets are held on unaltered executions, by ours without labels."""
    executions = case.history.executions
    about = {"protocol": CALM, "round": 0, "detector": WITHOUT_LABELS}
    learned = (split.is_train | split.is_validation) & is_unstressed(executions).to_numpy(dtype=bool)
    thresholds = [{**about, **one} for one in alarms.thresholds_by_budget(executions, scores, learned, params)]
    tested = np.flatnonzero(split.is_test & ~np.isnan(scores))
    judged = pd.DataFrame({**about, "execution": tested, "score": scores[tested]})
    return alarms.budget_figures(executions, judged, pd.DataFrame(thresholds, columns=alarms.COLUMNS), params)


def _repeated(
    case: Case, split: Split, prepare: Prepare, judges: Mapping[str, Detector], params: EvaluateParams
) -> Iterator[dict[str, Any]]:
    """The rows of every repeat and kind. A kind that is not possible here has none."""
    asked = params.injection
    for number, kind in enumerate(asked.kinds):
        for repeat in range(asked.repeats):
            report_progress(f"degradation injected, {kind}", repeat, asked.repeats)
            rng = np.random.default_rng([params.seed, number, repeat])
            try:
                spoiled = spoil(case.history, case.tables, split.is_test, kind, asked, rng)
            except ValueError:
                break
            other = case_of(spoiled.history, split, prepare, params.seed)
            about = {"repeat": repeat, "kind": kind, "n_nodes": len(spoiled.nodes)}
            parts: dict[str, Bools] = {kind: split.is_test}
            if kind == "replaced":
                parts[WORSE] = split.is_test & (~spoiled.is_spoiled | is_worse_than_level(other))
            for name, judge in judges.items():
                scores = judge(other)
                for part, is_part in parts.items():
                    is_spoiled = spoiled.is_spoiled[is_part]
                    verdicts = _verdicts(scores, other, replace(split, is_test=is_part), params)
                    told = spoiled_measures(verdicts, is_spoiled, asked.alarm)
                    yield {**about, "kind": part, "detector": name, "n_spoiled": int(is_spoiled.sum()), **told}


def is_worse_than_level(case: Case) -> Bools:
    """Executions whose metrics are worse, on the mean over those with a direction, than their node's training median,
    in deviations of the type: (n_executions,)."""
    found = np.zeros(len(case.is_train), dtype=bool)
    for table in case.tables.tables:
        learned, directed = case.is_train[table.executions], table.is_directed
        if not learned.any():
            continue
        level = group_medians(table.natural[learned], table.nodes[learned], len(case.tables.nodes))
        apart = (table.natural - level[table.nodes]) * table.orientation
        spread = robust_deviation(apart[learned])
        counts = (spread > 0) if directed is None else (spread > 0) & directed
        deviations = np.clip(apart[:, counts] / spread[counts], -CUT, CUT)
        found[table.executions] = np.nan_to_num(deviations).sum(axis=1) < 0
    return found


def _verdicts(scores: Floats, case: Case, split: Split, params: EvaluateParams) -> Verdicts:
    """What a detector says of the tested executions."""
    chosen = scores[split.is_validation & ~np.isnan(scores)]
    threshold = choose_threshold(chosen, np.zeros(len(chosen), dtype=bool), params.false_alarm_share)
    tested = scores[split.is_test]
    return Verdicts(case.history.executions[split.is_test], tested, tested > threshold)


def injected_figures(found: Injected, params: EvaluateParams) -> Figures:
    """Means over repeats, with deviation and interval; null with a reason where nothing could be measured."""
    figures: Figures = {"inject.nodes": found.n_nodes}
    why = next((reason for reason in found.reasons.values() if reason), NOT_TOLD)
    counts = {"types": found.n_types, "executions": found.n_executions, "node_months": found.node_months}
    for name, count in counts.items():
        put(figures, f"inject.{name}", count or None, why)
    kinds = [*params.injection.kinds, *([WORSE] if "replaced" in params.injection.kinds else [])]
    table = found.rows.reindex(columns=["kind", "detector", *CALM_MEASURES, *MEASURES])
    for name, reason in found.reasons.items():
        for kind in (CALM, *kinds):
            rows = table[(table["kind"] == kind) & (table["detector"] == name)]
            why_none = ONE_MACHINE_TYPE if kind in ("replaced", WORSE) and rows.empty else NOT_TOLD
            for measure in CALM_MEASURES if kind == CALM else MEASURES:
                put_seeds(figures, f"inject.{kind}.{measure}.{name}", rows[measure].tolist(), reason or why_none)
    return figures | found.budgets
