"""Changes that could be made to jobs, the scenarios of the paper, and how both are read from the command line.

Source: Zhu et al. 2023, 7.1 to 7.3; even_load and single changes are ours."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import get_args

from tasks.errors import BadInput
from tasks.jobs.control.named import Named
from tasks.jobs.control.params import WhatIfParams

NAMED: tuple[Named, ...] = get_args(Named)
CPU_LOAD = "cpu_load"


@dataclass(frozen=True)
class SetFeature:
    """One feature gets a value in every row, or is multiplied by it."""

    name: str
    value: float
    is_factor: bool = False

    def __str__(self) -> str:
        return f"{self.name}={'x' if self.is_factor else ''}{self.value:g}"


@dataclass(frozen=True)
class CapSpare:
    """Spare tokens beyond the request are at most `multiple` times the tokens requested; 0 switches them off.

    It means what `spare_multiple` means to the recorder: with 2, a job that requests 66 tokens holds up to 198."""

    multiple: float

    def __str__(self) -> str:
        return f"spare_multiplier={self.multiple:g}"


@dataclass(frozen=True)
class ShiftSku:
    """What ran on SKU `source` runs on `target`: vertices, their shares, and the offer."""

    source: str
    target: str

    def __str__(self) -> str:
        return f"shift-sku {self.source}:{self.target}"


@dataclass(frozen=True)
class ShiftAll:
    """The same from every other SKU of the log; an empty target is the last SKU in order of names."""

    target: str = ""

    def __str__(self) -> str:
        return f"shift-sku all:{self.target or 'newest'}"


@dataclass(frozen=True)
class SetStd:
    """The standard deviation of what `word` names; cpu_load: of the load, over all and on each SKU."""

    word: str
    value: float

    def __str__(self) -> str:
        return f"set-std {self.word}={self.value:g}"


@dataclass(frozen=True)
class EvenLoad:
    """Every SKU has, at all times, the mean load of all rows, without deviation."""

    def __str__(self) -> str:
        return "even load"


Edit = SetFeature | CapSpare | ShiftSku | ShiftAll | SetStd | EvenLoad


@dataclass(frozen=True)
class Scenario:
    """Changes made one after the other. Printed as they were asked for."""

    name: str
    edits: tuple[Edit, ...]

    def __str__(self) -> str:
        return ", ".join(map(str, self.edits))


def named_scenario(name: str, params: WhatIfParams) -> Scenario:
    """A scenario of the paper, or even_load. Raises BadInput for another name.

    no_spare: no spare tokens (7.1). newest_sku: all vertices on the newest SKU, params.newest_sku (7.2). steady_load:
    no deviation of the load (7.3), each SKU keeping its mean. even_load: also the same load on all SKUs."""
    edits: dict[str, Edit] = {
        "no_spare": CapSpare(0),
        "newest_sku": ShiftAll(params.newest_sku),
        "steady_load": SetStd(CPU_LOAD, 0),
        "even_load": EvenLoad(),
    }
    if name not in edits:
        raise BadInput(f"scenario {name!r}", "not a scenario", f"one of {', '.join(NAMED)}")
    return Scenario(name, (edits[name],))


SPARE_WORDS = ("spare_multiplier", "spare_multiple")
# What is known of a run and does not make it longer or shorter: the model predicts by it, but a change says nothing
NO_CAUSES = (
    (r"requested_(?!tokens$).+", "a request is no cause: it tells what the user expects of the run"),
    (
        r"estimated_.+|cost_ratio|n_operators|op_.+",
        "an estimate is no cause: it tells of the run and does not make it so",
    ),
    (r"hour_of_day|day_of_week", "the clock is no cause: it stands for the load that comes with it"),
    (
        r"n_before|.+_before|.*log_.+|wait_mean_s|hours_since_last|(recent_)?shape_.+|(read|temp)_bytes_.+|.+_ratio",
        "what earlier runs did is no cause: it cannot be changed",
    ),
)
CAUSES = "an allocation (tokens, spare_multiplier), a machine (offered_SKU, --shift-sku), a load (load, queue) or input"
WORDS = {"tokens": "requested_tokens", "input": "input_bytes", "queue": "queue_length", "load": "load_mean"}


def parse_scenario(
    params: WhatIfParams,
    *,
    scenario: str | None = None,
    sets: Sequence[str] = (),
    shifts: Sequence[str] = (),
    stds: Sequence[str] = (),
) -> Scenario:
    """The scenario of `--scenario NAME`, `--set NAME=VALUE`, `--shift-sku A:B` and `--set-std WORD=VALUE`.

    They are made in this order. VALUE is a number; `x2` multiplies what each row has. NAME is any feature (checked when
    the change is made), a short word for one (tokens, input, queue, load) or spare_multiplier. Raises BadInput for
    none of them, something else than these forms, or the same thing changed twice."""
    edits: list[Edit] = [*named_scenario(scenario, params).edits] if scenario else []
    edits += [_set(text) for text in sets]
    edits += [_shift(text) for text in shifts]
    edits += [_std(text) for text in stds]
    if not edits:
        fix = f"give one of {', '.join(NAMED)}, --set, --shift-sku or --set-std"
        raise BadInput("what-if", "nothing is changed", "at least one change", fix)
    touched = [_touched(edit) for edit in edits]
    for place, edit in enumerate(edits):
        if touched[place] in touched[:place]:
            raise BadInput(f"what-if {edit}", f"{touched[place]} is changed twice", "each thing once", "drop one")
    is_named = scenario is not None and len(edits) == 1
    return Scenario(scenario if is_named and scenario else ", ".join(map(str, edits)), tuple(edits))


def _touched(edit: Edit) -> str:
    match edit:
        case SetFeature():
            return edit.name
        case CapSpare():
            return "the cap of spare tokens"
        case ShiftSku():
            return f"SKU {edit.source}"
        case SetStd():
            return f"the deviation of {edit.word}"
        case ShiftAll():
            return "where all vertices run"
    return "the load"


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
        return CapSpare(number)
    feature = WORDS.get(name, name)
    _refuse_no_cause(feature, where)
    return SetFeature(feature, number, is_factor)


def _refuse_no_cause(name: str, where: str) -> None:
    for pattern, why in NO_CAUSES:
        if re.fullmatch(pattern, name):
            raise BadInput(where, why, CAUSES)


def _shift(text: str) -> Edit:
    where = f"--shift-sku {text}"
    source, target = _split(text, ":", where, "FROM:TO, two SKUs of the log")
    if source == target:
        raise BadInput(where, "from a SKU to itself", "two SKUs that differ")
    return ShiftAll(target) if source == "all" else ShiftSku(source, target)


def _std(text: str) -> Edit:
    where = f"--set-std {text}"
    word, value = _split(text, "=", where, "WORD=VALUE, such as cpu_load=0")
    number = _number(value, where)
    if number < 0:
        raise BadInput(where, f"a standard deviation of {number:g}", "0 or more")
    return SetStd(word, number)


def _split(text: str, sign: str, where: str, expected: str) -> tuple[str, str]:
    left, found, right = (part.strip() for part in text.partition(sign))
    if not (left and found and right):
        raise BadInput(where, f"no {sign!r} between two words", expected)
    return left, right


def _number(text: str, where: str) -> float:
    try:
        number = float(text)
    except ValueError:
        raise BadInput(where, f"{text!r} is not a number", "a number, or x and a factor") from None
    if number != number or number in (float("inf"), float("-inf")):
        raise BadInput(where, f"{text!r} is not finite", "a finite number")
    return number
