"""Groups of machines that are alike: as many as the scores' intervals can tell apart, never more.

    k = the smallest number of groups that the scores do not contradict

Machines are points of log scores, one axis an aspect, in units of the noise of that aspect. Ward's tree gives for each
k the sum of squares W_k that is left inside k groups. Whether k groups are enough is a test: had each group one centre,
how far would W_k still fall by cutting further, by noise alone? Redraws of that noise answer it. The idea of groups,
labels and their use for scheduling: Bader et al., Tarema (2021); its variant stands in tarema.py, for comparison."""

import re
import shlex
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.special import softmax
from scipy.stats import norm

from tasks.advice.machines import Floats, Ints
from tasks.advice.params import MachineGroupParams
from tasks.errors import BadInput, quoted

ALL_ASPECTS = "all"  # nodes' row of one number from all aspects: no aspect itself
APART = 1e6  # noise deviations between the centres of redrawn groups: no noise bridges it
N_WHITENINGS = 3  # rounds of cutting the tree and measuring the noise inside its groups; it settles in two
N_DEEPER, N_CUTS = 3, 2  # how many groups more are tried where noise is estimated, and rounds of cutting and measuring
DOUBT = 0.05  # a machine is in doubt if it belongs elsewhere with more than this probability
SPLIT_DOUBT = 0.2  # one group more is in doubt if noise looks like it with less than this probability
INTERVAL_CONFIDENCE = 0.95  # of the intervals low to high, as nodes and tables have them
MAX_GROUPS, REDRAWS = 10, 199  # redraws of the noise behind a decision
N_TRIAL_REDRAWS = 20  # a first look: far outside of these, more redraws would change nothing
FAR_OUTSIDE, FAR_INSIDE = 8.0, 0.4  # deviations of the trial redraws; share of them that fall as far
SMALLEST = 1e-12  # in place of a deviation of 0
NAMES = "ABCDEFGHIJ"  # of groups, one for each that there can be
LOW, MEDIUM, HIGH = 0, 1, 2
LEVEL_NAMES = {LOW: "low", MEDIUM: "medium", HIGH: "high"}
NODE_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]*[a-z0-9])?")  # RFC 1123, as Kubernetes wants it
MOST_NODE_CHARS, MOST_LABEL_CHARS = 253, 63
LABEL, MOST_LISTED = "whorl.advice", 6


@dataclass(frozen=True)
class ScoreTable:
    """Scores of machines, sorted by name. log_scores, deviations: (n, d), natural logarithm; deviations are standard
    errors, 0 where nobody gives an interval. has_intervals: whether every aspect has one of at least one machine."""

    machines: tuple[str, ...]
    aspects: tuple[str, ...]
    log_scores: Floats
    deviations: Floats
    has_intervals: bool


@dataclass(frozen=True)
class MachineGroup:
    """One kind of machines, named A for the best, B, …

    scores: geometric mean of its machines by aspect. levels: 0 low, 1 medium, 2 high, by aspect, among the groups."""

    name: str
    machines: tuple[str, ...]
    scores: dict[str, float]
    levels: dict[str, int]


@dataclass(frozen=True)
class Doubt:
    """A machine that may as well belong to another group than its own: probability of the group that it is in."""

    machine: str
    group: str
    other: str
    probability: float


