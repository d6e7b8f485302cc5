"""Tarema's grouping as published, and which tasks belong on which machines."""

import numpy as np
import pandas as pd
import pytest

from tasks.advice.groups import group_machines
from tasks.advice.params import MachineGroupParams
from tasks.advice.tarema import assign_tasks, published_groups, tarema_groups, task_demands
from tasks.errors import BadInput


def test_the_originals_variant_always_makes_three_groups_and_the_largest_unit_decides():
    # second column in bytes a second: only its order matters, so the two kinds of the first are mixed
    scores = np.array([[1.0, 1e9], [1.0, 2e9], [5.0, 2.01e9], [5.0, 3e9]])
    groups = tarema_groups(scores, np.random.default_rng(0))
    assert len(set(groups.tolist())) == 3
    assert groups[1] == groups[2]
    with pytest.raises(BadInput, match="2 machines; expected at least 3"):
        tarema_groups(scores[:2], np.random.default_rng(0))


def test_the_originals_groups_are_numbered_from_the_best_and_stand_beside_ours():
    frame = pd.DataFrame(
        [
            (name, aspect, score)
            for name, score in (("slow", 1.0), ("fast", 9.0), ("mid", 3.0))
            for aspect in ("a", "b")
        ],
        columns=["machine", "aspect", "score"],
    )
    assert published_groups(frame, MachineGroupParams()) == {"fast": 1, "mid": 2, "slow": 3}
    assert published_groups(frame[frame["machine"] != "mid"], MachineGroupParams()) == {}


Z95 = 1.959964
KINDS = {"big": (4.0, 3.0, 2.0), "mid": (2.0, 3.0, 1.0), "small": (1.0, 1.0, 1.0)}  # levels: 2 2 2, 1 2 0, 0 0 0


@pytest.fixture
def rows():
    """Scores of three machines of each kind, with intervals of 2 %."""
    found = [
        {"machine": f"{kind}-{number}", "aspect": aspect, "score": score * (1 + 0.01 * number)}
        for kind, scores in KINDS.items()
        for number in range(3)
        for aspect, score in zip(("cpu", "memory", "disk"), scores, strict=True)
    ]
    frame = pd.DataFrame(found)
    return frame.assign(low=frame.score * (1 - 0.02 * Z95), high=frame.score * (1 + 0.02 * Z95))


TRACE = pd.DataFrame(
    {
        "process": ["align", "align", "sort", "plot"], "%cpu": [390.0, 410.0, 100.0, 50.0],
        "peak_rss": [8e9, 8e9, 1e9, 1e8], "rchar": [1e9, 1e9, 9e9, 0.0], "wchar": [1e9, 1e9, 9e9, 1e6],
        "realtime": [10_000.0, 10_000.0, 10_000.0, 1_000.0],
    }
)  # fmt: skip


def test_demands_are_medians_over_the_runs_of_a_task():
    demands = task_demands(TRACE).set_index("task")
    assert demands.loc["align"].tolist() == [4.0, 8e9, 2e8, 2]
    assert demands.loc["sort", "io_bytes_per_s"] == 1.8e9


def test_a_task_goes_to_the_least_group_that_has_what_it_needs(rows):
    told = {one.task: one for one in assign_tasks(task_demands(TRACE), group_machines(rows))}
    assert {task: one.group for task, one in told.items()} == {"align": "A", "sort": "A", "plot": "C"}
    assert told["plot"].demand_class == "cpu low, memory low, io low"
    assert told["align"].levels == {"cpu": 2, "memory": 2, "io": 1} and told["sort"].levels["io"] == 2
    assert told["align"].shortfall == 0
    only_cpu = assign_tasks(task_demands(TRACE), group_machines(rows[rows["aspect"] == "cpu"]))
    assert {one.task: one.group for one in only_cpu} == {"align": "A", "sort": "B", "plot": "C"}


def test_traces_and_aspects_that_cannot_be_used_are_refused(rows):
    with pytest.raises(BadInput, match=r"column 'peak_rss': values with units; expected plain numbers"):
        task_demands(TRACE.assign(peak_rss="1.2 GB"))
    with pytest.raises(BadInput, match="no column for runtime_ms; expected one of realtime"):
        task_demands(TRACE.drop(columns="realtime"))
    renamed = group_machines(
        rows.assign(aspect=rows.aspect + " (x)").replace({"aspect": r"^"}, {"aspect": "a "}, regex=True)
    )
    with pytest.raises(BadInput, match="no aspect is one of a task's resources"):
        assign_tasks(task_demands(TRACE), renamed)
