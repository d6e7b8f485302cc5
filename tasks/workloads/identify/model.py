"""What is learned from labelled runs and kept: known fingerprints, and how far to trust what is said by them.

There is a view on the counters of a workload's own control group, and one on those of the machine. What is alone is
named by the known runs near it, and a group is one workload: the nearest, or something that nobody has learned. On the
machine, runs are explained by known fingerprints that add up. Small logistic models turn what is left into
probabilities: is this part there, and is there something else? They learn from training runs, on the machine superposed
on each other, with their own workload or their partner's left out of what is known, rounds held out in turn: so from
conditions like those of a shared machine, and from workloads that were not known. A group is known by whole runs and by
their later halves, and by inputs held out in turn: who asks what runs in it comes in the middle, and the program is at
work on something else than it was then.

identify.json     parameters, counters, labels, programs, and what the logistic models weigh
arrays.parquet    one row an array: name, shape, values"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from tasks.errors import BadInput
from tasks.workloads.identify.counters import (
    IDLE,
    N_SHAPES,
    OWN_BUSY,
    QUIET,
    common_counters,
    condition_of,
    moments_of,
    shapes_of,
)
from tasks.workloads.identify.fingerprints import (
    LEAST_DISTANCE,
    Library,
    Likeness,
    Near,
    Neighbours,
    Sum,
    best_sum,
    even_sample,
    learn_library,
    learn_likeness,
    learn_neighbours,
    sums_of,
    superpose,
)
from tasks.workloads.identify.logistic import Logistic, fit_logistic, log_odds, probability_of
from tasks.workloads.identify.programs import learn_programs
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Counter, FloatArray, Telemetry

ViewName = Literal["own", "machine"]
VIEWS: tuple[ViewName, ...] = ("own", "machine")  # the first that a run has the counters for answers
COMPANY = (0.1, 0.3, 1.0, 1.0)  # weights of a second workload on the machine, in training
LEAST_HALF = 10  # samples of a later half that is learned like a whole run
REST_WEIGHT = 0.25  # of an unknown partner from which on there is something unknown besides
MOST_CASES = 120  # training runs that are superposed
N_FOLDS = 5
LEAST_ROUNDS = 2
LEAST_SHARE = 1e-6
LEAST_CORES = 1e-3  # that a group is taken to have used
PENALTY = 0.02  # on the squared weights of what is there and what is not
MOST_IN_A_FOLD = 0.6  # share of the runs
EVEN = 0.5
# share of the runs of each workload that have a counter: not every kernel counts the same of a group
LEAST_MEASURED: dict[ViewName, float] = {"own": 0.75, "machine": 1.0}
GROUP_LIMIT = 0.46  # of a group learned with several inputs: those that were meant to differ are far apart
UNKNOWN_PASSED = 0.02  # share of unknown cases that may pass for known
MAIN, ARRAYS = "identify.json", "arrays.parquet"
FORMAT, VERSION = "whorl.workloads.identify", 14
SCHEMA = pa.schema([("name", pa.string()), ("shape", pa.list_(pa.int64())), ("values", pa.list_(pa.float64()))])
LIBRARY_ARRAYS = ("rows", "floor", "spread", "idle", "is_scaled", "whitening")
N_ALONE = {"own": 1, "machine": 3}  # features of what is not known, where a sum has one part
# of a later session, that telemetry without rounds has not shown: known runs are twice as far from all that is known
DRIFT = np.log([2.0, 1.0, 2.0])
PLAIN_SHARE = 0.6  # of the log odds of something unknown, by the plain distance
N_IN_COMPANY = 5  # and where it has more
N_PRESENCE = 7  # of what speaks for a part
LOGISTICS = ("rest_alone", "presence", "rest_in_company")
NEIGHBOUR_ARRAYS = ("logs", "floor", "whitening", "usual", "shapes", "shape_spread", "plain_logs", "plain_floor")
LOGISTIC_ARRAYS = ("centre", "deviation", "weights")


@dataclass(frozen=True)
class Rest:
    """How probable something unknown is, and the limit above which it is said."""

    score: Logistic
    limit: float


@dataclass(frozen=True)
class View:
    """What is known on some counters. neighbours: known runs, by what seen_moments and shapes_of give. rest_alone: of
    something unknown, where there is one workload. named: of the learned runs that were held out in turn, how many the
    others named rightly, and how many there were. Of a machine also: presence, of a part of a sum; rest_in_company: of
    something unknown, where a sum has more than one part."""

    counters: tuple[Counter, ...]
    library: Library
    neighbours: Neighbours
    rest_alone: Rest
    named: tuple[int, int]
    presence: Logistic | None = None
    rest_in_company: Rest | None = None

    @property
    def weights(self) -> FloatArray:
        """What each counter weighs in telling workloads apart, (n_counters,): on a machine all the same."""
        return np.ones(len(self.counters)) if self.presence else np.diag(self.neighbours.whitening)

    def rest(self, best: Sum | None, strangeness: tuple[float, float, float]) -> tuple[float, bool]:
        """Probability that something unknown runs besides the parts of a sum, and whether it is said. best: None for a
        group."""
        judge = self.rest_alone
        if best is None:
            features = group_features(strangeness)
        else:
            features = rest_features(best, strangeness)
            judge = self.rest_in_company if len(best.parts) > 1 and self.rest_in_company else judge
        probability = float(judge.score.probability(features[None])[0])
        return probability, probability > judge.limit


@dataclass(frozen=True)
class Model:
    """views: by name, at least one. learned_ids: all training runs. programs: by workload, see `learn_programs`."""

    params: IdentifyParams
    views: dict[ViewName, View]
    learned_ids: tuple[str, ...]
    programs: Mapping[str, Mapping[str, float]]

    @property
    def workloads(self) -> tuple[str, ...]:
        """The known workloads, sorted."""
        return next(iter(self.views.values())).library.names


def fit_model(runs: Sequence[Telemetry], params: IdentifyParams) -> Model:
    """Learn from labelled runs; their order, and that of their counters, changes nothing.

    Raises BadInput without a run, for one without a label, and if the runs have no counter in common."""
    ordered = sorted(runs, key=lambda run: (str(run.workload), run.run_id))
    for run in ordered:
        if run.workload is None:
            raise BadInput(f"run {run.run_id}", "has no workload", "labelled runs to learn from", "name what ran")
    counters = {name: common_counters(ordered, name, LEAST_MEASURED[name]) for name in VIEWS}
    if not any(counters.values()):
        problem = "no counter in common that does not give the session away"
        raise BadInput(f"{len(runs)} runs", problem, "runs sampled in the same way", "leave out those that differ")
    fit = {"own": _fit_group, "machine": _fit_machine}
    learned = {name: fit[name](ordered, shared, params) for name, shared in counters.items() if shared}
    return Model(params, learned, tuple(run.run_id for run in ordered), learn_programs(ordered))


def seen_moments(runs: Sequence[Telemetry], counters: Sequence[Counter]) -> FloatArray:
    """What views compare: (n_runs, 2 n_counters), means, and beside them deviations; of a group instead what it does
    with a second of a core, its rates over the cores that it used, as others decide how much of the machine it gets.
    NaN: not measured."""
    moments = moments_of(runs, counters)
    if not any(counter.scope == "workload" for counter in counters):
        return moments
    means = moments[:, : len(counters)]
    is_busy = [counter.name in OWN_BUSY for counter in counters]
    cores = np.nansum(means[:, is_busy], axis=1, keepdims=True) if any(is_busy) else np.ones((len(runs), 1))
    is_rate = [counter.is_rate for counter in counters]
    return np.hstack([means, np.where(is_rate, means / np.maximum(cores, LEAST_CORES), means)])


def presence_features(best: Sum, near: Mapping[str, Near]) -> FloatArray:
    """What speaks for each part of a sum, and how far the known runs of its workload are, over those of the nearest
    other one: (n_parts, N_PRESENCE). near: as Neighbours.near gives them."""

    def apart(workload: str) -> float:
        others = [how_near.distance for other, how_near in near.items() if other != workload]
        of_workload, of_next = (
            max(distance, LEAST_DISTANCE) for distance in (near[workload].distance, min(others, default=np.inf))
        )
        return float(np.log(of_workload / of_next)) if others else 0.0

    return np.array(
        [
            [
                np.log1p(max(part.gain, 0.0)),
                np.log1p(best.cost),
                part.share,
                np.log1p(part.purity),
                abs(np.log(part.weight)),
                float(len(best.parts)),
                apart(part.workload),
            ]
            for part in best.parts
        ]
    ).reshape(len(best.parts), N_PRESENCE)


def group_features(strangeness: tuple[float, float, float]) -> FloatArray:
    """What speaks for something unknown in a group: how far its nearest workload is, over what is usual between rounds,
    (1,). How far the next one is says less of other inputs: they are far from all that is known."""
    return np.array(strangeness[:1])


def rest_features(best: Sum, strangeness: tuple[float, float, float]) -> FloatArray:
    """What speaks for something unknown on the machine besides the parts of a sum.

    Where there is one part, how strange the run is among its neighbours, (3,): it tells the unknown better than what
    the sum costs, which a crowd raises as well. Where there are more, the costs, (5,)."""
    n_parts = len(best.parts)
    if n_parts == 1:
        return np.array(strangeness)
    shares = [part.share + LEAST_SHARE for part in best.parts]
    purity = float(np.average([part.purity for part in best.parts], weights=shares))
    return np.array([*np.log1p([best.cost, best.excess, best.lack, purity]), float(n_parts)])


def folds_of(runs: Sequence[Telemetry], n_folds: int = N_FOLDS) -> NDArray[np.int64]:
    """The block of each run that is held out with it, 0 to n_folds − 1: (n_runs,).

    Runs of one round, and neighbouring windows of one trace, are more alike than runs that will be asked about later.
    Blocks are whole rounds, in their order, where every run has one and no block holds most of the runs; elsewhere
    stretches of each workload's runs in order of time, or of run id where there is no time."""
    rounds = sorted({run.round for run in runs if run.round is not None}, key=lambda name: (len(name), name))
    if len(rounds) >= LEAST_ROUNDS and all(run.round is not None for run in runs):
        place = {name: at * n_folds // max(n_folds, len(rounds)) for at, name in enumerate(rounds)}
        by_round = np.array([place[str(run.round)] for run in runs], dtype=np.int64)
        if np.bincount(by_round).max() <= MOST_IN_A_FOLD * len(runs):
            return by_round

    def time_of(at: int) -> tuple[str, str, float, str]:
        run = runs[at]
        started = run.started_at.isoformat() if run.started_at else ""
        return str(run.machine or ""), started, float(run.at_s[0]) if run.n_samples else 0.0, run.run_id

    folds = np.zeros(len(runs), dtype=np.int64)
    for workload in {run.workload for run in runs}:
        places = [at for at, run in enumerate(runs) if run.workload == workload]
        for rank, at in enumerate(sorted(places, key=time_of)):
            folds[at] = rank * n_folds // len(places)
    return folds


def clusters_of(runs: Sequence[Telemetry]) -> list[str]:
    """What runs must share to be repetitions of each other: workload, and input where it is told."""
    return [f"{run.workload}\n{run.input or ''}" for run in runs]


def save_model(model: Model, folder: Path) -> None:
    """Write a model into a folder, which is made if it is not there. No code is kept."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, FloatArray] = {}
    views: dict[str, Any] = {}
    for name, view in model.views.items():
        arrays |= {f"{name}.{key}": np.asarray(getattr(view.library, key), dtype=float) for key in LIBRARY_ARRAYS}
        arrays |= {f"{name}.neighbours.{key}": getattr(view.neighbours, key) for key in NEIGHBOUR_ARRAYS}
        for part, logistic in _logistics(view).items():
            arrays |= {f"{name}.{part}.{key}": getattr(logistic, key) for key in LOGISTIC_ARRAYS}
        rests = [rest for rest in (view.rest_alone, view.rest_in_company) if rest]
        views[name] = {
            "counters": [asdict(counter) for counter in view.counters],
            "workloads": list(view.library.workloads),
            "neighbours": list(view.neighbours.workloads),
            "n_prototypes": view.library.n_prototypes,
            "most_parts": view.library.most_parts,
            "intercepts": [logistic.intercept for logistic in _logistics(view).values()],
            "limits": [rest.limit for rest in rests],
            "named": view.named,
        }
    rows = [
        {"name": name, "shape": list(array.shape), "values": np.asarray(array, dtype=float).ravel()}
        for name, array in sorted(arrays.items())
    ]
    pq.write_table(pa.Table.from_pylist(rows, schema=SCHEMA), folder / ARRAYS, compression="zstd")
    main = {"format": FORMAT, "version": VERSION, "params": model.params.model_dump(mode="json"), "views": views}
    main |= {"programs": model.programs, "learned": model.learned_ids}
    (folder / MAIN).write_text(json.dumps(main, indent=1), encoding="utf-8")


def load_model(folder: Path) -> Model:
    """What save_model wrote; it gives the same answers. Raises BadInput if a file is missing, damaged or foreign."""
    try:
        main = json.loads((folder / MAIN).read_text(encoding="utf-8"))
        if not isinstance(main, dict) or main.get("format") != FORMAT:
            raise ValueError(f"{MAIN} is not of the format {FORMAT}")
        if main.get("version") != VERSION:
            raise ValueError(f"version {main.get('version')} of the format, this whorl reads {VERSION}")
        arrays = {
            row["name"]: np.array(row["values"], dtype=float).reshape(row["shape"])
            for row in pq.read_table(folder / ARRAYS, schema=SCHEMA).to_pylist()
        }
        params = IdentifyParams.model_validate(main["params"])
        views = {
            name: _view_from(name, described, arrays) for name, described in main["views"].items() if name in VIEWS
        }
        if not views:
            raise ValueError("no view in it")
        programs = {
            workload: {name: float(share) for name, share in of.items()} for workload, of in main["programs"].items()
        }
        return Model(params, views, tuple(str(run_id) for run_id in main["learned"]), programs)
    except (OSError, ValueError, KeyError, TypeError, IndexError, AttributeError, pa.ArrowException) as error:
        problem = f"no model of workloads ({type(error).__name__}: {' '.join(str(error).split())[:160]})"
        raise BadInput(folder, problem, "the files of 'whorl workloads train'", "train again") from error


def _view_from(name: ViewName, described: Mapping[str, Any], arrays: Mapping[str, FloatArray]) -> View:
    counters = tuple(Counter(**counter) for counter in described["counters"])
    rows, floor, spread, idle, is_scaled, whitening = (arrays[f"{name}.{key}"] for key in LIBRARY_ARRAYS)
    workloads = tuple(str(workload) for workload in described["workloads"])
    n_each = (len(counters),)
    if (rows.shape, whitening.shape) != ((len(workloads), *n_each), 2 * n_each) or any(
        array.shape != n_each for array in (floor, spread, idle, is_scaled)
    ):
        raise ValueError(f"arrays of view {name} that do not fit its {len(counters)} counters")
    n_prototypes, most_parts = int(described["n_prototypes"]), int(described["most_parts"])
    library = Library(rows, workloads, n_prototypes, floor, spread, idle, is_scaled > 0, most_parts, whitening)
    logs, *others = (arrays[f"{name}.neighbours.{key}"] for key in NEIGHBOUR_ARRAYS)
    neighbours = Neighbours(logs, tuple(str(workload) for workload in described["neighbours"]), *others)
    c = len(counters)
    m, s, p = (c, 0, 0) if name == "own" else (2 * c, N_SHAPES * c, c)
    n, sizes = len(neighbours.workloads), tuple(getattr(neighbours, key).shape for key in NEIGHBOUR_ARRAYS)
    if sizes != ((n, m), (m,), (m, m), (len(neighbours.names),), (n, s), (s,), (n, p), (p,)):
        raise ValueError(f"known runs of view {name} that do not fit its {len(counters)} counters")
    alone, *of_sums = (
        Logistic(intercept=float(intercept), **{key: arrays[f"{name}.{part}.{key}"] for key in LOGISTIC_ARRAYS})
        for part, intercept in zip(LOGISTICS, described["intercepts"], strict=False)
    )
    limits = [float(limit) for limit in described["limits"]]
    n_right, n_asked = map(int, described["named"])
    view = View(counters, library, neighbours, Rest(alone, limits[0]), (n_right, n_asked))
    return view if name == "own" else replace(view, presence=of_sums[0], rest_in_company=Rest(of_sums[1], limits[1]))


def _logistics(view: View) -> dict[str, Logistic]:
    rest = view.rest_in_company.score if view.rest_in_company else None
    named = zip(LOGISTICS, (view.rest_alone.score, view.presence, rest), strict=True)
    return {name: logistic for name, logistic in named if logistic}


def _fit_group(runs: Sequence[Telemetry], counters: tuple[Counter, ...], params: IdentifyParams) -> View:
    """From whole runs and their later halves, rounds and inputs held out in turn."""
    runs = [run for run in runs if run.workload != IDLE] or runs  # its processors tell whether a group is idle
    runs, folds = _with_later_halves(runs, folds_of(runs))
    means, rows = np.split(seen_moments(runs, counters), 2, axis=1)
    workloads, inputs = [str(run.workload) for run in runs], clusters_of(runs)
    likeness = learn_likeness(rows, workloads, inputs, folds)
    by_round, by_input = _folds_held_out(folds), _inputs_held_out(workloads, inputs)
    known = _with_usual(rows, workloads, by_round, likeness)
    # few runs say what is usual for a workload: half way to what is usual for all
    known = replace(known, usual=np.sqrt(known.usual * np.median(known.usual)))
    cases: list[tuple[FloatArray, bool]] = []
    is_right: list[bool] = []
    for turn, (_, inside, near) in enumerate(_held_out(rows, workloads, [*by_round, *by_input], known, likeness)):
        for at in even_sample(inside, MOST_CASES * len(inside) // len(runs) + 1):
            near_by = near.near(rows[at])
            if turn < len(by_round):
                is_right.append(next(iter(near_by)) == workloads[at])
            others = {other: how_near for other, how_near in near_by.items() if other != workloads[at]}
            trials = ((near_by, False), (others, True))
            cases += [(group_features(near.strangeness(among)), is_new) for among, is_new in trials if among]
    alone = _fit_rest(cases, N_ALONE["own"], params.known_recall)
    if by_input:  # told so that even odds are where unknown begins
        odds = np.log(GROUP_LIMIT / (1 - GROUP_LIMIT))
        alone = Rest(replace(alone.score, intercept=alone.score.intercept - float(odds)), EVEN)
    is_rate = np.array([counter.is_rate for counter in counters])
    library = learn_library(means, workloads, inputs, is_rate, is_sum=False)
    return View(counters, library, known, alone, (sum(is_right), len(is_right)))


def _fit_machine(runs: Sequence[Telemetry], counters: tuple[Counter, ...], params: IdentifyParams) -> View:
    """From runs alone and superposed, rounds or stretches of time held out in turn; what speaks for a part is learned
    from runs that were recorded beside others as well: these work on more than anybody has learned, and are not on a
    machine like a sum."""
    crowded = [run for run in runs if condition_of(run) not in QUIET]
    quiet = [run for run in runs if condition_of(run) in QUIET]  # the machine's counters are of all that runs on it
    runs, crowded = (quiet, crowded) if quiet else (runs, [])
    beside = seen_moments(crowded, counters)
    moments = seen_moments(runs, counters)
    workloads, clusters = [str(run.workload) for run in runs], clusters_of(runs)
    names, is_rate = np.asarray(workloads), np.array([counter.is_rate for counter in counters])

    def library_of(places: NDArray[np.int64]) -> Library:
        means = moments[places, : len(counters)]
        return learn_library(means, names[places].tolist(), [clusters[at] for at in places], is_rate, is_sum=True)

    by_fold = _folds_held_out(folds_of(runs))
    known = _with_usual(moments, workloads, by_fold, shapes=shapes_of(runs, counters))
    parts: list[FloatArray] = []
    is_there: list[bool] = []
    rests: dict[bool, list[tuple[FloatArray, bool]]] = {True: [], False: []}  # by whether there is one part
    drifted: list[FloatArray] = []  # of known runs alone, as a later session may show them
    is_right: list[bool] = []
    has_sessions = all(run.round is not None for run in runs)
    rng = np.random.default_rng(params.seed)
    for turn, (outside, inside, near) in enumerate(_held_out(moments, workloads, by_fold, known)):
        library = library_of(outside)
        kept = even_sample(inside, MOST_CASES * len(inside) // len(runs) + 1)
        is_right += [next(iter(near.near(moments[at]))) == workloads[at] for at in kept]
        made = [case for at in kept for case in _cases(at, inside, moments, names, library, rng)]
        recorded = [_recorded_case(crowded[at], beside[at]) for at in range(turn, len(crowded), len(by_fold))]
        for case, (seen, present, unknown) in enumerate([*made, *recorded]):
            sums = sums_of(seen[: len(counters)], library)
            near_by = near.near(seen)
            for left_out in unknown:
                best = best_sum(sums, library, left_out)
                if best is None or not best.parts:
                    continue
                apart = {other: how_near for other, how_near in near_by.items() if other not in left_out}
                parts += list(presence_features(best, apart))
                is_there += [part.workload in present.keys() - set(left_out) for part in best.parts]
                if case < len(made):  # what else ran beside a recorded one nobody knows
                    has_rest = any(present[workload] >= REST_WEIGHT for workload in left_out)
                    features = rest_features(best, near.strangeness(apart))
                    rests[len(best.parts) == 1].append((features, has_rest))
        if not has_sessions:
            drifted += [DRIFT + near.strangeness(near.near(moments[at])) for at in inside.tolist()]
    alone = _fit_rest(
        rests[True], N_ALONE["machine"], params.known_recall, drifted, fit=_fit_alone, is_safe=has_sessions
    )
    in_company = _fit_rest(rests[False], N_IN_COMPANY, params.known_recall)
    presence = fit_logistic(np.array(parts).reshape(-1, N_PRESENCE), np.array(is_there, dtype=bool), PENALTY)
    named = sum(is_right), len(is_right)
    return View(counters, library_of(np.arange(len(runs))), known, alone, named, presence, in_company)


def _folds_held_out(folds: NDArray[np.int64]) -> list[NDArray[np.bool_]]:
    return [folds == fold for fold in np.unique(folds) if (folds != fold).any()]


def _held_out(
    rows: FloatArray,
    workloads: Sequence[str],
    held_out: Sequence[NDArray[np.bool_]],
    known: Neighbours,
    likeness: Likeness | None = None,
) -> Iterator[tuple[NDArray[np.int64], NDArray[np.int64], Neighbours]]:
    """Of each turn the places of the runs that are learned, of those held out whose workload is, and what is learned.
    known: of all runs, for what is usual."""
    names = np.asarray(workloads)
    for is_held in held_out:
        outside = np.flatnonzero(~is_held)
        near = learn_neighbours(rows[outside], names[outside].tolist(), likeness)
        near = replace(near, usual=known.usual[np.isin(known.names, near.names)])
        yield outside, np.flatnonzero(is_held & np.isin(names, near.names)), near


def _with_usual(
    rows: FloatArray,
    workloads: Sequence[str],
    held_out: Sequence[NDArray[np.bool_]],
    likeness: Likeness | None = None,
    shapes: FloatArray | None = None,
) -> Neighbours:
    """All runs, with the median distance of the runs of each workload to the others of it, those that are held out with
    them left out."""
    known = learn_neighbours(rows, workloads, likeness, shapes)
    apart: dict[str, list[float]] = {name: [] for name in known.names}
    for _, inside, near in _held_out(rows, workloads, held_out, known, likeness):
        for at in even_sample(inside, MOST_CASES):
            apart[workloads[at]].append(near.near(rows[at])[workloads[at]].distance)
    of_all = [distance for each in apart.values() for distance in each]
    return replace(known, usual=np.array([np.median(apart[name] or of_all or [1.0]) for name in known.names]))


def _with_later_halves(
    runs: Sequence[Telemetry], folds: NDArray[np.int64]
) -> tuple[list[Telemetry], NDArray[np.int64]]:
    """The runs and the later half of each, with the block of the run that it is of: who asks what a group runs seldom
    comes when it starts."""
    kept, places = list(runs), list(folds)
    for run, fold in zip(runs, folds, strict=True):
        half = slice(round(run.n_samples / 2), run.n_samples)
        if half.stop - half.start >= LEAST_HALF:
            kept.append(replace(run, at_s=run.at_s[half], values=run.values[half]))
            places.append(fold)
    return kept, np.array(places, dtype=np.int64)


def _inputs_held_out(workloads: Sequence[str], inputs: Sequence[str]) -> list[NDArray[np.bool_]]:
    """Which runs are held out when each workload is asked about by one of its inputs that nobody has learned, the
    first input of each, then the second …; workloads with one input stay. inputs: as clusters_of gives them."""
    of_workload = {name: sorted({group for group, of in zip(inputs, workloads, strict=True) if of == name}) for name in
                   set(workloads)}  # fmt: skip
    turns = max(map(len, of_workload.values()))
    held_out = [{each[turn] for each in of_workload.values() if turn < len(each) > 1} for turn in range(turns)]
    return [np.array([group in out for group in inputs], dtype=bool) for out in held_out if out]


_fit_score = partial(fit_logistic, penalty=PENALTY)


def _fit_alone(table: FloatArray, has_rest: NDArray[np.bool_]) -> Logistic:
    """Mean log odds of what the plain distance says, the last column, and what the whitened one says. Together in one
    logistic model the whitened one would decide, which tells more within a session, and less of a later one."""
    whitened, plain = (_fit_score(columns, has_rest) for columns in (table[:, :-1], table[:, -1:]))
    shares = (1 - PLAIN_SHARE, PLAIN_SHARE)
    return Logistic(
        np.append(whitened.centre, plain.centre),
        np.append(whitened.deviation, plain.deviation),
        np.concatenate([share * each.weights for share, each in zip(shares, (whitened, plain), strict=True)]),
        float(np.dot(shares, [whitened.intercept, plain.intercept])),
    )


def _fit_rest(
    cases: Sequence[tuple[FloatArray, bool]],
    n_features: int,
    known_recall: float,
    drifted: Sequence[FloatArray] = (),
    *,
    fit: Callable[[FloatArray, NDArray[np.bool_]], Logistic] = _fit_score,
    is_safe: bool = False,
) -> Rest:
    """drifted: features of known cases, in whose place they count for the limit. is_safe: see _limit."""
    has_rest = np.array([has for _, has in cases], dtype=bool)
    table = np.array([features for features, _ in cases]).reshape(len(cases), n_features)
    score = fit(table, has_rest)
    probabilities = score.probability(table)
    known = score.probability(np.array(drifted)) if len(drifted) else probabilities[~has_rest]
    return Rest(score, _limit(known, probabilities[has_rest], known_recall, is_safe=is_safe))


def _cases(
    at: int,
    inside: NDArray[np.int64],
    moments: FloatArray,
    names: NDArray[np.str_],
    library: Library,
    rng: np.random.Generator,
) -> list[tuple[FloatArray, dict[str, float], list[tuple[str, ...]]]]:
    """A held-out run alone, or in company: means and deviations that are seen, the weight of each workload
    that is there, and which of them are taken to be unknown in turn."""
    workload = str(names[at])
    mean, deviation = np.split(moments[at], 2)
    cases = [(moments[at], {workload: 1.0}, [(), (workload,)])]
    others = inside[names[inside] != workload]
    if len(others):
        other, weight = int(rng.choice(others)), float(rng.choice(COMPANY))
        beside, its_deviation = np.split(moments[other], 2)
        seen = np.append(superpose(mean, beside, weight, library.idle), np.hypot(deviation, weight * its_deviation))
        partner = str(names[other])
        turns: list[tuple[str, ...]] = [(), (workload,), (partner,)]
        cases.append((seen, {workload: 1.0, partner: weight}, turns if weight == 1 else turns[:2]))
    return cases


def _recorded_case(run: Telemetry, seen: FloatArray) -> tuple[FloatArray, dict[str, float], list[tuple[str, ...]]]:
    """As _cases: a run that was recorded beside others, what is said to have run, and that left out in turn."""
    there = [str(run.workload), *([run.conditions.partner] if run.conditions and run.conditions.partner else [])]
    return seen, dict.fromkeys(there, 1.0), [(), *((name,) for name in there)]


def _limit(known: FloatArray, unknown: FloatArray, known_recall: float, *, is_safe: bool = False) -> float:
    """The probability of a rest from which on there is said to be one: half way (in log odds) between what the stated
    share of the known cases stays at or below and where the unknown ones begin, since conditions that nobody has seen
    lie between. Where the unknown ones begin earlier, the known ones decide; is_safe: half way there as well, as whole
    rounds that were held out have shown how far another session moves known runs."""
    if not len(known) or not len(unknown):
        return EVEN
    least = float(np.quantile(known, known_recall, method="higher"))
    first = float(np.quantile(unknown, UNKNOWN_PASSED))
    ends = np.array([least, first if is_safe else max(least, first)])
    return float(probability_of(log_odds(ends).mean()))