@dataclass(frozen=True)
class Grouping:
    """Groups, best first, and how sure they are.

    last_split_p, next_split_p: how probable it is that by noise alone one group fewer looks like these, and these look
    like one more. doubts: machines between two groups.
    noise_ratios: what a score of a machine is taken to vary by, by aspect. would_not_show_ratios: kinds as large as
    half of the largest group that differ by less, in that aspect alone, would not show. is_noise_estimated: nobody
    gives intervals, so that the noise is what is left inside the groups."""

    groups: tuple[MachineGroup, ...]
    doubts: tuple[Doubt, ...]
    last_split_p: float
    next_split_p: float
    noise_ratios: dict[str, float]
    would_not_show_ratios: dict[str, float]
    is_noise_estimated: bool

    @property
    def group_of(self) -> dict[str, str]:
        """The name of the group of each machine."""
        return {machine: group.name for group in self.groups for machine in group.machines}

    @property
    def cannot_be_told_apart(self) -> bool:
        """Whether some of the answer is open: one group only, a machine between two, or one more group nearly shown."""
        return len(self.groups) == 1 or bool(self.doubts) or self.next_split_p < SPLIT_DOUBT

    @property
    def sentence(self) -> str:
        """The answer in words: how many kinds, which, and what cannot be told apart."""
        n, k, less = len(self.group_of), len(self.groups), ""
        if self.would_not_show_ratios:
            aspect, ratio = min(self.would_not_show_ratios.items(), key=lambda item: item[1])
            less = f"; kinds that differ by less than {_percent(ratio)}, such as in {aspect}, would not show"
        if k == 1:
            return f"{n} machines cannot be told apart: one kind, as far as the scores say{less}"
        kinds = ", ".join(f"{group.name} ({_listed(group.machines)})" for group in self.groups)
        text = f"{n} machines are of {k} kinds: {kinds}"
        for other in dict.fromkeys(doubt.other for doubt in self.doubts):
            machines = [doubt.machine for doubt in self.doubts if doubt.other == other]
            text += f"; {_listed(machines)} cannot be told apart from {other}"
        if self.next_split_p < SPLIT_DOUBT:
            text += f"; there may be {k + 1} kinds, which cannot be told apart yet: benchmark each machine more often"
        return text + less

    @property
    def certainty(self) -> str:
        """How sure the number of kinds is, in words."""
        estimated = "what is left inside the groups, as nobody gives intervals"
        rests_on = estimated if self.is_noise_estimated else "intervals"
        k, n = len(self.groups), len(self.group_of)
        fewer = f"{k - 1 or 'one'} would look like this by noise with probability {self.last_split_p:.2g} at most"
        more = f"noise alone makes {k} look like {k + 1} with probability {self.next_split_p:.2g}"
        single = "each machine is a kind of its own"
        text = "; ".join([fewer] * (k > 1) + [single if k == n else more])
        noise = f"a score is taken to vary by {_percent(max(self.noise_ratios.values()))} or less, from {rests_on}"
        return f"{text}; {noise}"

    @property
    def reasons(self) -> tuple[str, ...]:
        """What tells each group from the next: the aspect with the largest ratio."""
        sentences = []
        for better, worse in pairwise(self.groups):
            ratios = {aspect: better.scores[aspect] / worse.scores[aspect] for aspect in better.scores}
            aspect = max(ratios, key=lambda name: abs(np.log(ratios[name])))
            sentences.append(f"{better.name} scores {ratios[aspect]:.3g} times as much as {worse.name} in {aspect}")
        return tuple(sentences)

    def as_json(self) -> dict[str, Any]:
        """Plain values for JSON, the answer first."""
        return {
            "answer": self.sentence,
            "certainty": self.certainty,
            "reasons": list(self.reasons),
            "n_machines": len(self.group_of),
            "n_groups": len(self.groups),
            "cannot_be_told_apart": self.cannot_be_told_apart,
        } | asdict(self)


def group_machines(scores: pd.DataFrame, params: MachineGroupParams | None = None) -> Grouping:
    """Group machines by their scores: as many groups as differ by more than the scores' intervals.

    scores: one row a machine (column machine or node) and aspect, score > 0, more is better, in any unit; low and high,
    or several rows of a machine and aspect (executions), say how sure a score is. Without either the noise is estimated
    from what is left inside the groups: that needs machines that are alike.
    Raises BadInput for one machine, a machine without an aspect that others have, or a score that is not above 0."""
    params = params or MachineGroupParams()
    table = score_table(scores)
    rng = np.random.default_rng(params.seed)
    last, p = 1.0, 1.0
    n = len(table.machines)  # without intervals the noise needs at least two machines that share a group
    for k in range(1, max(1, min(MAX_GROUPS, n if table.has_intervals else n - 2)) + 1):
        cut = _cut(table, k, params)
        last, p = p, _p_of_next_split(table, cut, params, rng)
        if p > 1 - params.confidence:
            break
    return _grouping(table, cut, (last, p), params)


