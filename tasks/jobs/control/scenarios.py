"""Changes of the causes of runtimes: read from the command line, and made true in a frame of features.

Source: Zhu et al. 2023, 7.1 to 7.3; even_load and single changes are ours."""

import re
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import get_args

import numpy as np
import pandas as pd

from tasks.choices import Named
from tasks.errors import BadInput, NotFound
from tasks.jobs.predict.features import OWN, feature_of
from tasks.jobs.predict.peers import INPUT_USUAL

NAMED: tuple[Named, ...] = get_args(Named)
CPU_LOAD = "cpu_load"
SPARE_WORDS = ("spare_multiplier", "spare_multiple")
WORDS = {
    "tokens": "requested_tokens",
    **dict.fromkeys(("cpus", "processors", "cores", "requested_cpus"), "requested_tokens"),
    "input": "input_bytes",
    "queue": "queue_length",
    "load": "load_mean",
    **dict.fromkeys(("limit", "walltime"), "requested_runtime_s"),
    "memory": "requested_memory_bytes",
}
CAUSES = "an allocation (tokens, spare_multiplier), a machine (offered_SKU, --shift-sku), a load (load, queue) or input"
EARLIER = "what earlier runs did is no cause: it cannot be changed"
# What is known of a run and does not make it longer or shorter: the model predicts by it, but a change says nothing
NO_CAUSES = (
    (r"requested_(?!tokens$).+", "a request is no cause: it tells what the user expects of the run"),
    (
        r"estimated_.+|cost_ratio|n_operators|op_.+",
        "an estimate is no cause: it tells of the run and does not make it so",
    ),
    (r"hour_of_day|day_of_week", "the clock is no cause: it stands for the load that comes with it"),
    (r"(read|temp)_bytes_.+|.+_ratio", EARLIER),
)
INFINITY, SMALLEST = float("inf"), sys.float_info.min
RANGES = (  # values that features can have, the first that fits: lowest, highest, in words
    (r"offered_.+", (0, 1), "0 (not offered) or 1"),
    (r"vertex_share_.+_mean", (0, 1), "a share from 0 to 1"),
    (r"(load_mean|sku_load_mean_.+)", (0, 2), "a load from 0 to 2, where 1 is all that there is"),
    (r"(load_sd|sku_load_sd_.+)", (0, 1), "a deviation of the load from 0 to 1"),
    (r"requested_.+", (SMALLEST, INFINITY), "more than 0"),
    (r".+", (0, INFINITY), "0 or more"),
)
OFFERED = "offered_{}"
COUNTS = ("vertices_{}_mean", "vertex_share_{}_mean")
LOAD_MEAN, LOAD_SD, FREE = "sku_load_mean_{}", "sku_load_sd_{}", "sku_free_tokens_{}"
STATE = (LOAD_MEAN, LOAD_SD, FREE)  # known of the SKUs offered only
SKU_NAMES = [re.compile(re.escape(name).replace(r"\{\}", "(.+)")) for name in (OFFERED, *COUNTS, *STATE)]
SPARE_FEATURES = ("spare_tokens_available", "spare_tokens_mean")
HELD = ("min_tokens", "peak_tokens")  # at most what was requested and the spare ones
FOLLOWS = {"input_bytes": "input_ratio", "requested_tokens": "tokens_ratio"}
SD, ALL_LOAD_SD = "_sd", "load_sd"


@dataclass(frozen=True)
class Edit:
    """One change. text: as it is asked for; touches: what it changes, in words; made_in: a frame with it made true;
    feature: the one that it sets, empty where it is another change."""

    text: str
    touches: str
    made_in: Callable[[pd.DataFrame], pd.DataFrame] = field(compare=False)
    feature: str = ""

    def __str__(self) -> str:
        return self.text


