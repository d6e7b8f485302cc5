"""A scenario made true in a frame of features: a new frame, the old one stays as it is."""

import difflib

import numpy as np
import pandas as pd

from tasks.errors import BadInput
from tasks.jobs.control.edits_skus import even_load, shift_all, shift_sku, skus_of
from tasks.jobs.control.ranges import is_possible, range_of
from tasks.jobs.control.scenarios import CPU_LOAD, CapSpare, Edit, EvenLoad, Scenario, SetFeature, SetStd, ShiftSku

N_NAMED = 8  # names that an error message lists
SD = "_sd"
LOAD_SD, SKU_LOAD_SD = "load_sd", "sku_load_sd_"
FOLLOWS = {"input_bytes": "input_ratio", "estimated_cost": "cost_ratio", "requested_tokens": "tokens_ratio"}
SPARE = ("spare_tokens_available", "spare_tokens_mean")
HELD = ("min_tokens", "peak_tokens")  # at most what was requested and the spare ones


def apply(scenario: Scenario, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the scenario made true, in the order of its edits. frame: (n, p) features, NaN where unknown,
    rows in order of submission (a SKU that was not offered to a run gets the load that it last had).

    Columns and index stay. What follows from a change is changed with it: the ratio of an input, a cost or a request to
    those before, the tokens held where spare ones are capped, the load of the SKUs offered where these change.
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
    follower = FOLLOWS.get(edit.name, "")
    if follower not in frame:
        return frame.assign(**{edit.name: new})
    return frame.assign(**{edit.name: new, follower: frame[follower] * new / old.where(old > 0)})


def _set_std(frame: pd.DataFrame, edit: SetStd) -> pd.DataFrame:
    if edit.word in (CPU_LOAD, "load"):
        names = [name for name in frame if name == LOAD_SD or str(name).startswith(SKU_LOAD_SD)]
    else:
        names = [name for name in frame if name == edit.word + SD]
    if not names:
        has = [str(name).removesuffix(SD) for name in frame if str(name).endswith(SD) and name != LOAD_SD]
        has += [CPU_LOAD] * any(name == LOAD_SD or str(name).startswith(SKU_LOAD_SD) for name in frame)
        expected = f"one of {', '.join(has)}" if has else "a log that has one: this one has none"
        raise BadInput(f"what-if {edit}", f"the log has no standard deviation of {edit.word!r}", expected)
    for name in names:
        if not is_possible(str(name), edit.value):
            raise BadInput(f"what-if {edit}", f"{name} cannot be {edit.value:g}", range_of(str(name))[2])
    # unknown stays unknown, as for a SKU that was not offered
    return frame.assign(**{str(name): frame[name].where(frame[name].isna(), edit.value) for name in names})


def _cap_spare(frame: pd.DataFrame, edit: CapSpare) -> pd.DataFrame:
    if not any(name in frame for name in SPARE):
        expected = f"a log with {' or '.join(SPARE)}; this one has {_nearest(frame, 'tokens')}"
        raise BadInput(f"what-if {edit}", "the log says nothing of spare tokens", expected)
    unknown = pd.Series(np.nan, index=frame.index)
    requested = frame.get("requested_tokens", unknown)
    cap = requested * edit.multiple if edit.multiple else pd.Series(0.0, index=frame.index)
    most = dict.fromkeys(SPARE, cap) | {f"{name}_mean": requested + cap for name in HELD}
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