def score_table(scores: pd.DataFrame) -> ScoreTable:
    """Check scores and put them in a table of log scores and their standard errors. Raises BadInput."""
    rows = _checked(scores)
    rows = rows.assign(log_score=np.log(rows["score"]))
    cells = rows.groupby(["machine", "aspect"])["log_score"].agg(["mean", "size", "var"])
    values, sizes = cells["mean"].unstack("aspect"), cells["size"].unstack("aspect")  # noqa: PD010
    if values.isna().any(axis=None):
        machine, aspect = values.stack(future_stack=True).isna().idxmax()  # type: ignore[misc]  # noqa: PD013
        raise BadInput(
            f"machine {quoted(str(machine))}", f"no score of aspect {quoted(str(aspect))}", "a score of every aspect",
            "leave out the machine or the aspect",
        )  # fmt: skip
    z = norm.ppf((1 + INTERVAL_CONFIDENCE) / 2)
    low_high = np.log(rows["high"] / rows["low"]) / (2 * z)
    interval_errors = low_high.groupby([rows["machine"], rows["aspect"]]).mean().unstack("aspect")  # noqa: PD010
    interval_errors = interval_errors.reindex_like(values)
    within = cells["var"].mul(cells["size"] - 1).groupby("aspect").sum()  # NaN of single executions counts as nothing
    freedom = (cells["size"] - 1).groupby("aspect").sum()
    pooled = np.sqrt(within / freedom.where(freedom > 0))
    errors = interval_errors.fillna(pooled / np.sqrt(sizes))
    errors = errors.fillna(errors.median())
    return ScoreTable(
        tuple(map(str, values.index)),
        tuple(map(str, values.columns)),
        values.to_numpy(np.float64),
        errors.fillna(0.0).to_numpy(np.float64),
        bool(errors.notna().all(axis=None)),
    )


def _checked(scores: pd.DataFrame) -> pd.DataFrame:
    """machine, aspect, score, low, high as text and numbers."""
    rows = scores.rename(columns={"node": "machine"}) if "machine" not in scores else scores
    rows = rows.reindex(columns=["machine", "aspect", "score", "low", "high"])
    rows = rows.assign(machine=rows["machine"].astype(str), aspect=rows["aspect"].astype(str))
    for name in ("score", "low", "high"):
        rows[name] = pd.to_numeric(rows[name], errors="coerce").astype(np.float64)
    is_bad = ~(np.isfinite(rows["score"]) & (rows["score"] > 0))
    is_bad |= (rows["low"] <= 0) | (rows["low"] > rows["score"]) | (rows["high"] < rows["score"])
    if is_bad.any():
        row = rows[is_bad].iloc[0]
        where = f"machine {quoted(row['machine'])}, aspect {quoted(row['aspect'])}"
        problem = f"score {row['score']:g} with interval {row['low']:g} to {row['high']:g}"
        raise BadInput(where, problem, "a finite score above 0 inside its interval", "correct or leave out the row")
    if rows["machine"].nunique() < 2:
        raise BadInput("scores", f"{rows['machine'].nunique()} machine", "at least 2 machines", "add those to compare")
    return rows


@dataclass(frozen=True)
class _Cut:
    """Ward's tree cut at k groups. points: (n, d) log scores in units of the noise; noise: (d,) that unit as a log
    score; groups: (n,) numbers from 0."""

    points: Floats
    noise: Floats
    groups: Ints

    @property
    def k(self) -> int:
        return int(self.groups.max()) + 1


def _floor(table: ScoreTable, params: MachineGroupParams) -> Floats:
    """Deviation of each log score that is known beforehand: interval, and spread of machines of one type. (n, d)"""
    return np.hypot(table.deviations, np.log1p(params.spread_ratio))


def _cut(table: ScoreTable, k: int, params: MachineGroupParams) -> _Cut:
    """Cut Ward's tree of the whitened scores at k; where noise is estimated, from both usual scalings, the better."""
    floor = np.sqrt((_floor(table, params) ** 2).mean(axis=0))
    x = table.log_scores
    if table.has_intervals:
        return _tree(x, floor, k)
    lowest = np.maximum(floor, SMALLEST)
    starts = [np.ones(x.shape[1]), np.maximum(x.std(axis=0), lowest)]
    cuts = []
    for noise in starts:
        cut = _tree(x, noise, k)
        for _ in range(N_WHITENINGS):
            cut = _tree(x, np.maximum(_within_deviation(x, cut.groups), lowest), k)
        cuts.append(cut)
    return min(cuts, key=lambda cut: float(np.log(cut.noise).sum()))


