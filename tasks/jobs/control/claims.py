"""What a predicted change can claim and what it cannot, in sentences for the report."""

import math
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.control.outcomes import MAX_UNLIKE_SHARE, Support
from tasks.jobs.control.pairs import DEAD_BAND, Noise, PairScore
from tasks.jobs.scores import CONFIDENCE, Difference
from tasks.quantities import digits

TOLD = {"gap_s": "the 25th-75th gap", "p95_s": "the 95th percentile", "median_s": "the median runtime"}
OVERALL = {"p95": "95th percentile", "gap": "25th-75th gap"}
MOST_NAMED = 3
ALWAYS = (
    "The model was trained on runs as they happened, not on an experiment: runs with few spare tokens, or on one kind "
    "of machine, may differ from others in ways that it does not see, and it takes these for an effect of the change.",
    "Each run is changed by itself. If all jobs were changed, load, queues and free tokens would change with them; "
    "nothing of that is in the prediction.",
    "The runtimes of earlier runs are left as they were: the prediction is for the next run of a job, not for later "
    "ones, whose history would hold the change.",
    "The intervals say how the mean would vary with other jobs like these, and hold nothing of the model's own error.",
)


@dataclass(frozen=True)
class Claims:
    """Sentences; can: what the figures support, cannot: what they do not."""

    can: list[str]
    cannot: list[str]


def make_claims(changes: pd.DataFrame, support: Support, score: PairScore | None) -> Claims:
    """Claims of one change. changes, support: of its Outcome; score: the same change on its matched pairs, if there are
    any. What the pairs do not bear out is no claim, though it was predicted."""
    predicted = [_predicted(TOLD[str(name)], row) for name, row in changes.iterrows() if name in TOLD and row["n_runs"]]
    is_refuted = score is not None and _is_known(score.versus_no_change) and not _is_better(score.versus_no_change)
    can = [] if is_refuted else [f"Predicted: {line}" for line in predicted]
    cannot = [f"Predicted, but the measured pairs do not bear it out: {line}" for line in predicted * is_refuted]
    cannot += ALWAYS
    if score is None or score.n == 0:
        why = f" ({score.reason})" if score is not None else ""
        cannot.insert(0, f"Nothing measured stands behind it: no run was done again with this change{why}.")
    else:
        can += _measured(score)
        is_good, verdict = _verdict(score)
        (can if is_good else cannot).append(verdict)
    return Claims(can, cannot + _support(support))


def describe_overall(overall: pd.DataFrame) -> Claims:
    """One sentence for each of OVERALL: a claim where it was foretold to go as it went. overall: of Comparison."""
    found = Claims([], [])
    for name, words in OVERALL.items():
        if name not in overall.index or overall.loc[name].isna().any():
            continue
        before, after, old, new = (float(x) for x in np.asarray(overall.loc[name], dtype=np.float64))
        line = (
            f"Measured over all pairs together: the {words}, over the historic median, went from {digits(before)} to "
            f"{digits(after)}; foretold was {digits(old)} to {digits(new)}"
        )
        is_right = (after - before) * (new - old) > 0
        (found.can if is_right else found.cannot).append(f"{line}." if is_right else f"{line}, the other way.")
    return found


def describe_noise(noise: Noise) -> list[str]:
    """How much runs differ anyway; nothing without runs that were repeated unchanged."""
    if noise.mean_absolute is None:
        return []
    return [
        f"How long a single run will take: {noise.n:,} runs that were repeated unchanged differ by "
        f"{noise.mean_absolute:.3f} in the logarithm on average."
    ]


def _predicted(words: str, row: pd.Series) -> str:
    mean = f"{words} of a run goes from {digits(row['before'])} to {digits(row['after'])} s on average"
    over = f"over {_counted(row['n_runs'], 'run')} of {_counted(row['n_groups'], 'job')}"
    if pd.isna(row["low"]):
        return f"{mean} {over} ({row['reason']})."
    low, high = (digits(row[end], sign="+") for end in ("low", "high"))
    is_open = row["low"] <= 0 <= row["high"]
    interval = f"{100 * CONFIDENCE:g} % interval of the change {low} to {high} s"
    return f"{mean}, {interval}, {over}" + ("; its direction is open." if is_open else ".")


def _measured(score: PairScore) -> list[str]:
    real, foretold = (100 * (math.exp(mean or 0) - 1) for mean in (score.mean_measured, score.mean_predicted))
    found = [f"Measured: the geometric mean of the runtimes changed by {real:+.1f} %; foretold were {foretold:+.1f} %."]
    told, others = score.directions, score.directions_mean_change
    if told is not None and told.n:
        known = others is not None and others.share is not None
        beside = f"; as the mean of other jobs {100 * (others.share or 0):.0f} %" if others and known else ""
        found.append(
            f"Measured: of {told.n:,} pairs that changed by {100 * DEAD_BAND:g} % or more ({told.n_in_band:,} "
            f"changed less), the direction was foretold right in {100 * (told.share or 0):.0f} % "
            f"({100 * (told.low or 0):.0f} to {100 * (told.high or 0):.0f} %){beside}."
        )
    usual = "" if score.mae_mean_change is None else f", {score.mae_mean_change:.3f} by the mean change of other jobs"
    over = f"{_counted(score.n, 'pair')} of {_counted(score.n_groups, 'job')}"
    found.append(
        f"Measured: the log runtime ratio is missed by {score.mae:.3f} on average over {over}; by "
        f"{score.mae_no_change:.3f} if no change is assumed{usual}."
    )
    return found


def _verdict(score: PairScore) -> tuple[bool, str]:
    """Whether single runs' changes are foretold better than by both simple answers, and the sentence."""
    if not _is_known(score.versus_no_change):
        return False, "That it knows which runs change by how much: pairs of one job do not tell."
    words = {"no change": score.versus_no_change, "the mean change of other jobs": score.versus_mean_change}
    if all(map(_is_better, words.values())):
        return True, "The change of a single run is foretold better than by no change and by the mean of other jobs."
    parts = []
    for name, found in words.items():
        is_worse = found is not None and found.low is not None and found.low > 0
        how = "better than" if _is_better(found) else "worse than" if is_worse else "not told apart from"
        parts.append(f"{how} {name}")
    return False, f"That it knows which runs change by how much: over the measured pairs it is {' and '.join(parts)}."


def _is_known(found: Difference | None) -> bool:
    return found is not None and found.high is not None


def _is_better(found: Difference | None) -> bool:
    return found is not None and found.high is not None and found.high < 0


def _counted(n: float, what: str) -> str:
    return f"{int(n):,} {what}" if n == 1 else f"{int(n):,} {what}s"


def _support(support: Support) -> list[str]:
    if support.share is None:
        return ["Any effect: the change alters no feature of any of these runs."]
    if not support.share:
        return []
    names = sorted(support.outside, key=lambda name: -support.outside[name])[:MOST_NAMED]
    most = f", most often by {', '.join(names)}" if names else ""
    return [
        f"{100 * support.share:.1f} % of the {support.n_changed:,} changed runs are extrapolated: "
        f"{100 * (support.share_outside or 0):.1f} % lie outside the training range of a changed feature{most}; "
        f"{100 * (support.share_unlike or 0):.1f} % are less like any training run than "
        f"{100 * (1 - MAX_UNLIKE_SHARE):g} % of the unchanged runs are."
    ]
