"""What a predicted change can claim and what it cannot, in sentences for the report."""

import math
from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.jobs.control.edits import changed_columns
from tasks.jobs.control.pairs import DEAD_BAND, Noise, PairScore
from tasks.jobs.control.support import COMPANION_SDS, MAX_UNLIKE_SHARE, Support
from tasks.jobs.predict.feature_words import feature_of
from tasks.jobs.scores import CONFIDENCE, Difference
from tasks.quantities import digits

TOLD = {"gap_s": "the 25th-75th gap", "p95_s": "the 95th percentile", "median_s": "the median runtime"}
MOST_COMPANIONS = 3
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


def make_claims(
    changes: pd.DataFrame,
    *,
    support: Support | None = None,
    companions: pd.DataFrame | None = None,
    score: PairScore | None = None,
    told: PairScore | None = None,
) -> Claims:
    """Claims of one change. changes: of `measures.changes`; score: the same change on its matched pairs, if there are
    any; told: the same where the model knows the load that each changed run met; support: where the training data end;
    companions: of `find_companions`. What the pairs do not bear out is no claim, though it was predicted."""
    predicted = [_predicted(name, row) for name, row in changes.iterrows() if name in TOLD and row["n_runs"]]
    is_refuted = score is not None and _is_known(score.versus_no_change) and not _is_better(score.versus_no_change)
    can = [] if is_refuted else [f"Predicted: {line}" for line in predicted]
    cannot = [f"Predicted, but the measured pairs do not bear it out: {line}" for line in predicted * is_refuted]
    cannot += ALWAYS
    if score is None or score.n == 0:
        why = f" ({score.reason})" if score is not None and score.reason else ""
        cannot.insert(0, f"Nothing measured stands behind it: no run was done again with this change{why}.")
    else:
        can += _measured(score) + _knowing(told)
        verdict = _verdict(score)
        (can if verdict[0] else cannot).append(verdict[1])
    cannot += _support(support) + _companions(companions)
    return Claims(can, cannot)


def _predicted(name: Hashable, row: pd.Series) -> str:
    mean = f"{TOLD[str(name)]} of a run goes from {digits(row['before'])} to {digits(row['after'])} s on average"
    over = f"over {_counted(row['n_runs'], 'run')} of {_counted(row['n_groups'], 'job')}"
    if pd.isna(row["low"]):
        return f"{mean} {over} ({row['reason']})."
    low, high = (digits(row[end], sign="+") for end in ("low", "high"))
    interval = f"{100 * CONFIDENCE:g} % interval of the change {low} to {high} s"
    is_open = row["low"] <= 0 <= row["high"]
    return f"{mean}, {interval}, {over}" + ("; its direction is open." if is_open else ".")


def _measured(score: PairScore) -> list[str]:
    real, foretold = (100 * (math.exp(mean or 0) - 1) for mean in (score.mean_measured, score.mean_predicted))
    found = [f"Measured: the geometric mean of the runtimes changed by {real:+.1f} %; foretold were {foretold:+.1f} %."]
    told = score.directions
    if told is not None and told.n:
        others = score.directions_mean_change
        beside = (
            f"; as the mean of other jobs {100 * others.share:.0f} %" if others and others.share is not None else ""
        )
        found.append(
            f"Measured: of {told.n:,} pairs that changed by {100 * DEAD_BAND:g} % or more ({told.n_in_band:,} "
            f"changed less), the direction was foretold right in {100 * (told.share or 0):.0f} % "
            f"({100 * (told.low or 0):.0f} to {100 * (told.high or 0):.0f} %){beside}."
        )
    usual = "" if score.mae_mean_change is None else f", {score.mae_mean_change:.3f} by the mean change of other jobs"
    found.append(
        f"Measured: the log runtime ratio is missed by {score.mae:.3f} on average over {_counted(score.n, 'pair')} of "
        f"{_counted(score.n_groups, 'job')}; by {score.mae_no_change:.3f} if no change is assumed{usual}."
    )
    return found


def _knowing(told: PairScore | None) -> list[str]:
    """How well the change is foretold for a load that nobody knows before: what is wrong is then not the load."""
    if told is None or told.directions is None or told.directions.share is None:
        return []
    return [
        f"Measured: had it known the load that each changed run would meet, the direction would be right in "
        f"{100 * told.directions.share:.0f} %, and the ratio missed by {told.mae:.3f}."
    ]


def _verdict(score: PairScore) -> tuple[bool, str]:
    """Whether single runs' changes are foretold better than by both simple answers, and the sentence."""
    if not _is_known(score.versus_no_change):
        return False, "That it knows which runs change by how much: pairs of one job do not tell."
    words = {"no change": score.versus_no_change, "the mean change of other jobs": score.versus_mean_change}
    better = [name for name, found in words.items() if _is_better(found)]
    worse = [name for name, found in words.items() if found is not None and found.low is not None and found.low > 0]
    if len(better) == len(words):
        return True, "The change of a single run is foretold better than by no change and by the mean of other jobs."
    parts = []
    for name in words:
        how = "better than" if name in better else "worse than" if name in worse else "not told apart from"
        parts.append(f"{how} {name}")
    return False, f"That it knows which runs change by how much: over the measured pairs it is {' and '.join(parts)}."


