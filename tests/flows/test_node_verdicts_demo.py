"""What the demo counts of verdicts: flags by recorded stress, and what stands behind an alarm."""

from typing import Any

import numpy as np
import pandas as pd

from flows.node_verdicts_demo import Degrading, OfDose, by_dose, degrading

NAMES = {"a": "a (emulated)", "b": "b (emulated)"}


def verdicts(flags: list[bool], stressed: list[bool], *, node: str = "a", aspect: str = "disk") -> pd.DataFrame:
    return pd.DataFrame(
        {
            "execution_id": [f"{node}-{at}" for at in range(len(flags))],
            "node": node,
            "aspect": aspect,
            "is_flagged": flags,
            "is_stressed": stressed,
        }
    )


def state(node: str, name: str, execution: str | None) -> dict[str, Any]:
    since = pd.Timestamp("2026-01-05 10:07:30") if execution else pd.NaT
    return {"node": node, "aspect": "disk", "state": name, "since": since, "since_execution": execution}


def alarm(execution: str, reasons: list[str], *, node: str = "a", **changed: Any) -> dict[str, Any]:
    told = {"node": node, "aspect": "disk", "state": "suspected", "raised_by": execution, "confirmed_by": None}
    return told | {"first_execution": "a-1", "reasons": reasons} | changed


def test_flags_are_counted_by_the_level_of_recorded_stress() -> None:
    rows = pd.DataFrame(
        {
            "is_flagged": [True, False, True, True, False, True],
            "is_stressed": [False, None, True, True, True, True],
            "dose_level": [0, 2, 3, 1, 3, np.nan],  # the second was wanted and not applied, the last has no level
        }
    )
    assert by_dose(rows) == [
        OfDose(dose_level=0, n_executions=2, n_flagged=1),
        OfDose(dose_level=1, n_executions=1, n_flagged=1),
        OfDose(dose_level=3, n_executions=2, n_flagged=1),
    ]
    assert by_dose(rows.head(0)) == []


def test_an_alarm_is_told_with_its_worst_metric_and_the_recorded_stress_behind_it() -> None:
    rows = pd.concat(
        [
            verdicts([True, True, False, True, True], [True, True, False, True, False]),
            verdicts([True] * 5, [True] * 5, node="b"),
            verdicts([True] * 5, [True] * 5, aspect="cpu"),
        ]
    )
    evidence = [
        alarm("a-0", ["an earlier alarm"]),
        alarm("a-4", ["another node"], node="b"),
        alarm("a-4", ["read_clat_avg of disk-fio (-9.1 deviations)", "another metric"]),
    ]
    [found] = degrading(pd.DataFrame([state("a", "suspected", "a-4")]), evidence, rows, NAMES)
    assert found == Degrading(
        node="a (emulated)",
        aspect="disk",
        state="suspected",
        since="2026-01-05 10:07",
        n_flagged=3,  # from a-1 on: a-1, a-3, a-4
        n_stressed=2,
        worst="read_clat_avg of disk-fio (-9.1 deviations)",
    )


def test_a_confirmed_alarm_is_found_by_what_confirmed_it() -> None:
    rows = verdicts([False, True, True], [False, False, False])
    evidence = [
        alarm("a-1", ["when it was suspected"]),
        alarm("a-1", [], state="confirmed", confirmed_by="a-2"),
    ]
    [found] = degrading(pd.DataFrame([state("a", "confirmed", "a-2")]), evidence, rows, NAMES)
    assert (found["state"], found["n_flagged"], found["n_stressed"], found["worst"]) == ("confirmed", 2, 0, "")


def test_an_alarm_that_an_earlier_model_told_is_the_latest_of_that_node_aspect_and_state() -> None:
    rows = verdicts([False, True, True, True], [False, True, True, True])
    evidence = [alarm("a-9", ["an earlier alarm"], first_execution="a-0"), alarm("a-8", ["the latest"])]
    [found] = degrading(pd.DataFrame([state("a", "suspected", "a-3")]), evidence, rows, NAMES)
    assert (found["worst"], found["n_flagged"], found["n_stressed"]) == ("the latest", 3, 3)


def test_healthy_nodes_are_left_out_and_cleared_ones_say_since_when() -> None:
    states = pd.DataFrame([state("b", "cleared", "b-3"), state("c", "healthy", None)])
    told = [alarm("b-1", [], node="b", state="cleared", first_execution="b-0")]
    [found] = degrading(states, told, verdicts([True], [True], node="b"), NAMES)
    assert (found["node"], found["state"], found["since"]) == ("b (emulated)", "cleared", "2026-01-05 10:07")
    assert (found["n_flagged"], found["worst"]) == (0, "")
