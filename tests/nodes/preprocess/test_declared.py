"""What the tools declare is what preprocessing can use."""

import numpy as np

from tasks.nodes.preprocess.fitting import fit, transform
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.unification import conversion_of, declared_facts
from tasks.nodes.tools.facts import DURATION


def test_every_total_is_divided_by_a_time_that_its_tool_gives() -> None:
    for benchmark, facts in declared_facts().items():
        for metric, fact in facts.items():
            over = fact.is_cumulative_over
            if over not in (None, DURATION):
                assert conversion_of(facts[over].unit, benchmark).base == "s", f"{benchmark}/{metric}"
                assert facts[over].is_cumulative_over is None, f"{benchmark}/{over} divides others"


def test_every_declared_unit_is_known() -> None:
    units = {fact.unit for facts in declared_facts().values() for fact in facts.values()}
    assert [unit for unit in units if not conversion_of(unit).is_known] == []


def test_events_of_sysbench_become_events_a_second(history_of) -> None:
    measured = [
        {"total_number_of_events": 1800.0, "total_time": (2.0, "s"), "num_threads": 16.0},
        {"total_number_of_events": 3000.0, "total_time": (2.5, "s"), "num_threads": 16.0},
    ]
    history = history_of(measured, benchmark="cpu-sysbench", template_hash="0123456789")
    found = transform(fit(history, PreprocessParams()), history)
    at = found.columns.index("cpu-sysbench@01234567/total_number_of_events")
    np.testing.assert_allclose(found.natural[:, at], [900, 1200])
    assert (found.units[at], found.orientation[at]) == ("1/s", 1)
    assert "num_threads" not in found.metrics
