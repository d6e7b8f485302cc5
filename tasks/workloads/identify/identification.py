"""What a run is: known workloads with their shares, something unknown, or nothing at all; how sure, and why.

Of a group both its counters and its programs say it, where the learned runs tell of theirs. The reasons hold it against
the nearest known fingerprint of one workload, at the weight at which it fits best, or against the sum of several. A gap
is measured in deviations between runs of the same workload. What matched best is chosen among counters that set the
workload apart from the others: that both make no page faults says little if nobody makes any."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from tasks.choices import Statement
from tasks.errors import BadInput
from tasks.quantities import digits
from tasks.workloads.identify.counters import IDLE, OWN_BUSY, means_of, missing_counters, shapes_of
from tasks.workloads.identify.fingerprints import Sum, best_sum, sums_of
from tasks.workloads.identify.logistic import log_odds, probability_of
from tasks.workloads.identify.model import EVEN, VIEWS, Model, View, ViewName, presence_features, seen_moments
from tasks.workloads.identify.programs import ProgramEvidence, evidence_of, reasons_of, weighed
from tasks.workloads.telemetry import OWN_PREFIX, Counter, FloatArray, Telemetry

N_REASONS = 3  # of each kind
LEAST_GAP = 3.0  # deviations from which on a counter differs
LEAST_APART = 3.0  # deviations from other workloads from which on a counter says something
LEAST_CHANGE = 0.02  # relative difference of two values below which words would show the same number twice
PREFIXES = ((1e9, "G"), (1e6, "M"), (1e3, "k"))
BYTES = ("B", "bytes")
CORES = ("core-seconds", "cores")
SAID_BY_THE_VALUE = "_cores"
TOGETHER = {2: "both together", 3: "all three together"}  # of the workloads of a sum, MOST_PARTS at most


def why(seen: FloatArray, view: View, workloads: Sequence[str], *, is_known: bool) -> tuple[str, ...]:
    """What matched and what did not against a known workload, or several at once, one line each; for an unknown run
    what did not comes first. seen: (n_counters,), means of the run."""
    library, sums = view.library, sums_of(seen, view.library)
    names = np.asarray(library.workloads)
    joint = best_sum(sums, library, sorted(set(library.workloads) - set(workloads))) if len(workloads) > 1 else None
    if joint and len(joint.parts) == len(workloads):
        workload, expected, gaps = TOGETHER[len(workloads)], joint.fitted, np.abs(joint.deviations)
    else:
        workload, alone = workloads[0], sums[0]
        at = int(np.where(names[alone.rows[:, 0]] == workload, alone.cost, np.inf).argmin())
        expected, gaps = alone.fitted[at], np.abs(alone.deviations[at])
    logs = np.log(library.rows + library.floor)
    others = logs[~np.isin(names, workloads)]
    apart = np.zeros(len(seen))
    if len(others):
        log_seen = np.log(np.maximum(np.nan_to_num(seen), 0) + library.floor)
        apart = np.median(np.abs(others - log_seen), axis=0) / library.spread
    known = [c for c in range(len(seen)) if np.isfinite(gaps[c])]
    telling = [c for c in known if gaps[c] < LEAST_GAP and apart[c] >= LEAST_APART]
    telling.sort(key=lambda c: (-apart[c] / (1 + gaps[c]), view.counters[c].name))
    shows = np.abs(seen - expected) > LEAST_CHANGE * np.maximum(np.abs(seen), np.abs(expected))
    far = [c for c in known if gaps[c] >= LEAST_GAP and shows[c]]
    far.sort(key=lambda c: (-gaps[c], view.counters[c].name))

    def line(c: int, form: str) -> str:
        value, usual = (value_in_words(float(means[c]), view.counters[c]) for means in (seen, expected))
        return f"{name_in_words(view.counters[c])}: {form.format(value, workload, usual)}"

    matched = [line(c, "{0}, as in {1} ({2})") for c in telling[:N_REASONS]]
    differed = [line(c, "{0} against {2} of {1}") for c in far[:N_REASONS]]
    if not differed:
        sentence = f"no counter by itself differs from {workload} by more than runs of one workload do"
        differed = [sentence if is_known else f"{sentence}, but all together do"]
    return tuple(matched + differed if is_known else differed + matched)


def name_in_words(counter: Counter) -> str:
    """The name without dots and underscores; `own.` becomes "of its own"."""
    name = counter.name.removeprefix(OWN_PREFIX).removesuffix(SAID_BY_THE_VALUE)
    words = name.replace(".", " ").replace("_", " ")
    return f"{words} of its own" if counter.name.startswith(OWN_PREFIX) else words


def value_in_words(value: float, counter: Counter) -> str:
    """The value with its unit, to three digits: "4.1 MB a second", "1.8 cores", "310 a second", "12 tasks"."""
    size, unit = 1.0, counter.unit
    if unit in BYTES:
        size, unit = next(((size, f"{letter}B") for size, letter in PREFIXES if abs(value) >= size), (1.0, "B"))
    text = digits(value / size) if math.isfinite(value) else "no value"
    if counter.is_rate and counter.unit in CORES:
        return f"{text} cores"
    if counter.is_rate and counter.unit not in (*BYTES, "s"):  # events are not called by their name
        unit = ""
    return " ".join(filter(None, (text, unit, "a second" if counter.is_rate else "")))


# from which on a part is named, by whether something unknown is there too: where nothing is, a part is there more often
# than among the sums with something unknown in them, from which its probability was learned as well
LEAST_PROBABILITY = {False: 0.15, True: 0.6}
# of what is alone on a machine, from which on it is called unknown wherever the limit is: what speaks for something
# unknown is weighed against what speaks for the known workload. Chosen on X5650
MOST_UNKNOWN = 0.95
LEAST_COMMON = 0.6  # share of the weight of a view's counters that a run must have
LEAST_WEIGHT = 0.15  # of a part that is named beside another
LEAST_SHARE = 1e-9
IDLE_CORES = 0.03  # busy cores of a group, or of a machine for each of its cores, below which nothing runs
IDLE_MACHINE = 0.25  # busy cores of a machine from which on something runs: one of 64 is a program at work
IDLE_SWITCHES = 100.0  # a second: what a group that writes, or waits for its turn, exceeds without using a core
CROWDED_SHARE = 0.1  # of the machine that others take, from which on the answer says what would make it surer
SHORT_S = 15.0  # a run shorter than this is surer when it is longer
# time of all processors as whorl, sysstat (also vmstat) and Prometheus' node exporter name it: the second in percent
BUSY, IDLE_TIME, STOLEN = (
    re.compile(rf"cpu\.({ours})_cores|cpu\.all\.pct_({sysstat})|node_cpu_seconds\.(.*\.)?mode_({ours})(\..*)?")
    for ours, sysstat in (
        ("user|nice|system|irq|softirq", "usr|user|nice|sys|system|irq|soft|guest|gnice"),
        ("idle|iowait", "idle|iowait"),
        ("steal", "steal"),
    )
)
OF_ALL, OF_ONE = "cpu.all.pct_idle", re.compile(r"cpu\.\d+\.pct_idle")
OWN, SWITCHES = (re.compile("|".join(map(re.escape, names))) for names in (OWN_BUSY, ("own.perf.context_switches",)))


class Nearest(NamedTuple):
    """A known workload near a run. distance: to its nearest runs, in deviations between runs of one workload."""

    workload: str
    distance: float


class Present(NamedTuple):
    """A known workload that is there. share: of what the known ones among them do; probability: that it is there."""

    workload: str
    share: float
    probability: float


@dataclass(frozen=True)
class Identification:
    """What is said of a run.

    workload: what ran, of several the largest; None: no known workload. confidence: probability that it is there, or
    that it is something unknown; unknown_score: that something runs that is not known. is_known: whether a workload is
    named. present: all that are there, the one with the largest weight first; nearest: all known ones, each by itself.
    reasons: which programs it ran, and which counters matched best and worst, in words. proxy: for an unknown run the
    known workload that may stand for it. view: whose counters say so; missing: those of the model that the run lacks.
    foreign_share, stolen_share: of the machine, what others and the hypervisor took; None: not measured. surer: what
    would make the answer surer, in words."""

    run_id: str
    statement: Statement
    workload: str | None
    confidence: float
    is_known: bool
    unknown_score: float
    present: tuple[Present, ...]
    nearest: tuple[Nearest, ...]
    reasons: tuple[str, ...]
    proxy: str | None
    view: ViewName
    missing: tuple[str, ...] = ()
    foreign_share: float | None = None
    stolen_share: float | None = None
    surer: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """It as plain values, without `nearest` and `missing`, of which tables and terminals show different parts."""
        values = {
            field.name: getattr(self, field.name) for field in fields(self) if field.name not in ("nearest", "missing")
        }
        lists = {"present": [part._asdict() for part in self.present], "reasons": list(self.reasons)}
        return values | lists | {"surer": list(self.surer)}


def view_of(run: Telemetry, model: Model) -> tuple[ViewName, tuple[str, ...]]:
    """The first view of a model whose counters a run has, and the counters that it lacks of it.

    Raises the BadInput of the last view tried if there is none."""
    problem: BadInput | None = None
    for name in VIEWS:
        if name in model.views:
            try:
                view = model.views[name]
                return name, missing_counters(run, view.counters, view.weights, LEAST_COMMON)
            except BadInput as error:
                problem = error
    raise problem or BadInput(f"run {run.run_id}", "no view of it is known", "a model of its counters", "train again")


def can_answer(model: Model, run: Telemetry) -> bool:
    """Whether a run has the counters of a view of a model."""
    try:
        view_of(run, model)
    except BadInput:
        return False
    return True


def identify(run: Telemetry, model: Model) -> Identification:
    """Say what a run is. Raises BadInput if it lacks too many counters of the model."""
    return identify_all([run], model)[0]


def identify_all(
    runs: Sequence[Telemetry], model: Model, *, view: ViewName | None = None, with_reasons: bool = True
) -> list[Identification]:
    """Say what each run is; none depends on the others. view: on these counters alone. Raises as `identify` does."""
    answers = []
    for run in runs:
        name, missing = view_of(run, model) if view is None else (view, ())
        of_view = model.views[name]
        [moments] = seen_moments([run], of_view.counters)
        shapes = shapes_of([run], of_view.counters)[0] if name == "machine" else None
        evidence = evidence_of(run.processes, model.programs) if name == "own" else {}
        answer = replace(judge(run.run_id, moments, of_view, name, shapes, evidence), missing=missing)
        answer = _with_conditions(answer, run, model)
        if with_reasons and answer.statement != IDLE:
            seen = moments[: len(of_view.counters)]
            against = [part.workload for part in answer.present] or [answer.workload or answer.nearest[0].workload]
            reasons = why(seen, of_view, against, is_known=answer.is_known)
            alone = judge(run.run_id, moments, of_view, name).workload if evidence else answer.workload
            differs = () if alone == answer.workload else (f"its counters alone say {alone or 'unknown'}",)
            program_reasons = reasons_of(run.processes, model.programs)
            answer = replace(answer, reasons=(*program_reasons, *differs, *reasons))
        answers.append(answer)
    return answers


def judge(
    run_id: str,
    moments: FloatArray,
    view: View,
    name: ViewName,
    shapes: FloatArray | None = None,
    evidence: Mapping[str, ProgramEvidence] = MappingProxyType({}),
) -> Identification:
    """What the means and deviations of a run, (2 n_counters,), and on a machine its shapes, say by one view: without
    reasons and conditions. evidence: of a group, what its programs say of each workload."""
    near = view.neighbours.near(moments, shapes)
    by_likeness = sorted(near.items(), key=lambda item: (item[1].unlikeness, item[0]))
    nearest = tuple(Nearest(workload, how_near.unlikeness) for workload, how_near in by_likeness)
    strangeness = view.neighbours.strangeness(near)
    if view.presence is None:  # a group is one workload: the nearest, or something unknown
        workload, rest, has_rest = nearest[0].workload, *view.rest(None, strangeness)
        if evidence:
            rests = [
                (
                    weighed(view.rest(None, strange)[0], view.rest_alone.limit, evidence.get(other, ProgramEvidence())),
                    place,
                    other,
                )
                for place, (other, _) in enumerate(nearest)
                for strange in [view.neighbours.strangeness({other: near[other]})]
            ]
            rest, _, workload = min(rests)
            has_rest = rest > EVEN
        if has_rest:
            return _unknown(run_id, rest, nearest, name)
        present: tuple[Present, ...] = (Present(workload, 1.0, 1 - rest),)
    else:
        best = best_sum(sums_of(moments[: len(view.counters)], view.library), view.library)
        if best is None or not best.parts:
            return _unknown(run_id, 1.0, nearest, name)
        rest, has_rest = view.rest(best, strangeness)
        probabilities = view.presence.probability(presence_features(best, near)).tolist()
        present = _present(best, probabilities, has_rest=has_rest)
        if len(best.parts) == 1 and not (has_rest and present):  # alone: known, or something unknown
            rest = float(probability_of(log_odds(rest) - log_odds(probabilities[0])))
            if has_rest or rest > MOST_UNKNOWN:
                return _unknown(run_id, rest, nearest, name)
            present = (Present(nearest[0].workload, 1.0, 1 - rest),)  # single runs tell it better than fingerprints do
        if not present:
            return _unknown(run_id, rest if has_rest else 1 - max(probabilities), nearest, name)
    if not evidence:
        n_workloads = len(view.library.names)
        most = min(surest(n_workloads, n_workloads), surest(*view.named))
        present = tuple(part._replace(probability=min(part.probability, most)) for part in present)
    main = present[0]
    return Identification(
        run_id=run_id,
        statement="known and something unknown" if has_rest else "known",
        workload=main.workload,
        confidence=main.probability,
        is_known=True,
        unknown_score=rest,
        present=present,
        nearest=nearest,
        reasons=(),
        proxy=None,
        view=name,
    )


def surest(n_right: int, n_tried: int) -> float:
    """The most that counters can say for a name, by the rule of succession with Jeffreys' prior.

    Each learned workload was a stranger once, when it was left out in turn; the next stranger may be like a known one,
    as none of them was. And each learned run was asked about once, when it was held out: names are right as often as
    they were then. Where none could be held out, even odds are the most."""
    return (n_right + 0.5) / (n_tried + 1)


def _present(best: Sum, probabilities: Sequence[float], *, has_rest: bool) -> tuple[Present, ...]:
    """The parts that are named, the largest weight first; where nothing unknown is left, the first one always."""
    total = max(sum(part.share for part in best.parts), LEAST_SHARE)
    merged: dict[str, Present] = {}
    for at, (part, probability) in enumerate(zip(best.parts, probabilities, strict=True)):
        is_main = at == 0 and not has_rest
        if is_main or (probability >= LEAST_PROBABILITY[has_rest] and part.weight >= LEAST_WEIGHT):
            before = merged.get(part.workload, Present(part.workload, 0.0, 0.0))
            share, surer = before.share + part.share / total, max(before.probability, probability)
            merged[part.workload] = Present(part.workload, share, surer)
    return tuple(merged.values())


def _unknown(run_id: str, score: float, nearest: tuple[Nearest, ...], name: ViewName) -> Identification:
    proxy = next((near.workload for near in nearest if near.workload != IDLE), None)
    return Identification(run_id, "unknown", None, score, False, score, (), nearest, (), proxy, name)


def _with_conditions(answer: Identification, run: Telemetry, model: Model) -> Identification:
    """The answer with what others took of the machine, whether it is idle, and what would make it surer."""
    [measured] = means_of([run], run.counters)
    means = {counter.name: float(value) for counter, value in zip(run.counters, measured, strict=True)}
    busy, idle, stolen, own, switches = (_total(means, part) for part in (BUSY, IDLE_TIME, STOLEN, OWN, SWITCHES))
    whole = busy + idle + (stolen or 0.0) if busy is not None and idle is not None else 0.0
    foreign_share = max(0.0, busy - own) / whole if whole and busy is not None and own is not None else None
    stolen_share = stolen / whole if whole and stolen is not None else None
    n_cores = sum(bool(OF_ONE.fullmatch(name)) for name in means) if OF_ALL in means else whole
    if answer.view == "own":
        works, is_still = own, (switches or 0.0) < IDLE_SWITCHES  # not counted: the cores decide
    else:
        works = busy / whole if whole and busy is not None else None
        is_still = works is not None and n_cores > 0 and works * n_cores < IDLE_MACHINE
    if works is not None and works < IDLE_CORES and is_still and answer.workload != IDLE:
        answer = replace(
            answer, statement="idle", workload=IDLE, is_known=True, confidence=1 - works / IDLE_CORES / 2, present=(),
            unknown_score=0.0, proxy=None,
        )  # fmt: skip
    elif answer.workload == IDLE and len(answer.present) == 1:
        answer = replace(answer, statement="idle")
    surer = []
    if (
        answer.view == "machine"
        and works is not None
        and works < IDLE_CORES
        and not n_cores
        and answer.workload != IDLE
    ):
        surer.append("how many cores the machine has (sar -P ALL): it may be idle")
    if answer.view == "machine" and "own" in model.views:
        has_group = any(counter.scope == "workload" for counter in run.counters)  # and too little of it is counted
        apart = "a control group for it alone (systemd-run --scope PROGRAM)"
        group = "the counters of the workload's own control group (--subject PID or CGROUP)"
        surer.append(apart if has_group else group)
    if max(foreign_share or 0.0, stolen_share or 0.0) > CROWDED_SHARE:
        surer.append("the same while others take less of the machine")
    if run.n_samples and round(run.duration_s) < SHORT_S:
        surer.append(f"at least {SHORT_S:g} s of it")
    if answer.statement in ("unknown", "known and something unknown"):
        surer.append("labelled runs of it, if it is one of yours")
    elif answer.present and answer.confidence == surest(*(named := model.views[answer.view].named)):
        n_right, n_tried = named
        tried = f"of {n_tried} that were held out {n_right} were named rightly" if n_tried else "none could be held out"
        surer.append(f"more labelled runs of each workload: {tried}")
    elif answer.present and answer.confidence == surest(n_known := len(model.workloads), n_known):
        surer.append(f"more learned workloads: of {n_known} the counters make no name surer")
    return replace(answer, foreign_share=foreign_share, stolen_share=stolen_share, surer=tuple(surer))


def _total(means: Mapping[str, float], part: re.Pattern[str]) -> float | None:
    there = [value for name, value in means.items() if part.fullmatch(name) and np.isfinite(value)]
    return sum(there) if there else None
