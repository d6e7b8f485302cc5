"""The shipped campaigns are complete: counts as the README files beside them say, in few and small files."""

from collections import Counter
from itertools import product
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import tasks
from tasks.nodes.landed import record_of
from tasks.nodes.record.parts import part_paths
from tasks.nodes.record.plan import AGAIN
from tasks.nodes.tools import PARSERS

RECORDED = Path(tasks.__file__).parents[1] / "data" / "recorded"
NODES = ("emulated-a", "emulated-b", "emulated-c")
COLUMNS = [
    "execution_id", "node", "benchmark", "status", "is_stressed", "stress_wanted", "dose_level", "foreign_cores",
    "steal_cores",
]  # fmt: skip
MOST_PART_BYTES, MOST_BYTES = 2_000_000, 10_000_000
N_FIRST, N_FIRST_STRESSED, N_SECOND = 100, 20, 10  # of each benchmark on each node


def rows_of(name, pattern):
    """Each row of these parts, with the most that others or the hypervisor took as a share of the allowed."""
    found = []
    for path in sorted((RECORDED / name).glob(pattern)):
        table = pq.read_table(path, columns=COLUMNS)
        record = record_of(table.schema)
        allowed = record["params"]["foreign_limit_ratio"] * record["machine"]["cores"]
        rows = table.to_pylist()
        found += [row | {"taken": max(row["foreign_cores"], row["steal_cores"]) / allowed} for row in rows]
    return found


@pytest.fixture(scope="module")
def undisturbed():
    return {name: rows_of(name, "executions-*.parquet") for name in ("nodes", "nodes-second")}


@pytest.mark.parametrize(
    ("name", "n", "n_stressed"), [("nodes", N_FIRST, N_FIRST_STRESSED), ("nodes-second", N_SECOND, 0)]
)
def test_each_benchmark_is_there_as_often_as_planned_on_each_node(undisturbed, name, n, n_stressed):
    rows, pairs = undisturbed[name], list(product(PARSERS, NODES))
    assert Counter((row["benchmark"], row["node"]) for row in rows) == dict.fromkeys(pairs, n)
    stressed = Counter((row["benchmark"], row["node"]) for row in rows if row["is_stressed"])
    assert stressed == (dict.fromkeys(pairs, n_stressed) if n_stressed else {})
    assert all(row["is_stressed"] == row["stress_wanted"] == (row["dose_level"] > 0) for row in rows)
    assert {row["status"] for row in rows} == {"completed"}


def test_a_third_of_the_stressed_is_at_each_dose(undisturbed):
    levels = Counter((row["benchmark"], row["node"], row["dose_level"]) for row in undisturbed["nodes"])
    assert all(
        levels[benchmark, node, level] in (6, 7) for benchmark, node in product(PARSERS, NODES) for level in (1, 2, 3)
    )


@pytest.mark.parametrize("name", ["nodes", "nodes-second"])
def test_each_planned_execution_is_undisturbed_once_and_flagged_ones_lie_apart(undisturbed, name):
    flagged = rows_of(name, "flagged-*.parquet")
    planned = Counter(row["execution_id"].partition(AGAIN)[0] for row in undisturbed[name])
    assert set(planned.values()) == {1}
    assert {row["execution_id"].partition(AGAIN)[0] for row in flagged} <= set(planned)
    assert all(row["taken"] <= 1 for row in undisturbed[name])
    assert all(row["taken"] > 1 for row in flagged)


def test_the_parts_stay_small():
    sizes = [path.stat().st_size for name in ("nodes", "nodes-second") for path in part_paths(RECORDED / name)]
    assert max(sizes) <= MOST_PART_BYTES
    assert sum(sizes) <= MOST_BYTES
