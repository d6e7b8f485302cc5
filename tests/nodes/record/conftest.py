"""What the tests of the recorder share: stand-ins for the tools, tiny scripts that print a value and can be held up."""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tasks.nodes.execution import Fault, MetricValue, ParsedLog
from tasks.nodes.record.campaign import record_nodes
from tasks.nodes.record.params import BenchmarkTemplate, Dose, NodeParams, RecordParams
from tasks.nodes.tools.parsing import Parser
from tasks.record.campaign import RecordSummary

HOLD = """#!/bin/sh
if [ -e {root}/hold-{stage} ]; then touch {root}/seen-{stage}; sleep 60; fi
"""
SERVER = """
import socket, sys, time
with socket.create_server((sys.argv[1], int(sys.argv[2]))) as server:
    while True:
        server.accept()[0].close()
"""
CLIENT = """
import socket, sys
socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=5).close()
print("rate 7 MB/s")
"""


def parse(text: str) -> ParsedLog:
    """Lines `metric value unit`; a line that is something else is a fault."""
    found, faults = [], []
    for place, line in enumerate(text.splitlines(), start=1):
        words = line.split()
        if len(words) == 3 and re.fullmatch(r"[0-9.]+", words[1]):
            found.append(MetricValue(words[0], float(words[1]), words[2]))
        else:
            faults.append(Fault(place, "no metric", line))
    return ParsedLog(tuple(found), "stand-in", "1.0", () if found else ("speed",), tuple(faults))


class StandInParser(Parser):
    """Reads what the stand-ins print."""

    def parse(self, text: str) -> ParsedLog:
        return parse(text)


PARSERS = {
    name: StandInParser(name, "stand-in", aspect, {}, lambda _: None, re.compile("$^"))
    for name, aspect in (("cpu-fake", "cpu"), ("disk-fake", "disk"), ("network-fake", "network"))
}


class StandIns:
    """Scripts in a folder; the next run of the tool of a stage is held up, or fails, as long as a file says so."""

    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.cpu = self.script("benchmark", 'echo "speed 5 MB/s"')
        self.disk = self.script("disk", 'if [ -e "$1/laid" ]; then echo "latency 2 ms"; fi')
        self.lay = self.script("prepare", 'touch "$1/laid"')
        self.burn = self.script("stress", "while :; do :; done")
        (root / "server.py").write_text(SERVER)
        (root / "client.py").write_text(CLIENT)

    def script(self, stage: str, body: str) -> Path:
        """A shell script that can be held up at its begin."""
        path = self.root / stage
        path.write_text(HOLD.format(root=self.root, stage=stage) + body + "\n")
        path.chmod(0o755)
        return path

    def hold(self, stage: str) -> None:
        """Have the tool of this stage wait."""
        (self.root / f"hold-{stage}").touch()

    def let_go(self, stage: str) -> None:
        """Not any more."""
        (self.root / f"hold-{stage}").unlink()

    def is_held(self, stage: str) -> bool:
        """Whether one has got there."""
        return (self.root / f"seen-{stage}").exists()

    def templates(self) -> tuple[BenchmarkTemplate, ...]:
        """A benchmark of each kind."""
        python = sys.executable
        return (
            BenchmarkTemplate(benchmark="cpu-fake", aspect="cpu", command=str(self.cpu), limit_s=30),
            BenchmarkTemplate(
                benchmark="disk-fake", aspect="disk", command=f"{self.disk} {{folder}}",
                prepare=f"{self.lay} {{folder}}", limit_s=30,
            ),
            BenchmarkTemplate(
                benchmark="network-fake",
                aspect="network",
                command=f"{python} {self.root}/client.py {{server}} {{port}}",
                server=f"{python} {self.root}/server.py {{server}} {{port}}",
                limit_s=30,
            ),
        )  # fmt: skip

    def doses(self) -> tuple[Dose, ...]:
        """A stressor for each level of each benchmark."""
        return tuple(
            Dose(benchmark=one.benchmark, level=level, name=f"burn-{level}", command=str(self.burn))
            for one in self.templates()
            for level in (1, 2, 3)
        )


NODES = (NodeParams(name="a", machine_type="small"), NodeParams(name="b", machine_type="large"))


@pytest.fixture
def stand_ins(tmp_path: Path) -> StandIns:
    return StandIns(tmp_path / "tools")


@pytest.fixture(autouse=True)
def short_margin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Metrics of a node are kept from 0.05 s before an execution until 0.05 s after it."""
    monkeypatch.setattr("tasks.nodes.record.campaign.MARGIN_S", 0.05)


@pytest.fixture
def quick(stand_ins: StandIns, scratch: Path) -> RecordParams:
    """Two nodes of this machine without limits, no rest; nobody is foreign on a machine that runs tests."""
    return RecordParams(
        place="emulated", runs=2, stressed_ratio=0, interval_s=0.05, foreign_limit_ratio=1, repeats=0,
        isolation="none", scratch=str(scratch), emulated=NODES, short=stand_ins.templates(), doses=stand_ins.doses(),
    )  # fmt: skip


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-ins' logs are the ones that can be read."""
    monkeypatch.setattr("tasks.nodes.record.campaign.PARSERS", PARSERS)


@pytest.fixture
def record(quick: RecordParams, tmp_path: Path, lock: str, parsers: None) -> Callable[..., RecordSummary]:
    """Record with changed parameters into one folder."""

    def go(progress: Any = None, **changes: Any) -> RecordSummary:
        more = {key: changes.pop(key) for key in ("turn",) if key in changes}
        params = quick.model_copy(update=changes)
        return record_nodes(params, tmp_path / "out", progress, **more)

    return go


@pytest.fixture
def node_params() -> Callable[..., NodeParams]:
    return lambda **limits: NodeParams(**({"name": "n", "machine_type": "t"} | limits))