def set_feature(name: str, value: float, *, is_factor: bool = False, word: str = "") -> Edit:
    """One feature gets a value in every row, or is multiplied by it; its ratio to earlier runs changes with it.

    word: what it was called by who asked."""
    word = word or name
    text = f"{word}={'x' if is_factor else ''}{value:g}"

    def made_in(frame: pd.DataFrame) -> pd.DataFrame:
        column = _column(name, frame)
        if column not in frame:
            raise BadInput(f"what-if {word}", f"this log tells nothing of {word}", causes_in(frame))
        old = frame[column]
        new = old * value if is_factor else pd.Series(value, index=frame.index)
        _check_possible(f"what-if {text}", column, np.unique(new.dropna()))
        changed, follower = {column: new}, FOLLOWS.get(column, "")
        if follower in frame:
            changed[follower] = frame[follower] * new / old.where(old > 0)
        if column == "input_bytes" and INPUT_USUAL in frame:
            changed[INPUT_USUAL] = frame[INPUT_USUAL] + np.log1p(new) - np.log1p(old)
        return frame.assign(**changed)

    return Edit(text, name, made_in, name)


def _column(name: str, frame: pd.DataFrame) -> str:
    return own if (own := f"{OWN}{name}") in frame else name


def check_varied(edit: Edit, training: pd.DataFrame) -> None:
    """Raises BadInput where all runs that a model learnt from had one value of what is set: it would foretell no
    change."""
    values = training.get(_column(edit.feature, training), pd.Series(dtype="float64")).dropna().unique()
    if len(values) == 1:
        word = edit.text.partition("=")[0]
        problem = f"{word} was {values[0]:g} in all runs that the model learnt from"
        raise BadInput(f"what-if {edit}", problem, "a cause that varied", "try it on some runs, and train again")


def cap_spare(multiple: float) -> Edit:
    """Spare tokens beyond the request are at most `multiple` times the tokens requested; 0 switches them off.

    It means what `spare_multiple` means to the recorder: with 2, a job that requests 66 tokens holds up to 198."""
    text = f"spare_multiplier={multiple:g}"

    def made_in(frame: pd.DataFrame) -> pd.DataFrame:
        if not any(name in frame for name in SPARE_FEATURES):
            raise BadInput(f"what-if {text}", "this log tells nothing of spare tokens", causes_in(frame))
        requested = frame.get("requested_tokens", pd.Series(np.nan, index=frame.index))
        cap = requested * multiple if multiple else pd.Series(0.0, index=frame.index)
        most = dict.fromkeys(SPARE_FEATURES, cap) | {f"{name}_mean": requested + cap for name in HELD}
        # an unknown cap leaves what is there
        new = {name: frame[name].mask(frame[name] > top, top) for name, top in most.items() if name in frame}
        if "mean_tokens_mean" in frame and "spare_tokens_mean" in frame:
            dropped = (frame["spare_tokens_mean"] - new["spare_tokens_mean"]).fillna(0.0)
            new["mean_tokens_mean"] = (frame["mean_tokens_mean"] - dropped).clip(lower=0.0)
        for name in [name for name in new if name.endswith("_mean")]:
            deviation = name.removesuffix("_mean") + SD
            if deviation in frame:  # what is held in smaller numbers deviates by less
                new[deviation] = frame[deviation] * (new[name] / frame[name].where(frame[name] > 0)).fillna(1.0)
        return frame.assign(**new)

    return Edit(text, "the cap of spare tokens", made_in)


def shift_sku(source: str, target: str) -> Edit:
    """What ran on SKU `source` runs on `target`: vertices, their shares and the offer, in the rows that have any.

    The state of the source becomes unknown, as of every SKU that is not offered; that of a target not offered before
    is what the rows before last knew of it. Spare tokens are those of the SKUs offered: they change as the free tokens
    of these do."""
    text = f"shift-sku {source}:{target}"

    def made_in(frame: pd.DataFrame) -> pd.DataFrame:
        _check_skus(frame, f"what-if {text}", source, target)
        new: dict[str, pd.Series] = {}
        for name in COUNTS:
            left, right = name.format(source), name.format(target)
            if left in frame:
                moved = frame[left]
                new[left] = moved.where(moved.isna(), 0.0)
                old = frame.get(right, moved * 0)
                new[right] = old.where(moved.isna(), old.fillna(0.0) + moved)
        left, right = OFFERED.format(source), OFFERED.format(target)
        if left not in frame:
            return _known(frame, new)
        is_moved = frame[left] > 0
        new[left] = frame[left].mask(is_moved, 0.0)
        new[right] = frame[right].mask(is_moved, 1.0) if right in frame else is_moved.astype(float)
        for name in STATE:
            left, right = name.format(source), name.format(target)
            if left in frame:
                new[left] = frame[left].mask(is_moved)
            if right in frame:
                new[right] = frame[right].mask(is_moved & frame[right].isna(), frame[right].ffill().bfill())
        edited, spare = _known(frame, new), SPARE_FEATURES[0]
        if spare in frame:
            before, after = _free_tokens(frame), _free_tokens(edited)
            ratio = (after / before.where(before > 0)).where(is_moved).fillna(1.0)
            edited = edited.assign(**{spare: frame[spare] * ratio})
        return _with_offered_load(edited, is_moved)

    return Edit(text, f"SKU {source}", made_in)


