"""The steps of runtimes on other machines: read by source and job, or from traces, and answer."""

import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import pandas as pd

from tasks.advice.estimate import Estimate, EstimateParams, estimate
from tasks.advice.readers.tables import SCORES, read_scores
from tasks.advice.readers.traces import one_machine, read_traces
from tasks.advice.transfer import TransferParams, TransferredRuns, basis_of, transfer_job
from tasks.errors import BadInput, BadSetting, NotFound, quoted
from tasks.jobs.groups import find_group
from tasks.jobs.summary import refuse_mixture
from tasks.nodes.thread_scores import thread_scores_of_source
from tasks.warehouse.connection import reading
from tasks.warehouse.place import Warehouse

if TYPE_CHECKING:
    from tasks.report.result import Result

logger = logging.getLogger(__name__)
VERTICES = """
WITH final AS (
    SELECT
        v.run_id, r.group_key AS job, v.stage, v.sku AS machine_type,
        coalesce(r.submitted_at, r.started_at) AS submitted_at,
        epoch(v.ended_at) - epoch(v.started_at) AS duration_s, v.cpu_s, v.mean_tokens AS tokens, r.runtime_s
    FROM jobs.vertices AS v
    JOIN jobs.runs AS r USING (source, run_id)
    WHERE source = $source AND r.status = 'completed' AND r.what_if IS NULL AND r.runtime_s > 0
        AND v.sku IS NOT NULL AND v.ended_at > v.started_at
)
SELECT * FROM final ORDER BY submitted_at, run_id, machine_type, stage, duration_s
"""


def read_vertices(warehouse: Warehouse, source: str) -> tuple[pd.DataFrame, pd.Series]:
    """The vertices of a source's completed runs (transfer.VERTEX_COLUMNS), and the runs' runtimes in s, by run_id.

    Replays with one thing changed are left out. Raises BadInput if simulated and measured runs are mixed, NotFound
    where no log says on which machine type vertices ran."""
    with reading(warehouse) as connection:
        refuse_mixture(connection, source)
        rows = connection.execute(VERTICES, {"source": source}).df()
    if rows.empty:
        raise NotFound(f"no run of source {source!r} says on which machine types its vertices ran")
    runtimes_s = rows.drop_duplicates("run_id").set_index("run_id")["runtime_s"]
    return rows.drop(columns="runtime_s"), runtimes_s


def estimate_job(
    warehouse: Warehouse, source: str, job: str, onto: str, params: TransferParams, *, start: str = ""
) -> TransferredRuns:
    """The runtimes of one job, named by its key or a unique part of it, on another machine type.

    start: the machine type that its runs are taken from; else the one on which most of its vertices ran, but the
    target. Raises NotFound and BadInput as transfer_job, and for a job that has run on the target alone."""
    key = find_group(warehouse, source, job)
    vertices, runtimes_s = read_vertices(warehouse, source)
    if not start:
        counts = vertices.loc[(vertices["job"] == key) & (vertices["machine_type"] != onto), "machine_type"]
        if counts.empty:
            problem = f"job {quoted(key)} has runs on no other machine type than {onto}"
            raise BadInput(
                f"source {source}", problem, "runs elsewhere", "its own runs answer that: whorl jobs predict"
            )
        start = str(counts.value_counts().index[0])
    return transfer_job(basis_of(vertices, start, onto, params), runtimes_s, key, params)


def scores_for(table: str | None, warehouse: Warehouse, source: str | None, renamed: Mapping[str, str]) -> pd.DataFrame:
    """Scores of machines: machine_type, aspect, score; of a table, or of a source of `nodes` in the warehouse.

    A table without aspects is of one thread. Machines of a source go by their type and by their name. Raises BadSetting
    for neither and for both, BadInput and NotFound as read."""
    if (table is None) == (source is None):
        given = "both --scores and --scores-of" if table else "no scores of the machines"
        raise BadSetting(f"{given}; expected --scores FILE or --scores-of SOURCE (of `whorl nodes`)")
    if table is not None:
        return read_scores(table, {ours: theirs for ours, theirs in renamed.items() if ours in SCORES})
    found = thread_scores_of_source(warehouse, str(source))
    by_type = found[found["machine_type"] != ""].drop(columns="node")
    by_name = found[found["node"] != found["machine_type"]].drop(columns="machine_type")
    return pd.concat([by_type, by_name.rename(columns={"node": "machine_type"})], ignore_index=True)


def estimate_traces(
    paths: Sequence[str],
    onto: str,
    scores: pd.DataFrame,
    params: EstimateParams,
    *,
    start: str = "",
    machine: str = "",
    workflow: str = "",
    size_ratio: float = 1.0,
    renamed: Mapping[str, str] | None = None,
) -> Estimate:
    """Each task and the whole workflow of some traces on a machine.

    start: the machine that runs are taken from, where the traces have several. machine, workflow: of traces that do not
    say (read_traces). scores: machine_type, aspect, score. size_ratio: of the input to the largest that ran. Raises as
    read_traces and estimate."""
    columns = {ours: theirs for ours, theirs in (renamed or {}).items() if ours not in SCORES}
    traces = read_traces(paths, columns, machine=machine, workflow=workflow)
    for reason, n in traces.n_left_out.items():
        logger.warning("left out %d tasks of the traces: %s", n, reason)
    return estimate(traces.runs, scores, one_machine(traces.runs, start), onto, params, size_ratio=size_ratio)


def traces_page(
    warehouse: Warehouse,
    paths: Sequence[str],
    onto: str,
    scores: str | None,
    scores_of: str | None,
    params: EstimateParams,
    *,
    start: str = "",
    machine: str = "",
    size_ratio: float = 1.0,
    renamed: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """As estimate_traces with scores_for, with a page in the reports of the home: figures, its path, markdown."""
    from tasks.report.estimate_results import estimate_figures, estimate_result

    columns = dict(renamed or {})
    told = scores_for(scores, warehouse, scores_of, columns)
    found = estimate_traces(
        paths, onto, told, params, start=start, machine=machine, size_ratio=size_ratio, renamed=columns
    )
    again = f"whorl advice estimate --onto {onto} --traces {' --traces '.join(paths)}"
    return estimate_figures(found) | _page(warehouse, f"advice-estimate-{onto}", estimate_result(found, again))


def job_page(
    warehouse: Warehouse,
    source: str,
    job: str,
    onto: str,
    params: TransferParams,
    *,
    start: str = "",
    deadline_s: float | None = None,
) -> dict[str, Any]:
    """As estimate_job, with a page in the reports of the home; returns figures, its path, markdown."""
    from tasks.report.estimate_results import transfer_figures, transfer_result

    found = estimate_job(warehouse, source, job, onto, params, start=start)
    again = f"whorl advice estimate --onto {onto} --job {found.job}"
    result = transfer_result(found, params.confidence, deadline_s, again)
    name = f"advice-estimate-{found.job}-{onto}"
    return transfer_figures(found, params.confidence, deadline_s) | _page(warehouse, name, result)


def _page(warehouse: Warehouse, name: str, result: "Result") -> dict[str, str]:
    from tasks.report.result import as_markdown, write_result

    path = write_result(warehouse.home / "reports", name, result)
    return {"report": str(path), "answer": result.answer, "markdown": as_markdown(result)}
