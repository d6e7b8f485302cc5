"""A scenario made true in a frame of features: a new frame, the old one stays as it is."""

import difflib
import re
import sys

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.control.scenarios import (
    CPU_LOAD,
    CapSpare,
    Edit,
    EvenLoad,
    Scenario,
    SetFeature,
    SetStd,
    ShiftAll,
    ShiftSku,
)
from tasks.jobs.predict.peers import INPUT_USUAL

OFFERED = "offered_{}"
COUNTS = ("vertices_{}_mean", "vertex_share_{}_mean")
LOAD_MEAN, LOAD_SD, FREE = "sku_load_mean_{}", "sku_load_sd_{}", "sku_free_tokens_{}"
STATE = (LOAD_MEAN, LOAD_SD, FREE)  # known of the SKUs offered only
SPARE = "spare_tokens_available"
PATTERNS = [re.compile(re.escape(name).replace(r"\{\}", "(.+)")) for name in (OFFERED, *COUNTS, *STATE)]


def skus_of(frame: pd.DataFrame) -> list[str]:
    """The SKUs that the features name, in order of names; gen10 comes after gen9."""
    found = {match[1] for name in frame for pattern in PATTERNS if (match := pattern.fullmatch(str(name)))}
    return sorted(
        found, key=lambda sku: [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in _parts(sku)]
    )


def _parts(sku: str) -> list[str]:
    return re.findall(r"\d+|\D+", sku)


def shift_sku(frame: pd.DataFrame, edit: ShiftSku) -> pd.DataFrame:
    """Vertices, their shares and the offer of edit.source given to edit.target, in the rows that have any.

    The state of the source becomes unknown, as of every SKU that is not offered; that of a target not offered before
    is what the rows before last knew of it. Spare tokens are those of the SKUs offered: they change as the free tokens
    of these do. Raises BadInput for a SKU that the features do not name."""
    _check(frame, f"what-if {edit}", (edit.source, edit.target))
    new: dict[str, pd.Series] = {}
    for name in COUNTS:
        source, target = name.format(edit.source), name.format(edit.target)
        if source in frame:
            moved = frame[source]
            new[source] = moved.where(moved.isna(), 0.0)
            old = frame.get(target, moved * 0)
            new[target] = old.where(moved.isna(), old.fillna(0.0) + moved)
    offer = OFFERED.format(edit.source)
    if offer not in frame:
        return _known(frame, new)
    is_moved = frame[offer] > 0
    new[offer] = frame[offer].mask(is_moved, 0.0)
    target = OFFERED.format(edit.target)
    new[target] = frame[target].mask(is_moved, 1.0) if target in frame else is_moved.astype(float)
    for name in STATE:
        source, target = name.format(edit.source), name.format(edit.target)
        if source in frame:
            new[source] = frame[source].mask(is_moved)
        if target in frame:
            new[target] = frame[target].mask(is_moved & frame[target].isna(), frame[target].ffill().bfill())
    edited = _known(frame, new)
    if SPARE in frame:
        before, after = _free_tokens(frame), _free_tokens(edited)
        ratio = (after / before.where(before > 0)).where(is_moved).fillna(1.0)
        edited = edited.assign(**{SPARE: frame[SPARE] * ratio})
    return _with_offered_load(edited, is_moved)


def shift_all(frame: pd.DataFrame, edit: ShiftAll) -> pd.DataFrame:
    """All that runs on other SKUs moved to edit.target, or to the last SKU in order of names."""
    where, skus = f"what-if {edit}", skus_of(frame)
    target = edit.target or (skus[-1] if skus else "")
    _check(frame, where, (target,))
    if len(skus) < 2:
        raise BadInput(where, f"the log has only the SKU {target}", "at least two, to move from one to another")
    for sku in skus:
        if sku != target:
            frame = shift_sku(frame, ShiftSku(sku, target))
    return frame


def even_load(frame: pd.DataFrame) -> pd.DataFrame:
    """Every SKU at the mean load of all rows, without deviation. Raises BadInput if the log has no load."""
    names = [LOAD_MEAN.format(sku) for sku in skus_of(frame)] + ["load_mean"]
    there = [name for name in names if name in frame]
    if not there:
        raise BadInput(f"what-if {EvenLoad()}", "the log says nothing of the load", "a log with load_mean")
    overall = float(np.nanmean(frame["load_mean" if "load_mean" in frame else there].to_numpy(dtype=float)))
    level = {name: frame[name].where(frame[name].isna(), overall) for name in there}
    deviations = [name for name in ("load_sd", *(LOAD_SD.format(sku) for sku in skus_of(frame))) if name in frame]
    return frame.assign(**level, **{name: frame[name].where(frame[name].isna(), 0.0) for name in deviations})


def _known(frame: pd.DataFrame, new: dict[str, pd.Series]) -> pd.DataFrame:
    """The frame with those of the new columns that it has: a model knows no others."""
    return frame.assign(**{name: column for name, column in new.items() if name in frame})