def shift_all(target: str = "") -> Edit:
    """The same from every other SKU of the log; an empty target is the last SKU in order of names."""
    text = f"shift-sku all:{target or 'newest'}"

    def made_in(frame: pd.DataFrame) -> pd.DataFrame:
        where, skus = f"what-if {text}", skus_of(frame)
        last = target or (skus[-1] if skus else "")
        _check_skus(frame, where, last)
        if len(skus) < 2:
            raise BadInput(where, f"the log has only the SKU {last}", "at least two, to move from one to another")
        for sku in skus:
            frame = shift_sku(sku, last).made_in(frame) if sku != last else frame
        return frame

    return Edit(text, "where all vertices run", made_in)


def set_std(word: str, value: float) -> Edit:
    """The standard deviation of what `word` names; cpu_load: of the load, over all and on each SKU."""
    text = f"set-std {word}={value:g}"

    def made_in(frame: pd.DataFrame) -> pd.DataFrame:
        of_load = [str(name) for name in frame if name == ALL_LOAD_SD or str(name).startswith(LOAD_SD.format(""))]
        is_load = word in (CPU_LOAD, "load")
        names = of_load if is_load else [str(name) for name in frame if name == word + SD]
        if not names:
            has = [str(name).removesuffix(SD) for name in frame if str(name).endswith(SD) and name != ALL_LOAD_SD]
            has += [CPU_LOAD] * bool(of_load)
            expected = f"one of {', '.join(has)}" if has else "a log that has one: this one has none"
            raise BadInput(f"what-if {text}", f"the log has no standard deviation of {word!r}", expected)
        for name in names:
            _check_possible(f"what-if {text}", name, [value])
        return _set_known(frame, names, value)

    return Edit(text, f"the deviation of {word}", made_in)


def _with_even_load(frame: pd.DataFrame) -> pd.DataFrame:
    """Every SKU has, at all times, the mean load of all rows, without deviation."""
    skus = skus_of(frame)
    means = [name for name in (*map(LOAD_MEAN.format, skus), "load_mean") if name in frame]
    if not means:
        raise BadInput("what-if even load", "the log says nothing of the load", "a log with load_mean")
    overall = frame["load_mean" if "load_mean" in frame else means].to_numpy(dtype=float)
    deviations = [name for name in (ALL_LOAD_SD, *map(LOAD_SD.format, skus)) if name in frame]
    return _set_known(_set_known(frame, means, float(np.nanmean(overall))), deviations, 0.0)


EDITS: dict[str, Edit] = {
    "no_spare": cap_spare(0),  # 7.1
    "newest_sku": shift_all(),  # 7.2
    "steady_load": set_std(CPU_LOAD, 0),  # 7.3: each SKU keeps its mean
    "even_load": Edit("even load", "the load", _with_even_load),
}


@dataclass(frozen=True)
class Scenario:
    """Changes made one after the other. Printed as they were asked for."""

    name: str
    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.edits))


def named_scenario(name: str) -> Scenario:
    """A scenario of the paper, or even_load. Raises BadInput for another name."""
    if name not in EDITS:
        raise BadInput(f"scenario {name!r}", "not a scenario", f"one of {', '.join(NAMED)}")
    return Scenario(name, (EDITS[name],))