def _tree(x: Floats, noise: Floats, k: int) -> _Cut:
    points = x / noise
    tree = linkage(points, "ward")
    names = fcluster(tree, k, "maxclust")
    return _Cut(points, noise, np.unique(names, return_inverse=True)[1].astype(np.int64))


def _centres(points: Floats, groups: Ints) -> Floats:
    belongs = np.eye(int(groups.max()) + 1)[groups]  # (n, k)
    return np.asarray((belongs.T @ points) / belongs.sum(axis=0)[:, None])


def _within_deviation(x: Floats, groups: Ints) -> Floats:
    """Deviation inside the groups by aspect: (d,), 0 where every machine is a group."""
    squares = ((x - _centres(x, groups)[groups]) ** 2).sum(axis=0)
    return np.asarray(np.sqrt(squares / max(1, len(x) - groups.max() - 1)))


def _p_of_next_split(table: ScoreTable, cut: _Cut, params: MachineGroupParams, rng: np.random.Generator) -> float:
    """How probable it is that noise around the centres of the cut looks as if there were more groups.

    Known noise: the drop of W_k against redraws of just that noise. Estimated noise: that, and the likelihood ratio,
    which no unit changes, against redraws correlated as the scores are inside the groups; both must be improbable."""
    n, k = len(table.machines), cut.k
    if k >= n or (k >= n - 1 and not table.has_intervals):
        return 1.0
    floor = _floor(table, params)
    unit = np.maximum(np.sqrt((floor**2).mean(axis=0)), SMALLEST)  # of what is known, not of what the cut has left
    floor, points, deeper = floor / unit, table.log_scores / unit, min(n, max(MAX_GROUPS, k + 1))

    def by_noise() -> Floats:
        return _drops(linkage(np.hstack([floor * rng.standard_normal(floor.shape), place]), "ward"), k, deeper)

    place = _places(cut.groups)
    known = _p_of(_drops(linkage(np.hstack([points, place]), "ward"), k, deeper), by_noise)
    if table.has_intervals or known > 1 - params.confidence:
        return known
    root = np.linalg.cholesky(_shrunk_correlation(cut))
    deeper = min(n - 1, k + N_DEEPER)

    def by_shape() -> Floats:
        return _log_drops(rng.standard_normal(cut.points.shape) @ root.T, cut.groups, deeper)

    return max(known, _p_of(_log_drops(cut.points, cut.groups, deeper), by_shape))


def _places(groups: Ints) -> Floats:
    """A further axis on which the groups are so far apart that a tree joins them last: (n, 1)."""
    return np.asarray(APART * len(groups) * groups[:, None], dtype=np.float64)


def _drops(tree: Floats, k: int, deeper: int) -> Floats:
    """How far the sum of squares inside k groups falls by k + 1, …, deeper: (deeper - k,)."""
    left = np.concatenate([[0.0], np.cumsum(tree[:, 2] ** 2 / 2)])[len(tree) + 1 - np.arange(k, deeper + 1)]
    return np.asarray(left[0] - left[1:])


def _log_drops(points: Floats, groups: Ints, deeper: int) -> Floats:
    """How far the logarithms of the sums of squares of the aspects fall together, inside 1, 2, … groups more.

    The likelihood ratio of normal scores with an unknown noise in each aspect. The groups are cut further, never
    joined, by Ward's tree in units of the noise that a cut leaves: first that of the groups, then its own."""
    place, k = _places(groups), int(groups.max()) + 1
    whole = np.log(_squares(points, groups)).sum()
    drops = []
    for more in range(k + 1, deeper + 1):
        inner = groups
        for _ in range(N_CUTS):
            noise = np.sqrt(_squares(points, inner))
            tree = linkage(np.hstack([points / noise * np.sqrt(len(points)), place]), "ward")
            inner = fcluster(tree, more, "maxclust").astype(np.int64) - 1
        drops.append(whole - np.log(_squares(points, inner)).sum())
    return np.array(drops)


def _squares(points: Floats, groups: Ints) -> Floats:
    """Sums of squares around the centres, by aspect: (d,), above 0."""
    return np.asarray(np.maximum(((points - _centres(points, groups)[groups]) ** 2).sum(axis=0), SMALLEST))


