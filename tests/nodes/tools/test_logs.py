"""What holds for every log that is kept here: it is told by its content, accounted for, and safe to cut anywhere."""

import math
import random
from pathlib import Path

import pytest

from tasks.nodes.tools import PARSERS, detect
from tasks.nodes.tools.parsing import SPELLED

FOLDER = Path(__file__).parent / "logs"
LOGS = sorted(path.relative_to(FOLDER).as_posix() for path in FOLDER.glob("*/*"))
PERIODS = ("ioping/1.3-periods.txt",)  # the first line of these looks like a total
N_CUTS = 80
N_EDITS = 150
PIECES = (
    "nan", "-1", "inf", "1e9", ",", ".", "%", "{", "}", "[", "]", "\n", "\r", "\x00", "9" * 30, "9" * 5000, "²", "K",
    "sec", "null", "true", '"', "/", "(", ")", "=", ":", "-",
)  # fmt: skip


def benchmark_of(name: str) -> str:
    tool, file = name.split("/")
    own = {"fio": "disk-fio", "ioping": "disk-ioping", "qperf": "network-qperf", "iperf3": "network-iperf3"}
    return own.get(tool) or f"{file.split('-')[0]}-sysbench"


@pytest.mark.parametrize("name", LOGS)
def test_a_log_is_told_by_its_content(logs, name):
    assert detect((logs / name).read_text()) == benchmark_of(name)


@pytest.mark.parametrize("name", LOGS)
def test_every_metric_is_measured_or_missing_and_has_a_unit_that_is_known(parse, name):
    log, metrics = parse(name), PARSERS[benchmark_of(name)].metrics
    assert sorted([one.metric for one in log.measured] + list(log.missing)) == sorted(metrics)
    assert [one for one in log.measured if one.unit not in SPELLED[metrics[one.metric].unit]] == []


@pytest.mark.parametrize("name", [name for name in LOGS if name not in PERIODS])
def test_a_log_that_is_cut_anywhere_has_no_value_that_the_whole_log_has_not(logs, parse, name):
    text, whole = (logs / name).read_text(), set(parse(name).measured)
    cuts = random.Random(6).sample(range(len(text)), min(N_CUTS, len(text)))
    found = {cut: set(PARSERS[benchmark_of(name)].parse(text[:cut]).measured) - whole for cut in cuts}
    assert {cut: made_up for cut, made_up in found.items() if made_up} == {}


@pytest.mark.parametrize("name", LOGS)
def test_a_log_reads_the_same_twice_and_with_bytes_that_are_no_text_before_it(logs, name):
    text, parser = (logs / name).read_text(), PARSERS[benchmark_of(name)]
    assert parser.parse(text) == parser.parse(text)
    garbage = b"\x00\xff\xfe\x1b[31m\x80garbage\n".decode("utf-8", "replace")
    assert parser.parse(garbage + text).measured == parser.parse(text).measured


@pytest.mark.parametrize(
    "text", ["", "\n", "hello\n", "{}", "[]", '{"jobs": 1}', "Threads started!\n", "1 2 3\n", "\x00" * 9, "0.5 ms\n"]
)
def test_what_no_tool_wrote_is_told_so_and_no_parser_minds(text):
    assert detect(text) in (None, "disk-fio")
    for parser in PARSERS.values():
        log = parser.parse(text)
        assert log.measured == ()
        assert len(log.faults) == 1


def test_of_logs_of_several_tools_the_first_is_told(logs):
    ioping, fio = (logs / "ioping/1.1.txt").read_text(), (logs / "fio/3.1-write.txt").read_text()
    assert detect(ioping + fio) == "disk-ioping"
    assert detect(fio + ioping) == "disk-fio"


@pytest.mark.parametrize("name", LOGS)
@pytest.mark.parametrize("benchmark", PARSERS)
def test_a_parser_takes_nothing_from_another_tools_log(logs, name, benchmark):
    if benchmark != benchmark_of(name):
        assert PARSERS[benchmark].parse((logs / name).read_text()).measured == ()


def test_no_edit_makes_a_parser_fail_or_lose_count_of_its_metrics(logs):
    rng = random.Random(7)
    texts = [(logs / name).read_text() for name in LOGS]
    for _ in range(N_EDITS):
        text = rng.choice(texts)
        for _ in range(rng.randint(1, 6)):
            at = rng.randrange(len(text))
            text = text[:at] + rng.choice(PIECES) + text[at + rng.randint(0, 8) :]
        for parser in PARSERS.values():
            log = parser.parse(text)
            assert sorted([one.metric for one in log.measured] + list(log.missing)) == sorted(parser.metrics)
            assert all(math.isfinite(one.value) and one.value >= 0 for one in log.measured)
            assert log.measured or log.faults
            assert all(fault.place >= 1 and len(fault.raw) <= 500 for fault in log.faults)
