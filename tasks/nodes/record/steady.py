"""What to run next on a node that is watched, without a plan: what it lacks, then what is doubtful or stalest."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING

from tasks.nodes.record.templates import BenchmarkTemplate

if TYPE_CHECKING:
    import pandas as pd

MOST_REPEATS = 2  # of a flagged benchmark before it waits for its turn like the others


@dataclass(frozen=True)
class Past:
    """An execution that the node has behind it. is_flagged: it failed, or others used the machine meanwhile."""

    benchmark: str
    template_hash: str
    started_at: datetime
    is_flagged: bool


def past_of(executions: "pd.DataFrame", node: str) -> list[Past]:
    """The executions of a node. executions: rows of nodes.executions."""
    ours = executions[executions["node"] == node]
    is_flagged = (ours["status"] != "completed") | ours["is_contaminated"].eq(True).fillna(False).astype(bool)
    rows = zip(ours["benchmark"], ours["template_hash"], ours["started_at"], is_flagged, strict=True)
    return [
        Past(str(benchmark), str(template), started_at, bool(flagged))
        for benchmark, template, started_at, flagged in rows
    ]


def next_benchmark(history: Sequence[Past], templates: Sequence[BenchmarkTemplate]) -> BenchmarkTemplate:
    """The benchmark to run now: one that the node lacks, else one whose last execution is flagged, else the stalest.

    One of another template does not count. A flagged benchmark is repeated twice at most before others have their
    turn: on a machine that is never quiet nothing else would ever run."""
    behind = {one.benchmark: _of(history, one) for one in templates}
    for template in templates:
        if not behind[template.benchmark]:
            return template
    doubtful = [one for one in templates if 1 <= _flagged_since(behind[one.benchmark]) <= MOST_REPEATS]
    return min(doubtful or templates, key=lambda one: behind[one.benchmark][-1].started_at)


def _of(history: Sequence[Past], template: BenchmarkTemplate) -> list[Past]:
    wanted = (template.benchmark, template.template_hash)
    return sorted(
        (one for one in history if (one.benchmark, one.template_hash) == wanted), key=lambda one: one.started_at
    )


def _flagged_since(past: Sequence[Past]) -> int:
    """How many of the last executions in a row are flagged."""
    n = 0
    for one in reversed(past):
        if not one.is_flagged:
            break
        n += 1
    return n