def _is_known(found: Difference | None) -> bool:
    return found is not None and found.high is not None


def _is_better(found: Difference | None) -> bool:
    return found is not None and found.high is not None and found.high < 0


def _counted(n: float, what: str) -> str:
    return f"{int(n):,} {what}" if n == 1 else f"{int(n):,} {what}s"


def _support(support: Support | None) -> list[str]:
    if support is None:
        return ["Whether the training data reach so far was not looked at."]
    if support.share is None:
        return ["Any effect: the change alters no feature of any of these runs."]
    if not support.share:
        return []
    names = sorted(support.outside, key=lambda name: -support.outside[name])[:3]
    most = f", most often by {', '.join(names)}" if names else ""
    unlike = ""
    if support.share_unlike is not None:
        than = f"than {100 * (1 - MAX_UNLIKE_SHARE):g} % of the unchanged runs are"
        unlike = f"; {100 * support.share_unlike:.1f} % are less like any training run {than}"
    return [
        f"{100 * support.share:.1f} % of the {support.n_changed:,} changed runs are extrapolated: "
        f"{100 * (support.share_outside or 0):.1f} % lie outside the training range of a changed feature{most}{unlike}."
    ]


def _companions(found: pd.DataFrame | None) -> list[str]:
    """One sentence for each of the features that differ most, with the changed feature by which they differ most."""
    if found is None or found.empty:
        return []
    most = found.drop_duplicates("companion").head(MOST_COMPANIONS)
    return [_companion(row) for _, row in most.iterrows()]


def _companion(row: pd.Series) -> str:
    value, there, overall = (digits(row[name]) for name in ("value", "mean_there", "mean_in_all"))
    return (
        f"Where the training data have {row['feature']} near {value}, {row['companion']} is {there} on average, "
        f"{overall} over all; the change leaves it alone, yet may be foretold for its sake."
    )


WORDS = {"p95": "95th percentile", "gap": "25th-75th gap"}


def describe_overall(overall: pd.DataFrame) -> Claims:
    """One sentence for each of WORDS: a claim where it was foretold to go as it went. overall: of Comparison."""
    can: list[str] = []
    cannot: list[str] = []
    for name, words in WORDS.items():
        if name not in overall.index or overall.loc[name].isna().any():
            continue
        before, after, old, new = (float(x) for x in np.asarray(overall.loc[name], dtype=np.float64))
        line = (
            f"Measured over all pairs together: the {words}, over the historic median, went from {digits(before)} to "
            f"{digits(after)}; foretold was {digits(old)} to {digits(new)}"
        )
        is_right = (after - before) * (new - old) > 0
        (can if is_right else cannot).append(f"{line}." if is_right else f"{line}, the other way.")
    return Claims(can, cannot)


def describe_noise(noise: Noise) -> list[str]:
    """How much runs differ anyway; nothing without runs that were repeated unchanged."""
    if noise.mean_absolute is None:
        return []
    return [
        f"How long a single run will take: {noise.n:,} runs that were repeated unchanged differ by "
        f"{noise.mean_absolute:.3f} in the logarithm on average."
    ]


COLUMNS = ["feature", "is_changed", "assumed", "met", "distance"]
MOST_NAMED = 3


def unlike_conditions(
    before: pd.DataFrame, after: pd.DataFrame, met: pd.DataFrame, training: pd.DataFrame
) -> pd.DataFrame:
    """Environment features whose mean over the changed runs of the pairs is not what the change assumes.

    before, after: features of the baselines, as they are and with the change made; met: those of the changed runs, row
    by row; training: gives the deviation of each feature. Named is what lies at least COMPANION_SDS of them
    apart. Columns: feature, is_changed (by the change), assumed, met, distance (above 0 if larger in the changed runs);
    the largest first."""
    changed = changed_columns(before, after)
    rows = []
    for name in [str(name) for name in after if feature_of(str(name)).kind == "environment"]:
        both = after[name].notna() & met[name].notna()
        sd = float(training[name].std())
        if not both.any() or not sd > 0:
            continue
        assumed, found = float(after.loc[both, name].mean()), float(met.loc[both, name].mean())
        distance = (found - assumed) / sd
        if abs(distance) >= COMPANION_SDS:
            rows.append((name, name in changed, assumed, found, distance))
    table = pd.DataFrame(rows, columns=COLUMNS)
    return table.sort_values("distance", key=np.abs, ascending=False, kind="stable", ignore_index=True)


def describe_conditions(table: pd.DataFrame) -> list[str]:
    """The features that are furthest from what the change assumes, in sentences."""
    return [_sentence(row) for _, row in table.head(MOST_NAMED).iterrows()]


def _sentence(row: pd.Series) -> str:
    assumes = "the change asks for" if row["is_changed"] else "the change leaves it at"
    return (
        f"The runs that were done again met another {row['feature']}: {digits(row['met'])} on average, where {assumes} "
        f"{digits(row['assumed'])}; what was measured holds the effect of both."
    )