def _with_offered_load(frame: pd.DataFrame, is_moved: pd.Series) -> pd.DataFrame:
    """load_mean and load_sd of the SKUs that are offered now, in the rows that moved, where each load is known.

    The mean over the SKUs, and the deviation over them and over time: sd² = mean of sd² + variance of means."""
    skus = [sku for sku in skus_of(frame) if {LOAD_MEAN.format(sku), OFFERED.format(sku)} <= set(frame)]
    if not skus or "load_mean" not in frame:
        return frame
    offered = frame[[OFFERED.format(sku) for sku in skus]].to_numpy() > 0
    means = frame[[LOAD_MEAN.format(sku) for sku in skus]].to_numpy()
    n_offered = offered.sum(axis=1)
    is_known = is_moved.to_numpy() & (n_offered > 0) & ~(offered & np.isnan(means)).any(axis=1)
    share = offered / np.maximum(n_offered, 1)[:, None]
    mean = (share * np.where(offered, means, 0.0)).sum(axis=1)
    new = {"load_mean": frame["load_mean"].mask(is_known, pd.Series(mean, index=frame.index))}
    names = [LOAD_SD.format(sku) for sku in skus]
    if "load_sd" in frame and set(names) <= set(frame):
        squares = np.where(offered, frame[names].to_numpy() ** 2 + (means - mean[:, None]) ** 2, 0.0)
        sd = pd.Series(np.sqrt((share * squares).sum(axis=1)), index=frame.index)
        new["load_sd"] = frame["load_sd"].mask(is_known & sd.notna(), sd)
    return frame.assign(**new)


def _free_tokens(frame: pd.DataFrame) -> pd.Series:
    """Tokens that are free on the SKUs offered; NaN where no SKU says."""
    names = [FREE.format(sku) for sku in skus_of(frame) if FREE.format(sku) in frame]
    return frame[names].sum(axis=1, min_count=1)


def _check(frame: pd.DataFrame, where: str, asked: tuple[str, ...]) -> None:
    skus = skus_of(frame)
    if not skus:
        expected = "a log with SKUs offered (offered_<sku>) or vertices by SKU"
        raise BadInput(where, "the log says nothing of kinds of machine (SKUs)", expected)
    for sku in asked:
        if sku not in skus:
            raise BadInput(where, f"the log has no SKU {sku!r}", f"one of {', '.join(skus)}")


INFINITY, SMALLEST = float("inf"), sys.float_info.min
Range = tuple[float, float]
RANGES: tuple[tuple[str, Range, str], ...] = (  # the first that fits counts
    (r"offered_.+", (0, 1), "0 (not offered) or 1"),
    (r"vertex_share_.+_mean", (0, 1), "a share from 0 to 1"),
    (r"(load_mean|sku_load_mean_.+)", (0, 2), "a load from 0 to 2, where 1 is all that there is"),
    (r"(load_sd|sku_load_sd_.+)", (0, 1), "a deviation of the load from 0 to 1"),
    (r"requested_.+", (SMALLEST, INFINITY), "more than 0"),
    (r".+", (0, INFINITY), "0 or more"),
)


def range_of(feature: str) -> tuple[float, float, str]:
    """The lowest and the highest value that the feature can have, both possible, and the range in words."""
    for pattern, (low, high), words in RANGES:
        if re.fullmatch(pattern, feature):
            return low, high, words
    raise ValueError("feature: empty; expected a name")


def is_possible(feature: str, value: float) -> bool:
    """Whether the feature can have this value; offered_<sku> is one of two."""
    low, high, _ = range_of(feature)
    return low <= value <= high and not (feature.startswith("offered_") and value not in (0, 1))


N_NAMED = 8  # names that an error message lists
SD = "_sd"
ALL_LOAD_SD = "load_sd"
FOLLOWS = {"input_bytes": "input_ratio", "requested_tokens": "tokens_ratio"}
SPARE_FEATURES = ("spare_tokens_available", "spare_tokens_mean")
HELD = ("min_tokens", "peak_tokens")  # at most what was requested and the spare ones


