"""What each part of identifying is worth, as Markdown tables; only what may be chosen on is read.

`python -m tests.studies.workload_parts CLOUDSUITE/MACHINE …`: what is alone on a machine, how far a later session is
allowed for, and how often answers are right that are so sure. Of x5650 the first half is learned, the rest asked about;
of 6140 and 6234 the same within the first 60 % of each trace, 60 % learned; four pairs of workloads never learned.
Then later: the first 40 % learned, the last 40 % asked about.

`python -m tests.studies.workload_parts --groups data/recorded/workloads data/recorded/workloads-shared
data/recorded/workloads-programs`: groups, by their counters alone. Learned on AMD, rounds 1 to 3, shared1 and shared2;
asked about other inputs on Intel, and about what nobody learned in shared1 and shared2."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from itertools import combinations, pairwise
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from threadpoolctl import threadpool_limits

from tasks.workloads.evaluate.items import EARLIER_SHARE, Item, cut, splits_of
from tasks.workloads.evaluate.known import closed_set, log_distances
from tasks.workloads.evaluate.scores import auroc
from tasks.workloads.identify.counters import IDLE, common_counters, condition_of
from tasks.workloads.identify.identification import Identification, identify_all
from tasks.workloads.identify.logistic import Logistic
from tasks.workloads.identify.model import N_PRESENCE, VIEWS, Model, ViewName, fit_model
from tasks.workloads.intake import read_telemetry
from tasks.workloads.params import EvaluateParams, IdentifyParams, ReadParams, WindowParams
from tasks.workloads.telemetry import Counter, Telemetry

N_PAIRS, SEED = 4, 1
HALF_LEARNED = ("x5650",)  # machines that are chosen on as a whole
EVEN_ODDS = Logistic(np.zeros(N_PRESENCE), np.ones(N_PRESENCE), np.zeros(N_PRESENCE), 0.0)
FEW_WORKLOADS, FEW_RUNS, FEW_DRAWS = 4, 3, 5  # what somebody has who begins
BINS = (0.0, 0.5, 0.8, 0.9, 0.95, 1.001)


def patched(place: str, value: Any) -> Callable[[], AbstractContextManager[Any]]:
    """A change of a constant, while a model is learned and asked."""
    return lambda: patch(f"tasks.workloads.identify.{place}", value)


AS_IT_IS = "as it is: twice as far in a later session"
PRESENCE = "without what speaks for the known workload"
PARTS = {
    AS_IT_IS: nullcontext,
    "no farther in a later session": patched("model.DRIFT", np.zeros(3)),
    "1.4 times as far": patched("model.DRIFT", np.log([2.0, 1.0, 2.0]) / 2),
    "four times as far": patched("model.DRIFT", np.log([4.0, 1.0, 4.0])),
    "by the limit alone": patched("identification.MOST_UNKNOWN", 1.0),
    PRESENCE: nullcontext,
    "without the plain distance": patched("model.PLAIN_SHARE", 0.0),
    "without the whitened distance": patched("model.PLAIN_SHARE", 1.0),
    "whitening: each counter by its own spread": patched("fingerprints.SHRINKAGE", 1.0),
    "without shapes": patched("fingerprints.SHAPE_WEIGHT", 0.0),
}


def of_both_scopes(runs: list[Telemetry], view: ViewName, least_share: float) -> tuple[Counter, ...]:
    """The counters of the group, and those of the machine as well."""
    return tuple(counter for scope in VIEWS for counter in common_counters(runs, scope, least_share))


LATER = (0.4, 0.6)  # until when is learned, from when is asked: what lies between is another time
LATER_PARTS = (AS_IT_IS, PRESENCE, "without the plain distance", "without the whitened distance")
GROUP_PARTS = {
    "as it is": nullcontext,
    "without learned weights of counters": patched("fingerprints.PLAIN_PART", 1.0),
    "with learned weights alone": patched("fingerprints.PLAIN_PART", 0.0),
    "rates not over the cores that it used": patched("model.OWN_BUSY", ()),
    "whole runs, without their later halves": patched("model.LEAST_HALF", np.inf),
    "inputs not held out": patched("model._inputs_held_out", lambda *_: []),
    "the machine's counters as well": patched("model.common_counters", of_both_scopes),
    "the limit at even odds": patched("model.GROUP_LIMIT", 0.5),
}
LEARNED_ROUNDS, SHARED_ROUNDS = ("round1", "round2", "round3"), ("shared1", "shared2")


@dataclass(frozen=True)
class Asked:
    """Windows that a model was asked about, known and never learned, its answers, and how far the nearest run is."""

    known: list[Telemetry]
    unknown: list[Telemetry]
    answers: list[Identification]
    apart: Any

    def figures(self) -> list[float]:
        """Of the known: likeliest name right, called unknown; of the others called known; AUROC, of the nearest run."""
        n = len(self.known)
        named = [closed_set(answer) == run.workload for answer, run in zip(self.answers, self.known, strict=False)]
        is_said = np.array([answer.statement == "unknown" for answer in self.answers])
        scores = np.array([answer.unknown_score for answer in self.answers])
        areas = [auroc(values[:n], values[n:]) for values in (scores, self.apart)]
        return [float(np.mean(named)), float(is_said[:n].mean()), float((~is_said[n:]).mean()), *areas]

    def statements(self) -> Iterator[tuple[bool, float, bool, float]]:
        """Whether a name was told, how sure, whether that is right, and its weight: known and never learned alike."""
        n = len(self.known)
        for at, (run, answer) in enumerate(zip([*self.known, *self.unknown], self.answers, strict=True)):
            is_right = answer.workload == run.workload if answer.is_known else at >= n
            yield answer.is_known, answer.confidence, is_right, 1 / (n if at < n else len(self.unknown))


def windows(path: Path, *, is_later: bool = False) -> tuple[list[Item], list[Item], list[Item]]:
    """What may be chosen on, what of it is learned from, and what is asked about; is_later: as LATER says."""
    items = cut(read_telemetry([str(path)], ReadParams(label_from="stem")).runs, WindowParams(width_s=60)).items
    is_whole = path.name in HALF_LEARNED
    if not is_whole:
        items = [items[at] for at in splits_of(items, "by_time", EvaluateParams()).splits[0].train]
    until, since = LATER if is_later else 2 * (0.5 if is_whole else EARLIER_SHARE,)
    [before], [after] = (
        splits_of(items, "by_time", EvaluateParams(), earlier_share=at).splits for at in (until, since)
    )
    return items, [items[at] for at in before.train], [items[at] for at in after.test]


def ask(learned: list[Telemetry], known: list[Telemetry], unknown: list[Telemetry], part: str = AS_IT_IS) -> Asked:
    """What a model of the learned windows says of the others."""
    with PARTS[part]():
        model: Model = fit_model(learned, IdentifyParams(), ["machine"])
        if part == PRESENCE:
            model = replace(model, views={"machine": replace(model.views["machine"], presence=EVEN_ODDS)})
        answers = identify_all([*known, *unknown], model, with_reasons=False)
    return Asked(known, unknown, answers, log_distances(learned, [*known, *unknown], 0.0).min(axis=1))


def few_learned(learned: list[Item], test: list[Item]) -> Iterator[Asked]:
    """A few windows of a few workloads."""
    names = sorted({item.workload for item in learned})
    for rng in map(np.random.default_rng, range(FEW_DRAWS)):
        drawn = set(rng.permutation(names)[:FEW_WORKLOADS].tolist())
        by_name = [[item.run for item in learned if item.workload == name] for name in sorted(drawn)]
        few = [runs[at] for runs in by_name for at in rng.permutation(len(runs))[:FEW_RUNS]]
        known, unknown = ([item.run for item in test if (item.workload in drawn) == kind] for kind in (True, False))
        yield ask(few, known, unknown)


def print_reliability(title: str, cases: list[Asked]) -> None:
    """How sure in the mean, and the share that is right, of the answers that are so sure."""
    rows = np.array([row for case in cases for row in case.statements()], dtype=float)
    print(f"\n{title}\n\n| said | so sure | answers | stated | right |\n|---|---|---|---|---|")
    for is_named, words in ((1.0, "known"), (0.0, "unknown")):
        for low, high in pairwise(BINS):
            of = rows[(rows[:, 0] == is_named) & (rows[:, 1] >= low) & (rows[:, 1] < high)]
            if len(of):
                stated, right = np.average(of[:, 1:3], axis=0, weights=of[:, 3])
                print(f"| {words} | {low:g} to {min(high, 1):g} | {len(of)} | {stated:.2f} | {right:.2f} |", flush=True)


def print_machine(path: Path) -> None:
    """What is alone on a machine."""
    for is_later in (False, True):
        items, learned, test = windows(path, is_later=is_later)
        pairs = list(combinations(sorted({item.workload for item in items}), 2))
        pairs = [pairs[at] for at in np.random.default_rng(SEED).permutation(len(pairs))[:N_PAIRS]]
        print(
            f"\n{path.name}{', later' if is_later else ''}: {len(learned)} learned, {len(test)} asked about\n\n| part",
            end=" | ",
        )
        print("likeliest name right | known called unknown | never learned called known | AUROC | nearest run |")
        print("|---|---|---|---|---|---|")
        for part in LATER_PARTS if is_later else PARTS:
            cases = []
            for pair in pairs:
                of_known = ([item.run for item in side if item.workload not in pair] for side in (learned, test))
                cases.append(ask(*of_known, [item.run for item in items if item.workload in pair], part))
            means = np.mean([case.figures() for case in cases], axis=0)
            print(f"| {part} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |", flush=True)
            if part == AS_IT_IS:
                as_it_is = cases
        if not is_later:
            print_reliability("Six workloads learned", as_it_is)
            few = list(few_learned(learned, test))
            print_reliability(f"{FEW_WORKLOADS} workloads, {FEW_RUNS} windows of each", few)


def print_groups(*paths: str) -> None:
    """What a group is, by its counters alone."""
    runs = [replace(run, processes={}) for run in read_telemetry(paths, ReadParams()).runs]
    plain = [run for run in runs if run.round in LEARNED_ROUNDS]
    names = {run.workload for run in plain}
    shared = [run for run in runs if run.round in SHARED_ROUNDS and run.workload != IDLE]
    learned = [*plain, *(run for run in shared if run.workload in names and condition_of(run) != "input")]
    inputs = [run for run in runs if str(run.round).startswith("programs") and condition_of(run) == "input"]
    inputs, new = [run for run in inputs if run.workload in names], [run for run in shared if run.workload not in names]
    print(f"\n| part | other inputs named ({len(inputs)}) | never learned called unknown ({len(new)}) |\n|---|---|---|")
    for part, changed in GROUP_PARTS.items():
        with changed():
            model = fit_model(learned, IdentifyParams(), ["own"])
            known, unknown = (identify_all(of, model, view="own", with_reasons=False) for of in (inputs, new))
        named = np.mean([answer.workload == run.workload for answer, run in zip(known, inputs, strict=True)])
        print(f"| {part} | {named:.3f} | {np.mean([not answer.is_known for answer in unknown]):.3f} |", flush=True)


def main(*paths: str) -> None:
    """Print the tables of each machine, or of groups."""
    if paths[0] == "--groups":
        print_groups(*paths[1:])
    else:
        for path in paths:
            print_machine(Path(path))


if __name__ == "__main__":
    with threadpool_limits(1):
        main(*sys.argv[1:])