def parse_scenario(
    *, scenario: str | None = None, sets: Sequence[str] = (), shifts: Sequence[str] = (), stds: Sequence[str] = ()
) -> Scenario:
    """The scenario of `--scenario NAME`, `--set NAME=VALUE`, `--shift-sku A:B` and `--set-std WORD=VALUE`.

    They are made in this order. VALUE is a number; `x2` multiplies what each row has. NAME is any feature (checked when
    the change is made), a column of --features, a word for one (tokens, cpus, input, queue, load) or spare_multiplier.
    A column that is called like such a word, or like a feature that is no cause, is own_NAME. Raises BadInput for none
    of them, something else than these forms, or the same thing changed twice."""
    edits: list[Edit] = [*named_scenario(scenario).edits] if scenario else []
    edits += [*map(_set, sets), *map(_shift, shifts), *map(_std, stds)]
    if not edits:
        fix = f"give --scenario ({', '.join(NAMED)}), --set NAME=VALUE, --shift-sku A:B or --set-std NAME=0"
        raise BadInput("what-if", "nothing is changed", "at least one change", fix)
    for place, edit in enumerate(edits):
        if edit.touches in [earlier.touches for earlier in edits[:place]]:
            raise BadInput(f"what-if {edit}", f"{edit.touches} is changed twice", "each thing once", "drop one")
    return Scenario(scenario if scenario and len(edits) == 1 else ", ".join(map(str, edits)), tuple(edits))


def apply(scenario: Scenario, frame: pd.DataFrame) -> pd.DataFrame:
    """The frame with the scenario made true, in the order of its edits: a new one, with the same columns and index.

    frame: (n, p) features, NaN where unknown, rows in order of submission (a SKU that was not offered to a run gets the
    load that it last had). What follows from a change is changed with it: the ratio of an input or a request to those
    before, the tokens held where spare ones are capped, the load of the SKUs offered where these change.
    Raises BadInput, one line, for a feature or SKU that the log does not have, or a value that is not possible."""
    for edit in scenario.edits:
        frame = edit.made_in(frame)
    return frame


def changed_columns(before: pd.DataFrame, after: pd.DataFrame) -> list[str]:
    """Names of the features that differ in any row, in their order; unknown in both is no difference."""
    return [str(name) for name in before if not np.array_equal(before[name], after[name], equal_nan=True)]


def causes_in(frame: pd.DataFrame) -> str:
    """What can be changed in this log, as it is asked for, and what is no cause, in words."""
    has_spare = any(name in frame for name in SPARE_FEATURES)
    words = ("tokens" if has_spare else "cpus", "input", "queue", "load")
    named = [f"--set {word}=" for word in words if WORDS[word] in frame]
    named += ["--set spare_multiplier="] * has_spare
    own = {name: name.removeprefix(OWN) for name in map(str, frame) if name.startswith(OWN)}
    named += [f"--set {name if word in WORDS or _no_cause(word) else word}=" for name, word in own.items()]
    named += ["--shift-sku A:B"] * (len(skus_of(frame)) > 1) + ["--set-std cpu_load="] * (ALL_LOAD_SD in frame)
    known = (
        f"a cause that it tells of: {', '.join(named)}"
        if named
        else f"a log that tells of {CAUSES}, or a column of --features"
    )
    return f"{known}; limits, memory, estimates and earlier runs are no causes"


def skus_of(frame: pd.DataFrame) -> list[str]:
    """The SKUs that the features name, in order of names; gen10 comes after gen9."""
    skus = {match[1] for name in frame for pattern in SKU_NAMES if (match := pattern.fullmatch(str(name)))}

    def by_number(sku: str) -> list[tuple[bool, int, str]]:
        return [(part.isdigit(), int(part) if part.isdigit() else 0, part) for part in re.findall(r"\d+|\D+", sku)]

    return sorted(skus, key=by_number)


