"""Unknown workloads (RQ2), and machines that others use as well: how right the answers stay, condition by condition.

Superposed telemetry: the counters of the machine of two recorded runs added up (rates as they are, levels above those
of an idle machine), the counters of the group left alone, since nothing touched them. Anybody's labelled runs can be
superposed. Conditions that were recorded as such (two workloads at once, load of others, limits) stand beside them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from tasks.errors import report_progress
from tasks.report.evaluation import Figures, put, put_mean
from tasks.workloads.evaluate.items import Split
from tasks.workloads.evaluate.known import BASELINES, Cohort, log_distances, nnls_shares, paired_means
from tasks.workloads.evaluate.scores import auroc, false_known
from tasks.workloads.identify.counters import condition_of, means_of
from tasks.workloads.identify.fingerprints import best_sum, sums_of
from tasks.workloads.identify.identification import Identification, can_answer, identify_all
from tasks.workloads.identify.model import Model, ViewName, fit_model
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Telemetry

LEAST_WORKLOADS = 3  # two held out, one known
MOST_PAIRS = 12  # choices of two workloads that are held out; of more, a sample
MOST_SPLITS = 5
NEW_INPUT = "input"  # the condition of a known workload on an input that nobody has learned
RECORDED_TURNS = 2  # each half of the recorded conditions is tested once
KNOWN_RECALL = 0.95  # of known runs, where false ones are counted
COMPANY = {"alone": 0.0, "tenth": 0.1, "third": 0.3, "pair": 1.0}  # weight of a second workload
UNLEARNED = {"unlearned": 0.0, "unlearned tenth": 0.1, "pair unlearned": 1.0}
MEASURES = ("right", "false_names", "said_unknown", "names")


@dataclass(frozen=True)
class ConditionCase:
    """A run in some condition. known: the learned workloads that are to be named, the largest first; beside: those that
    are there too, in part; has_unlearned: whether one is there that was not learned."""

    run: Telemetry
    known: tuple[str, ...]
    has_unlearned: bool
    beside: tuple[str, ...] = ()


def superposed(run: Telemetry, other: Telemetry, weight: float, idle: Mapping[str, float]) -> Telemetry:
    """A run with so much of another's load on the machine: rates added, levels added above idle ones, by counter.

    Counters of the group stay as they are, as do those that the other run lacks; the shorter run decides how long."""
    n = min(run.n_samples, other.n_samples)
    place = {counter.name: at for at, counter in enumerate(other.counters)}
    values = run.values[:n].copy()  # noqa: PD011
    for column, counter in enumerate(run.counters):
        if counter.scope == "machine" and counter.name in place:
            added = other.values[:n, place[counter.name]]  # noqa: PD011
            values[:, column] += weight * (added if counter.is_rate else added - idle.get(counter.name, 0.0))
    return replace(run, at_s=run.at_s[:n], values=values)


def unknown_results(
    cohort: Cohort, splits: Sequence[Split], params: IdentifyParams, seed: int, reason: str
) -> tuple[Figures, dict[str, pd.DataFrame]]:
    """Two workloads are held out, the others learned; how well does the score tell them apart? Figures `unknown.…`, and
    the tables `unknown` (a row a pair) and `unknown_scores` (a row a run).

    Known runs are those that a split tests, unknown ones all runs of the pair; the splits take turns."""
    labels = np.asarray(cohort.labels)
    pairs = list(combinations(sorted(set(cohort.labels)), 2))
    n_choices = len(pairs)
    if len(set(cohort.labels)) < LEAST_WORKLOADS:
        n_there = len(set(cohort.labels))
        reason, pairs = f"{n_there} workloads; at least {LEAST_WORKLOADS} are needed, to hold out two", []
    if not splits:
        pairs = []
    if len(pairs) > MOST_PAIRS:
        pairs = [pairs[at] for at in np.sort(np.random.default_rng(seed).permutation(len(pairs))[:MOST_PAIRS])]
    rows, scores = [], []
    for turn, pair in enumerate(pairs):
        report_progress("holding out unknown workloads", turn, len(pairs))
        split = splits[turn % len(splits)]
        is_out = np.isin(labels, pair)
        train = cohort.runs(split.train[~is_out[split.train]])
        known = [run for run in cohort.runs(split.test) if run.workload in {learned.workload for learned in train}]
        if not known:
            continue
        unknown = cohort.runs(np.flatnonzero(is_out))
        model = fit_model(train, params)
        answers = identify_all([*known, *unknown], model, with_reasons=False)
        table = pd.DataFrame(
            {
                "run_id": [answer.run_id for answer in answers],
                "workload": [str(run.workload) for run in (*known, *unknown)],
                "is_unknown": np.repeat([False, True], [len(known), len(unknown)]),
                "score": [answer.unknown_score for answer in answers],
                "is_said": [answer.statement == "unknown" for answer in answers],
            }
        )
        scores.append(table.assign(first=pair[0], second=pair[1]))
        rows.append(
            {"first": pair[0], "second": pair[1], "split": split.name, **_measured(table, train, known, unknown)}
        )
    by_pair = pd.DataFrame(rows)
    figures: Figures = {"unknown.pairs": len(by_pair), "unknown.pairs_to_choose": n_choices}
    why = reason or "no known run is left to test"
    for column, key in {
        "auroc": "unknown.auroc",
        "auroc_nearest": "unknown.auroc.nearest",
        "false_known": f"unknown.false_known_at_{100 * KNOWN_RECALL:g}",
        "said_known": "unknown.said_known",
        "said_unknown": "unknown.known_said_unknown",
    }.items():
        put_mean(figures, key, by_pair[column].tolist() if len(by_pair) else [], why)
    put(figures, "unknown.auroc.least", float(by_pair["auroc"].min()) if len(by_pair) else None, why)
    each = pd.concat(scores, ignore_index=True) if scores else pd.DataFrame()
    return figures, {"unknown": by_pair, "unknown_scores": each}


def _measured(
    table: pd.DataFrame, train: Sequence[Telemetry], known: Sequence[Telemetry], unknown: Sequence[Telemetry]
) -> dict[str, float]:
    is_unknown = table["is_unknown"].to_numpy()
    of_known, of_unknown = (table["score"].to_numpy(dtype=float)[kind] for kind in (~is_unknown, is_unknown))
    far_known, far_unknown = (log_distances(train, some, 0.0).min(axis=1) for some in (known, unknown))
    is_called_unknown = table["is_said"].to_numpy()
    return {
        "n_known": len(known),
        "n_unknown": len(unknown),
        "auroc": auroc(of_known, of_unknown),
        "auroc_nearest": auroc(far_known, far_unknown),
        "false_known": false_known(of_known, of_unknown, KNOWN_RECALL),
        "said_known": float((~is_called_unknown[is_unknown]).mean()),
        "said_unknown": float(is_called_unknown[~is_unknown].mean()),
    }


def shared_results(
    cohort: Cohort, shared: Sequence[Telemetry], splits: Sequence[Split], params: IdentifyParams, seed: int, reason: str
) -> tuple[Figures, pd.DataFrame]:
    """How right the answers are in each condition, by view and method: figures
    `shared.<measure>.<condition>.<view>.<method>`, and a table with a row each (measure, condition, view, method,
    value, low, high, n; the interval is Wilson's).

    shared: runs that were recorded in a condition: by rounds in turn, half of those of known workloads are learned from
    (by the view on the machine only what speaks for a part), but for those on other inputs, and what was not learned
    from is tested. In each split a part of the workloads is left out in turn, to be what nobody has learned."""
    names = sorted(set(cohort.labels))
    rows: list[dict[str, Any]] = []
    if len(names) < LEAST_WORKLOADS:
        splits, reason = [], reason or f"{len(names)} workloads; at least {LEAST_WORKLOADS} are needed"
    kept = list(splits)[:MOST_SPLITS]
    for turn, split in enumerate(kept):
        report_progress("shared machines", turn, len(kept))
        rng = np.random.default_rng([seed, turn])
        left_out = set(names[turn :: max(2, len(kept))][: len(names) - 2])
        train, test = cohort.runs(split.train), cohort.runs(split.test)
        rounds = sorted({str(run.round) for run in shared})
        others = [run for run in shared if rounds.index(str(run.round)) % 2 != turn % 2 and run.workload in names]
        fitted = [run for run in others if condition_of(run) != NEW_INPUT]
        full = [*train, *fitted]
        less = [run for run in full if run.workload not in left_out]
        for learned, company in ((full, COMPANY), (less, UNLEARNED)):
            model = fit_model(learned, params)
            cases = _superposed_cases(test, model, company, rng)
            if learned is full and turn < RECORDED_TURNS:
                seen = {run.run_id for run in fitted}
                for run in (run for run in shared if run.run_id not in seen):
                    cases.setdefault(f"recorded {condition_of(run)}", []).append(_recorded(run, model))
            for view in model.views:
                rows += _judged(cases, model, view, learned)
    table = _summed(rows)
    figures: Figures = {"shared.splits": len(kept)}
    if table.empty:
        put(figures, "shared.right", None, reason or "nothing to learn from and to test")
    for row in table.to_dict("records"):
        key = f"shared.{row['measure']}.{row['condition'].replace(' ', '_')}.{row['view']}.{row['method']}"
        put(figures, key, row["value"])
        figures |= {f"{key}.low": row["low"], f"{key}.high": row["high"], f"{key}.n": row["n"]}
    return figures, table


def _superposed_cases(
    test: Sequence[Telemetry], model: Model, company: Mapping[str, float], rng: np.random.Generator
) -> dict[str, list[ConditionCase]]:
    idle = {
        counter.name: float(level)
        for view in model.views.values()
        for counter, level in zip(view.counters, view.library.idle, strict=True)
    }
    learned = set(model.workloads)
    known, unlearned = ([run for run in test if (run.workload in learned) == kind] for kind in (True, False))
    cases: dict[str, list[ConditionCase]] = {}
    for condition, weight in company.items():
        is_pair, is_unlearned = weight == 1, company is UNLEARNED
        for run in unlearned if is_unlearned and not is_pair else known:
            others = [
                candidate
                for candidate in (unlearned if is_unlearned and is_pair else known)
                if candidate.workload != run.workload
            ]
            if not others:
                continue
            other = others[int(rng.integers(len(others)))]
            seen = superposed(run, other, weight, idle) if weight else run
            there = [str(run.workload)] if run.workload in learned else []
            if is_pair and not is_unlearned:
                there.append(str(other.workload))
            beside = (str(other.workload),) if 0 < weight < 1 else ()
            cases.setdefault(condition, []).append(ConditionCase(seen, tuple(there), is_unlearned, beside))
    return cases


def _recorded(run: Telemetry, model: Model) -> ConditionCase:
    """What was there by the columns that say so: the run's own workload, and its partner."""
    partner = run.conditions.partner if run.conditions else None
    there = [str(name) for name in (run.workload, partner) if name]
    known = tuple(name for name in there if name in model.workloads)
    return ConditionCase(run, known, len(known) < len([name for name in there if name != "idle"]))


def _judged(
    cases: Mapping[str, Sequence[ConditionCase]], model: Model, view: ViewName, train: Sequence[Telemetry]
) -> list[dict[str, Any]]:
    of_view = replace(model, views={view: model.views[view]})
    answerable = [
        (condition, case) for condition, each in cases.items() for case in each if can_answer(of_view, case.run)
    ]
    if view == "own":  # the group is one workload, whatever runs beside it
        answerable = [(condition, _alone(case)) for condition, case in answerable]
    runs = [_on_view(case.run, view) for _, case in answerable]
    learned = [_on_view(run, view) for run in train]
    n_names = [max(1, len(case.known)) for _, case in answerable]
    answers = identify_all(runs, model, view=view, with_reasons=False)
    named = _baselines(learned, runs, n_names) if runs else {}
    rows: list[dict[str, Any]] = []
    named["model, number known"] = _number_known(runs, n_names, model, view)
    for at, ((condition, case), answer) in enumerate(zip(answerable, answers, strict=True)):
        about = {"condition": condition, "view": view}
        rows.append({**about, "method": "model", **_outcome(case, answer)})
        if case.known:
            known = set(case.known)
            rows += [{**about, "method": method, "right": set(names[at]) == known} for method, names in named.items()]
    return rows


def _number_known(runs: Sequence[Telemetry], n_names: Sequence[int], model: Model, view: ViewName) -> list[list[str]]:
    """The parts of the best sum of so many, whether known enough to be named or not."""
    of_view = model.views[view]
    names = []
    for seen, n in zip(means_of(runs, of_view.counters), n_names, strict=True):
        best = best_sum(sums_of(seen, of_view.library)[n - 1 : n], of_view.library)
        names.append([part.workload for part in best.parts] if best else [])
    return names


def _alone(case: ConditionCase) -> ConditionCase:
    known = case.known[:1] if case.run.workload in case.known else ()
    return replace(case, known=known, has_unlearned=not known and case.run.workload != "idle")


def _outcome(case: ConditionCase, answer: Identification) -> dict[str, Any]:
    """right: the main workload is named, and of a pair both and no other; nothing where nothing known is there,
    idle where nothing was at work."""
    usual = "idle" if case.run.workload == "idle" else None
    named = {part.workload for part in answer.present}
    has_rest = answer.statement in ("unknown", "known and something unknown")
    is_right = named == set(case.known) if len(case.known) > 1 else answer.workload == next(iter(case.known), usual)
    return {
        "right": is_right if not case.has_unlearned or not case.known else None,
        "names": case.known[0] in named if case.known else None,
        "false_names": bool(named - {*case.known, *case.beside, "idle"}),
        "said_unknown": has_rest,
    }


def _baselines(
    train: Sequence[Telemetry], runs: Sequence[Telemetry], n_names: Sequence[int]
) -> dict[str, list[list[str]]]:
    """What plain ways name in each run: as many workloads as there are, which they cannot find, or one."""
    known, seen = paired_means(train, runs)
    labels = [str(run.workload) for run in train]
    names, order = sorted(set(labels)), np.argsort(-nnls_shares(known, seen, labels), axis=1)
    largest = [[names[at] for at in row[:n]] for row, n in zip(order, n_names, strict=True)]
    single = {method: [[name] for name in BASELINES[method](train, runs)] for method in ("nearest", "forest")}
    return {"nnls": largest, **single}


def _on_view(run: Telemetry, view: ViewName) -> Telemetry:
    scope = "workload" if view == "own" else "machine"
    kept = [at for at, counter in enumerate(run.counters) if counter.scope == scope]
    return replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])  # noqa: PD011


def _summed(rows: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    table = pd.DataFrame(rows)
    summaries: list[dict[str, Any]] = []
    if table.empty:
        return table
    for (condition, view, method), part in table.groupby(["condition", "view", "method"], sort=False):
        for measure in MEASURES:
            values = part[measure].dropna().astype(float) if measure in part else pd.Series(dtype=float)
            if len(values):
                low, high = binomtest(int(values.sum()), len(values)).proportion_ci(method="wilson")
                about = {"measure": measure, "condition": condition, "view": view, "method": method}
                summaries.append({**about, "value": float(values.mean()), "low": low, "high": high, "n": len(values)})
    return pd.DataFrame(summaries)
