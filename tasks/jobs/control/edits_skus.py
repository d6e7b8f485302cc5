"""Vertices moved from one kind of machine to another, and machines that are all loaded alike."""

import re

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.control.scenarios import EvenLoad, ShiftAll, ShiftSku

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