def _set(text: str) -> Edit:
    where = f"--set {text}"
    name, value = _split(text, "=", where, "NAME=VALUE, such as spare_multiplier=1 or input_bytes=x2")
    is_factor = value[:1] in ("x", "×", "*")
    number = _number(value[1:] if is_factor else value, where)
    if is_factor and number <= 0:
        raise BadInput(where, f"a factor of {number:g}", "a factor above 0")
    if name in SPARE_WORDS:
        if number < 0 or is_factor:
            raise BadInput(where, f"{value} is no cap", "a number from 0 on, times the tokens requested; 0: none")
        return cap_spare(number)
    feature = WORDS.get(name, name)
    if not name.startswith(OWN) and (why := _no_cause(feature)):
        raise BadInput(where, why, CAUSES)
    return set_feature(feature, number, is_factor=is_factor, word=name)


def _no_cause(feature: str) -> str:
    """Why a feature is no cause; empty where it may be one."""
    try:
        if feature_of(feature).kind == "history":
            return EARLIER
    except NotFound:
        pass  # a name that only an edit knows
    return next((why for pattern, why in NO_CAUSES if re.fullmatch(pattern, feature)), "")


def _shift(text: str) -> Edit:
    where = f"--shift-sku {text}"
    source, target = _split(text, ":", where, "FROM:TO, two SKUs of the log")
    if source == target:
        raise BadInput(where, "from a SKU to itself", "two SKUs that differ")
    return shift_all(target) if source == "all" else shift_sku(source, target)


def _std(text: str) -> Edit:
    where = f"--set-std {text}"
    word, value = _split(text, "=", where, "WORD=VALUE, such as cpu_load=0")
    number = _number(value, where)
    if number < 0:
        raise BadInput(where, f"a standard deviation of {number:g}", "0 or more")
    return set_std(word, number)


def _split(text: str, sign: str, where: str, expected: str) -> tuple[str, str]:
    left, separator, right = (part.strip() for part in text.partition(sign))
    if not (left and separator and right):
        raise BadInput(where, f"no {sign!r} between two words", expected)
    return left, right


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise BadInput(where, f"{text!r} is not a number", "a number, or x and a factor") from None
    if not np.isfinite(number):
        raise BadInput(where, f"{text!r} is not finite", "a finite number")
    return number


def _check_possible(where: str, feature: str, values: Iterable[float]) -> None:
    """Raises BadInput for the first value that the feature cannot have; offered_<sku> is one of two."""
    (low, high), words = next((ends, words) for pattern, ends, words in RANGES if re.fullmatch(pattern, feature))
    for value in values:
        if not low <= value <= high or (feature.startswith("offered_") and value not in (0, 1)):
            raise BadInput(where, f"{feature} cannot be {value:g}", words)


def _check_skus(frame: pd.DataFrame, where: str, *names: str) -> None:
    skus = skus_of(frame)
    if not skus:
        expected = "a log with SKUs offered (offered_<sku>) or vertices by SKU"
        raise BadInput(where, "the log says nothing of kinds of machine (SKUs)", expected)
    for sku in names:
        if sku not in skus:
            raise BadInput(where, f"the log has no SKU {sku!r}", f"one of {', '.join(skus)}")


def _known(frame: pd.DataFrame, new: dict[str, pd.Series]) -> pd.DataFrame:
    """The frame with those of the new columns that it has: a model knows no others."""
    return frame.assign(**{name: column for name, column in new.items() if name in frame})


def _set_known(frame: pd.DataFrame, names: Sequence[str], value: float) -> pd.DataFrame:
    """The columns set to a value; unknown stays unknown, as for a SKU that was not offered."""
    return frame.assign(**{name: frame[name].where(frame[name].isna(), value) for name in names})


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
    if ALL_LOAD_SD in frame and set(names) <= set(frame):
        squares = np.where(offered, frame[names].to_numpy() ** 2 + (means - mean[:, None]) ** 2, 0.0)
        sd = pd.Series(np.sqrt((share * squares).sum(axis=1)), index=frame.index)
        new[ALL_LOAD_SD] = frame[ALL_LOAD_SD].mask(is_known & sd.notna(), sd)
    return frame.assign(**new)


def _free_tokens(frame: pd.DataFrame) -> pd.Series:
    """Tokens that are free on the SKUs offered; NaN where no SKU says."""
    names = [FREE.format(sku) for sku in skus_of(frame) if FREE.format(sku) in frame]
    return frame[names].sum(axis=1, min_count=1)
