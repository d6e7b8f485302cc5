"""Tarema (Bader et al. 2021): which tasks belong on which group of machines, and its own grouping as published."""

from dataclasses import dataclass

import numpy as np
import pandas as pd

from tasks.advice.groups import LEVEL_NAMES, Grouping, MachineGroup, quartile_levels, score_table
from tasks.advice.machines import Floats, Ints
from tasks.advice.params import MachineGroupParams
from tasks.errors import BadInput, quoted

RESOURCES = ("cpu", "memory", "io")
DEMAND_OF = {"cpu": "cores", "memory": "memory_bytes", "io": "io_bytes_per_s"}
ASPECTS_OF = {"cpu": ("cpu",), "memory": ("memory", "ram"), "io": ("io", "disk", "network")}  # how their names begin
TRACE_COLUMNS = {  # Nextflow's own names, and those of tables made of its traces
    "task": ("task", "process", "name"),
    "cpu_percent": ("%cpu", "pcpu"),
    "memory_bytes": ("peak_rss", "rss"),
    "read_bytes": ("rchar", "read_bytes"),
    "written_bytes": ("wchar", "write_bytes"),
    "runtime_ms": ("realtime",),
}
PERCENT, MS_PER_S = 100.0, 1000.0


@dataclass(frozen=True)
class Assignment:
    """The group for one task. levels: what the task demands, by resource. shortfall: levels that the group lacks."""

    task: str
    levels: dict[str, int]
    group: str
    shortfall: int

    @property
    def demand_class(self) -> str:
        """The levels in words: cpu high, memory low, io medium."""
        return ", ".join(f"{resource} {LEVEL_NAMES[level]}" for resource, level in self.levels.items())


def task_demands(traces: pd.DataFrame) -> pd.DataFrame:
    """What each task used: medians over its runs, one row a task, sorted by name.

    traces: rows of Nextflow's trace with raw numbers (trace.raw = true): %cpu, peak_rss in bytes, rchar and wchar in
    bytes, realtime in ms. Returns task, cores, memory_bytes, io_bytes_per_s, n_runs; rows without a runtime are left
    out. Raises BadInput for a missing column, or values such as '1.2 GB'."""
    by_name = {str(column).strip().lower(): column for column in traces}
    rows = {}
    for name, candidates in TRACE_COLUMNS.items():
        column = next((by_name[candidate] for candidate in candidates if candidate in by_name), None)
        if column is None:
            raise BadInput("trace", f"no column for {name}", f"one of {', '.join(candidates)}", "name it with --map")
        rows[name] = traces[column].astype(str) if name == "task" else _numbers(traces[column])
    runs = pd.DataFrame(rows)
    runs = runs[(runs["runtime_ms"] > 0) & runs.notna().all(axis=1)]
    if runs.empty:
        raise BadInput("trace", "no run with a runtime and resources", "at least one finished run", "check its columns")
    used = pd.DataFrame(
        {
            "task": runs["task"],
            "cores": runs["cpu_percent"] / PERCENT,
            "memory_bytes": runs["memory_bytes"],
            "io_bytes_per_s": (runs["read_bytes"] + runs["written_bytes"]) / (runs["runtime_ms"] / MS_PER_S),
        }
    )
    groups = used.groupby("task")
    return groups.median().assign(n_runs=groups.size()).reset_index()


def _numbers(column: pd.Series) -> pd.Series:
    try:
        return pd.to_numeric(column.replace("-", np.nan)).astype(np.float64)
    except (ValueError, TypeError) as error:
        raise BadInput(
            f"trace, column {quoted(str(column.name))}", "values with units", "plain numbers", "set trace.raw = true"
        ) from error


def assign_tasks(demands: pd.DataFrame, grouping: Grouping) -> list[Assignment]:
    """The group of machines for each task: the least that the task needs, so that the best stay free for others.

    demands: of task_demands. A resource needs the aspects whose name begins with it; a group's level in a resource is
    the lowest of its aspects. The group that lacks the fewest levels, then the one that has the fewest to spare, then
    the larger. Resources without an aspect do not count. Raises BadInput if no resource has an aspect."""
    known = tuple(grouping.groups[0].levels)
    aspects = {name: [aspect for aspect in known if aspect.lower().startswith(ASPECTS_OF[name])] for name in RESOURCES}
    if not any(aspects.values()):
        raise BadInput(
            f"scores of {quoted(known)}", "no aspect is one of a task's resources",
            "aspects whose names begin with cpu, memory or io", "name the aspects of each resource",
        )  # fmt: skip
    assignments = []
    levels_of = {name: quartile_levels(demands[column].to_numpy()).tolist() for name, column in DEMAND_OF.items()}
    for at, task in enumerate(demands["task"]):
        levels = {name: of[at] for name, of in levels_of.items()}

        def cost(group: MachineGroup, levels: dict[str, int] = levels) -> tuple[int, int, int, str]:
            gaps = [min(group.levels[at] for at in of) - levels[name] for name, of in aspects.items() if of]
            return -sum(at for at in gaps if at < 0), sum(at for at in gaps if at > 0), -len(group.machines), group.name

        best = min(grouping.groups, key=cost)
        assignments.append(Assignment(str(task), levels, best.name, cost(best)[0]))
    return assignments


TAREMA_GROUPS = 3  # the smallest k that the original tries, and the one that it always takes


def tarema_groups(scores: Floats, rng: np.random.Generator) -> Ints:
    """The number of each machine's group by the original's variant, (n,): k-means++ with k = 3 on unscaled scores.

    scores: (n, d), n >= 3. The published code means to choose k by silhouette and takes 3 always. Source: Bader et al.
    (2021) and its published client. Raises BadInput for fewer than 3 machines."""
    from sklearn.cluster import KMeans  # type: ignore[import-untyped, unused-ignore]

    if len(scores) < TAREMA_GROUPS:
        raise BadInput("scores", f"{len(scores)} machines", f"at least {TAREMA_GROUPS}, as the original needs")
    model = KMeans(TAREMA_GROUPS, n_init=1, random_state=int(rng.integers(2**31))).fit(scores)
    return np.asarray(model.labels_, dtype=np.int64)


def published_groups(scores: pd.DataFrame, params: MachineGroupParams) -> dict[str, int]:
    """The original's group of each machine, 1 the best by its mean log score; empty for fewer than 3 machines.

    scores: as group_machines takes them. Raises BadInput as it does."""
    table = score_table(scores)
    if len(table.machines) < TAREMA_GROUPS:
        return {}
    groups = tarema_groups(np.exp(table.log_scores), np.random.default_rng(params.seed))
    means = {group: -float(table.log_scores[groups == group].mean()) for group in set(groups.tolist())}
    places = {group: place for place, group in enumerate(sorted(means, key=lambda one: means[one]), 1)}
    return {machine: places[group] for machine, group in zip(table.machines, groups.tolist(), strict=True)}