def _shrunk_correlation(cut: _Cut) -> Floats:
    """Correlation of the aspects inside the groups, drawn towards none as far as there are few machines: (d, d)."""
    inside = cut.points - _centres(cut.points, cut.groups)[cut.groups]
    deviation = np.maximum(inside.std(axis=0), SMALLEST)
    d, freedom = inside.shape[1], max(1, len(inside) - cut.k)
    weight = freedom / (freedom + 1)
    correlation = (inside / deviation).T @ (inside / deviation) / len(inside)
    return np.asarray(weight * correlation + (1 - weight) * np.eye(d))


def _p_of(seen: Floats, redraw: Callable[[], Floats]) -> float:
    """Share of redraws that fall at least as far, at the depth where it is furthest, in deviations of the redraws."""

    def furthest(each: Floats, drawn: Floats) -> Floats:
        return np.asarray(((each - drawn.mean(axis=0)) / np.maximum(drawn.std(axis=0), SMALLEST)).max(axis=-1))

    def p_value(drawn: Floats) -> float:
        return float((1 + (furthest(drawn, drawn) >= furthest(seen, drawn)).sum()) / (len(drawn) + 1))

    drawn = np.stack([redraw() for _ in range(N_TRIAL_REDRAWS)])
    if furthest(seen, drawn) > FAR_OUTSIDE:
        return 1 / (REDRAWS + 1)
    if p_value(drawn) > FAR_INSIDE:
        return p_value(drawn)
    return p_value(np.concatenate([drawn, [redraw() for _ in range(REDRAWS - N_TRIAL_REDRAWS)]]))


def _grouping(table: ScoreTable, cut: _Cut, split_p: tuple[float, float], params: MachineGroupParams) -> Grouping:
    """Name the groups, best first by the mean of their log scores, and say what is in doubt."""

    def by_aspect(values: Floats | Ints) -> dict[str, Any]:
        return dict(zip(table.aspects, values.tolist(), strict=True))

    centres = _centres(table.log_scores, cut.groups)
    order = np.lexsort((*centres.T, centres.mean(axis=1)))[::-1]
    centres, place = centres[order], np.argsort(order)[cut.groups]  # 0 for the machines of the best group
    sorted_cut = _Cut(cut.points, cut.noise, place)
    variances = np.maximum((_floor(table, params) / cut.noise) ** 2, 0 if table.has_intervals else 1)
    sizes = np.bincount(place)
    errors = np.sqrt((variances * cut.noise**2).mean(axis=0)) / np.sqrt(sizes)[:, None]  # of the centres, in log scores
    levels = np.stack(
        [_levels_of_centres(at, error, params) for at, error in zip(centres.T, errors.T, strict=True)], axis=1
    )
    groups = []
    for number, centre in enumerate(centres):
        members = tuple(np.array(table.machines)[place == number].tolist())
        groups.append(MachineGroup(NAMES[number], members, by_aspect(np.exp(centre)), by_aspect(levels[number])))
    hidden = by_aspect(np.expm1(_smallest_shown(sorted_cut, variances, params) * cut.noise)) if sizes.max() > 1 else {}
    noise = by_aspect(np.expm1(np.sqrt(variances.mean(axis=0)) * cut.noise))
    doubts = _doubts(table, sorted_cut, variances)
    return Grouping(tuple(groups), doubts, *split_p, noise, hidden, not table.has_intervals)


def _doubts(table: ScoreTable, cut: _Cut, variances: Floats) -> tuple[Doubt, ...]:
    """Machines whose probability of another group exceeds DOUBT, given the centres of the other machines.

    Normal densities around the centres, weighted by the sizes of the groups; the machine itself does not count in the
    centre of its own group. A machine that is a group by itself is compared with what noise usually gives."""
    n, d = cut.points.shape
    sizes, sums = np.bincount(cut.groups), np.stack([cut.points[cut.groups == g].sum(axis=0) for g in range(cut.k)])
    doubts = []
    for i in range(n):
        group, is_own = cut.groups[i], np.arange(cut.k) == cut.groups[i]
        rest = sizes - is_own  # machines of each group but this one
        n_rest = np.maximum(rest, 1)[:, None]
        centres = (sums - is_own[:, None] * cut.points[i]) / n_rest
        spread = variances[i] * (1 + 1 / n_rest)  # (k, d)
        squares = ((cut.points[i] - centres) ** 2 / spread).sum(axis=1)
        squares[group] = squares[group] if rest[group] else d
        p = softmax(np.log(sizes) - squares / 2 - np.log(spread).sum(axis=1) / 2)
        if 1 - p[group] > DOUBT:
            other = int(np.where(is_own, -1, p).argmax())
            doubts.append(Doubt(table.machines[i], NAMES[group], NAMES[other], float(p[group])))
    return tuple(doubts)


