"""A what-if question read from the words of the command line."""

from collections.abc import Sequence

from tasks.errors import BadInput
from tasks.jobs.control.params import WhatIfParams
from tasks.jobs.control.scenarios import (
    NAMED,
    CapSpare,
    Edit,
    Scenario,
    SetFeature,
    SetStd,
    ShiftAll,
    ShiftSku,
    named_scenario,
)

SPARE_WORDS = ("spare_multiplier", "spare_multiple")
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
    return SetFeature(WORDS.get(name, name), number, is_factor)


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
