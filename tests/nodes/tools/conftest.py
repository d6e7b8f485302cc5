"""What the tests of the tools' parsers share: logs, and their values by metric."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.nodes.execution import ParsedLog
from tasks.nodes.tools import PARSERS

LOGS = Path(__file__).parent / "logs"
BENCHMARKS = {"fio": "disk-fio", "ioping": "disk-ioping", "qperf": "network-qperf", "iperf3": "network-iperf3"}

Values = dict[str, tuple[float, str]]


@pytest.fixture(scope="session")
def logs() -> Path:
    return LOGS


@pytest.fixture(scope="session")
def parse() -> Callable[[str], ParsedLog]:
    """Parses a log by its name under logs/; the folder says which benchmark it is of."""

    def parse_log(name: str) -> ParsedLog:
        tool, file = name.split("/")
        benchmark = BENCHMARKS.get(tool) or f"{file.split('-')[0]}-sysbench"
        return PARSERS[benchmark].parse((LOGS / name).read_text())

    return parse_log


@pytest.fixture(scope="session")
def values(parse: Callable[[str], ParsedLog]) -> Callable[[str], Values]:
    """Values and units of a log by metric; the log may have no faults."""

    def values_of(name: str) -> Values:
        log = parse(name)
        assert log.faults == ()
        return {one.metric: (one.value, one.unit) for one in log.measured}

    return values_of


@pytest.fixture(scope="session")
def read_ioping() -> Callable[[str], Values]:
    """Values of a text of ioping, which may have no faults."""

    def read(text: str) -> Values:
        log = PARSERS["disk-ioping"].parse(text)
        assert log.faults == ()
        return {one.metric: (one.value, one.unit) for one in log.measured}

    return read


Edit = Callable[[str], str] | tuple[str, str] | str  # what stands there once and what for it; where the log ends


def edited(text: str, edit: Edit) -> str:
    """A text after an edit; an end is behind the first place where that stands."""
    if isinstance(edit, str):
        return text[: text.index(edit) + len(edit)]
    if isinstance(edit, tuple):
        assert text.count(edit[0]) == 1
        return text.replace(*edit)
    return edit(text)


@dataclass(frozen=True)
class Broken:
    """What is left of a log after an edit. lost: metrics of the whole log that are missing now."""

    lost: set[str]
    faults: list[tuple[int, str]]
    log: ParsedLog


@pytest.fixture(scope="session")
def broken(logs: Path) -> Callable[[str, str, Edit], Broken]:
    """Parses an edited log. Whatever the edit: metrics are measured or missing, once each, and never made up."""

    def parse_edited(benchmark: str, name: str, edit: Edit) -> Broken:
        whole = (logs / name).read_text()
        before, after = PARSERS[benchmark].parse(whole), PARSERS[benchmark].parse(edited(whole, edit))
        assert before.faults == ()
        measured = {one.metric: one for one in after.measured}
        assert len(measured) == len(after.measured)
        assert sorted([*measured, *after.missing]) == sorted(PARSERS[benchmark].metrics)
        assert all(math.isfinite(one.value) and one.value >= 0 for one in after.measured)
        kept = {one.metric: one for one in before.measured if one.metric in measured}
        assert kept == measured  # no value but those of the whole log
        lost = {one.metric for one in before.measured} - set(measured)
        return Broken(lost, [(fault.place, fault.reason) for fault in after.faults], after)

    return parse_edited


@pytest.fixture(scope="session")
def read_faults() -> Callable[[str, str], ParsedLog]:
    """Parses a text as the log of a benchmark."""
    return lambda benchmark, text: PARSERS[benchmark].parse(text)