def _smallest_shown(cut: _Cut, variances: Floats, params: MachineGroupParams) -> float:
    """Difference of two halves of the largest group that noise would rarely give, in units of the cut's noise.

    Halves of n machines that differ by δ add n δ² / 4 to the sum of squares."""
    rng = np.random.default_rng(params.seed)
    size = int(np.bincount(cut.groups).max())
    deviation = np.sqrt(variances.mean(axis=0))
    drawn = [linkage(deviation * rng.standard_normal((size, len(deviation))), "ward") for _ in range(REDRAWS)]
    needed = np.quantile([tree[-1, 2] ** 2 / 2 for tree in drawn], params.confidence)
    return float(2 * np.sqrt(needed / size))


def quartile_levels(values: Sequence[float] | Floats) -> Ints:
    """Level of each value: low up to the first quartile, high from the third on, else medium; all alike are medium.

    Quartiles at position p (n + 1) / 100, as commons-math has them. Source: Tarema, labels of groups and of tasks."""
    x = np.asarray(values, dtype=np.float64)
    first, third = np.percentile(x, [25, 75], method="weibull")
    levels = np.where(x <= first, LOW, np.where(x >= third, HIGH, MEDIUM))
    return np.full(len(x), MEDIUM) if x.min() == x.max() else levels


def _levels_of_centres(centres: Floats, errors: Floats, params: MachineGroupParams) -> Ints:
    """Levels of the groups in one aspect, from log scores and their errors: (k,).

    Groups that this aspect does not tell apart share a level: sorted centres are joined while the gap to the next is
    within the noise, and the quartiles are those of the joined centres. Tarema's own calls one of two groups low and
    the other high however little they differ."""
    order = np.argsort(centres)
    gaps = np.diff(centres[order])
    needed = norm.ppf(params.confidence) * np.hypot(errors[order][1:], errors[order][:-1])
    plateau = np.concatenate([[0], np.cumsum(gaps > needed)])
    heights = np.array([centres[order][plateau == at].mean() for at in range(plateau[-1] + 1)])
    levels = np.empty(len(centres), dtype=np.int64)
    levels[order] = quartile_levels(heights)[plateau]
    return levels


def _listed(names: Sequence[str]) -> str:
    if len(names) > MOST_LISTED:
        return f"{', '.join(names[: MOST_LISTED - 1])} and {len(names) - MOST_LISTED + 1} more"
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def _percent(ratio: float) -> str:
    return f"{100 * ratio:.2g} %"


def kubectl_script(grouping: Grouping) -> str:
    """A shell script that labels the nodes of a Kubernetes cluster with their group and its level in each aspect.

    Raises BadInput if a machine's name cannot be that of a Kubernetes node."""
    lines = ["#!/bin/sh", "set -e"]
    for group in grouping.groups:
        labels = {"group": group.name} | {aspect: LEVEL_NAMES[level] for aspect, level in group.levels.items()}
        keys = _label_names(list(labels))
        label_args = " ".join(shlex.quote(f"{LABEL}/{keys[name]}={value}") for name, value in labels.items())
        for machine in group.machines:
            if not NODE_NAME.fullmatch(machine) or len(machine) > MOST_NODE_CHARS:
                raise BadInput(
                    f"machine {quoted(machine)}", "no Kubernetes node can have this name",
                    "small letters, digits, dots and dashes", "name machines as `kubectl get nodes` does",
                )  # fmt: skip
            lines.append(f"kubectl label --overwrite node {shlex.quote(machine)} {label_args}")
    return "\n".join(lines) + "\n"


def _label_names(names: Sequence[str]) -> dict[str, str]:
    """Names that Kubernetes takes for labels, different where the names are: by name."""
    made: dict[str, str] = {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_.-]+", "-", name)[: MOST_LABEL_CHARS - 3].strip("_.-") or "aspect"
        number = sum(re.fullmatch(re.escape(plain) + r"(-\d+)?", other) is not None for other in made.values())
        made[name] = f"{plain}-{number + 1}" if number else plain
    return made
