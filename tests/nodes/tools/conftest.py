"""What the tests of the tools' parsers share: logs, what stands in them, and logs after an edit."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tasks.nodes.execution import ParsedLog
from tasks.nodes.tools import PARSERS

LOGS = Path(__file__).parent / "logs"
BENCHMARKS = {"fio": "disk-fio", "ioping": "disk-ioping", "qperf": "network-qperf", "iperf3": "network-iperf3"}
BENCHMARKS |= {"stress-ng": "stress-ng", "openssl": "cpu-openssl", "STREAM": "memory-stream"}
BENCHMARKS |= {"CoreMark": "cpu-coremark", "UnixBench": "system-unixbench"}
Edit = Callable[[str], str] | tuple[str, str] | str  # what stands there once and what for it; where the log ends


def benchmark_of(name: str) -> str:
    """The benchmark whose log lies under this name: the folder says it."""
    tool, file = name.split("/")
    return BENCHMARKS.get(tool) or f"{file.split('-')[0]}-sysbench"


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
def logs() -> Path:
    return LOGS


@pytest.fixture(scope="session")
def read() -> Callable[[str, str], ParsedLog]:
    """Parses a text as the log of a benchmark."""
    return lambda benchmark, text: PARSERS[benchmark].parse(text)


@pytest.fixture(scope="session")
def parse() -> Callable[[str], ParsedLog]:
    """Parses a log by its name under logs/."""
    return lambda name: PARSERS[benchmark_of(name)].parse((LOGS / name).read_text())


@pytest.fixture(scope="session")
def broken() -> Callable[[str, Edit], Broken]:
    """Parses an edited log. Whatever the edit: metrics are measured or missing, once each, and never made up."""

    def parse_edited(name: str, edit: Edit) -> Broken:
        whole, parser = (LOGS / name).read_text(), PARSERS[benchmark_of(name)]
        before, after = parser.parse(whole), parser.parse(edited(whole, edit))
        assert before.faults == ()
        measured = {one.metric: one for one in after.measured}
        assert len(measured) == len(after.measured)
        assert not set(measured) & set(after.missing) and {*measured, *after.missing} <= set(parser.metrics)
        assert all(math.isfinite(one.value) and one.value >= 0 for one in after.measured)
        kept = {one.metric: one for one in before.measured if one.metric in measured}
        assert kept == measured  # no value but those of the whole log
        lost = {one.metric for one in before.measured} - set(measured)
        return Broken(lost, [(fault.place, fault.reason) for fault in after.faults], after)

    return parse_edited