def apply(scenario: Scenario, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the scenario made true, in the order of its edits. frame: (n, p) features, NaN where unknown,
    rows in order of submission (a SKU that was not offered to a run gets the load that it last had).

    Columns and index stay. What follows from a change is changed with it: the ratio of an input or a request to those
    before, the tokens held where spare ones are capped, the load of the SKUs offered where these change.
    Raises BadInput, one line, for a feature or SKU that the log does not have, or a value that is not possible."""
    for edit in scenario.edits:
        frame = _edited(frame, edit)
    return frame


def changed_columns(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Names of the features that differ in any row, in their order; unknown in both is no difference."""
    old, new = before.to_numpy(dtype=float), after.to_numpy(dtype=float)
    differs = ~((old == new) | (np.isnan(old) & np.isnan(new)))
    return [str(name) for name, changed in zip(before.columns, differs.any(axis=0), strict=True) if changed]


def _edited(frame: pd.DataFrame, edit: Edit) -> pd.DataFrame:
    match edit:
        case SetFeature():
            return _set_feature(frame, edit)
        case CapSpare():
            return _cap_spare(frame, edit)
        case ShiftSku():
            return shift_sku(frame, edit)
        case SetStd():
            return _set_std(frame, edit)
        case EvenLoad():
            return even_load(frame)
    return shift_all(frame, edit)


def _set_feature(frame: pd.DataFrame, edit: SetFeature) -> pd.DataFrame:
    where = f"what-if {edit}"
    if edit.name not in frame:
        raise BadInput(where, f"the log has no feature {edit.name!r}", f"one of {_nearest(frame, edit.name)}")
    old = frame[edit.name]
    new = old * edit.value if edit.is_factor else pd.Series(edit.value, index=frame.index)
    is_wrong = np.array([not is_possible(edit.name, value) for value in np.unique(new.dropna())])
    if is_wrong.any():
        worst = np.unique(new.dropna())[is_wrong][0]
        raise BadInput(where, f"{edit.name} cannot be {worst:g}", range_of(edit.name)[2])
    changed = {edit.name: new}
    follower = FOLLOWS.get(edit.name, "")
    if follower in frame:
        changed[follower] = frame[follower] * new / old.where(old > 0)
    if edit.name == "input_bytes" and INPUT_USUAL in frame:
        changed[INPUT_USUAL] = frame[INPUT_USUAL] + np.log1p(new) - np.log1p(old)
    return frame.assign(**changed)


def _set_std(frame: pd.DataFrame, edit: SetStd) -> pd.DataFrame:
    if edit.word in (CPU_LOAD, "load"):
        names = [name for name in frame if name == ALL_LOAD_SD or str(name).startswith(LOAD_SD.format(""))]
    else:
        names = [name for name in frame if name == edit.word + SD]
    if not names:
        has = [str(name).removesuffix(SD) for name in frame if str(name).endswith(SD) and name != ALL_LOAD_SD]
        has += [CPU_LOAD] * any(name == ALL_LOAD_SD or str(name).startswith(LOAD_SD.format("")) for name in frame)
        expected = f"one of {', '.join(has)}" if has else "a log that has one: this one has none"
        raise BadInput(f"what-if {edit}", f"the log has no standard deviation of {edit.word!r}", expected)
    for name in names:
        if not is_possible(str(name), edit.value):
            raise BadInput(f"what-if {edit}", f"{name} cannot be {edit.value:g}", range_of(str(name))[2])
    # unknown stays unknown, as for a SKU that was not offered
    return frame.assign(**{str(name): frame[name].where(frame[name].isna(), edit.value) for name in names})


def _cap_spare(frame: pd.DataFrame, edit: CapSpare) -> pd.DataFrame:
    if not any(name in frame for name in SPARE_FEATURES):
        expected = f"a log with {' or '.join(SPARE_FEATURES)}; this one has {_nearest(frame, 'tokens')}"
        raise BadInput(f"what-if {edit}", "the log says nothing of spare tokens", expected)
    unknown = pd.Series(np.nan, index=frame.index)
    requested = frame.get("requested_tokens", unknown)
    cap = requested * edit.multiple if edit.multiple else pd.Series(0.0, index=frame.index)
    most = dict.fromkeys(SPARE_FEATURES, cap) | {f"{name}_mean": requested + cap for name in HELD}
    # an unknown cap leaves what is there
    new = {name: frame[name].mask(frame[name] > top, top) for name, top in most.items() if name in frame}
    if "mean_tokens_mean" in frame and "spare_tokens_mean" in frame:
        dropped = (frame["spare_tokens_mean"] - new["spare_tokens_mean"]).fillna(0.0)
        new["mean_tokens_mean"] = (frame["mean_tokens_mean"] - dropped).clip(lower=0.0)
    for name in [name for name in new if name.endswith("_mean")]:
        deviation = name.removesuffix("_mean") + SD
        if deviation in frame:  # what is held in smaller numbers deviates by less
            left = (new[name] / frame[name].where(frame[name] > 0)).fillna(1.0)
            new[deviation] = frame[deviation] * left
    return frame.assign(**new)


def _nearest(frame: pd.DataFrame, name: str) -> str:
    """The names of the frame most like this one first, and how many more there are."""
    names = [str(column) for column in frame]
    likely = difflib.get_close_matches(name, names, n=N_NAMED, cutoff=0.0)
    rest = f" and {len(names) - len(likely)} more" if len(names) > len(likely) else ""
    skus = skus_of(frame)
    return ", ".join(likely) + rest + (f" (SKUs: {', '.join(skus)})" if skus and "sku" in name.lower() else "")
