"""Why an execution was flagged, in the tool's own metrics and units."""

import numpy as np
import pytest

from tasks.nodes.detect.detector import fit_detector
from tasks.nodes.detect.params import DetectorParams
from tasks.nodes.detect.verdicts import MOST, reasons_of
from tasks.nodes.node_words import Reason, apart, reason_of_row


def reasons(tables, natural, **told):
    """Of the last execution; all before it are calm."""
    found = tables(natural, [0] * len(natural), **told)
    n = len(natural)
    at_h, asked = np.arange(n, dtype=np.float64), np.arange(n) == n - 1
    params = DetectorParams(headlines={"spin": ("rate",)})
    fitted = fit_detector(found, at_h, ~asked, np.zeros(n, dtype=bool), ~asked, params)
    return reasons_of(fitted, found, at_h, asked)


def steady(last, levels, n=40, spread=0.05, seed=0):
    """Executions that vary by 5 % around their levels, and then one with the values of last."""
    x = np.log(levels) + spread * np.random.default_rng(seed).standard_normal((n, len(levels)))
    return np.vstack([np.exp(x), last])


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (
            Reason("write_clat_avg", "s", 0.0113, 0.0041, 0.0049, 9.2, False),
            "write_clat_avg 11.3 ms, usually 4.1 to 4.9: worse (9 deviations)",
        ),
        (
            Reason("read_bw", "B/s", 1.2e6, 2.9e8, 3.1e8, 450.0, True),
            "read_bw 1 MB/s, usually 290 to 310: worse (beyond 100 deviations)",
        ),
        (
            Reason("iops", "1/s", 0.0, 70.0, 80.0, 50.0, True),
            "iops 0 a second, usually 70.0 to 80.0: worse (50 deviations)",
        ),
        (Reason("score", "", 3.0, 5.0, 5.0, -4.0, True), "score 3.00, usually 5.00: better (4 deviations)"),
    ],
)
def test_a_reason_is_told_in_a_unit_that_one_reads(reason, words):
    assert reason.words() == words


def test_a_value_that_looks_like_its_usual_range_has_more_digits():
    assert apart([100.4, 100.1, 100.3]) == ["100.4", "100.1", "100.3"]
    assert apart([1.23, 4.56]) == ["1.23", "4.56"]
    assert apart([np.nan, 1.0]) == ["–", "1.00"]


def test_the_headline_comes_first_then_what_is_worse_by_most(tables):
    natural = steady([50.0, 10.0, 0.1, 7.0], [100.0, 1.0, 0.05, 7.0])
    told = {"metrics": ("rate", "wait", "delay", "same"), "orientation": (1, -1, -1, 1)}
    found = reasons(tables, natural, **told)
    assert found["metric"].tolist() == ["rate", "wait", "delay"] and found["place"].tolist() == [1, 2, 3]
    assert found["is_headline"].tolist() == [True, False, False]
    first = reason_of_row(found.iloc[0])
    assert first.value == 50.0 and first.higher_is_better and first.usual_low < 100 < first.usual_high
    assert first.usual_high / first.usual_low == pytest.approx(np.exp(4 * 0.05), rel=0.2)  # two deviations either way


def test_what_is_better_or_neither_better_nor_worse_is_no_reason(tables):
    natural = steady([200.0, 0.01, 9.0], [100.0, 1.0, 1.0])
    told = {"metrics": ("rate", "wait", "threads"), "orientation": (1, -1, 1), "is_directed": (True, True, False)}
    assert reasons(tables, natural, **told).empty


def test_what_a_tool_rounds_away_is_no_reason(tables):
    """sysbench writes latencies in hundredths of milliseconds: 0.01 and 0.20 ms are one and twenty steps, 9 ms 900."""
    told = {"name": "cpu-sysbench@1", "metrics": ("latency_avg", "latency_95p"), "units": ("s", "s")}
    natural = steady([9e-5, 0.05], [2e-5, 0.01])
    assert reasons(tables, natural, orientation=(-1, -1), **told)["metric"].tolist() == ["latency_95p"]


def test_no_more_reasons_than_a_person_reads(tables):
    found = reasons(tables, steady([0.1] * 9, [1.0] * 9))
    assert len(found) == MOST
