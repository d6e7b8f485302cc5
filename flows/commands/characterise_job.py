"""`whorl jobs characterise --job`: which of the shapes of a source one job follows, and Figure 6 of the paper."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from flows.invocation import Invocation
from flows.shown import as_command, clean, count
from flows.tables import Column, show_facts, show_table
from tasks.quantities import share

if TYPE_CHECKING:
    from tasks.jobs.shape_params import Kind
    from tasks.report.jobs_shapes import JobAgainstShapes
    from tasks.warehouse.place import Warehouse

COLUMNS = (
    Column("shape", "shape", kind="number"),
    Column("log_likelihood", "log-likelihood", lambda value: f"{value:,.1f}", kind="number"),
    Column("posterior", "posterior", share, kind="number"),
)


def show_job(
    invocation: Invocation,
    warehouse: "Warehouse",
    source: str,
    job: str,
    *,
    kind: "Kind",
    numbers: tuple[int, ...],
    out: Path | None,
    as_json: bool,
) -> None:
    """Print how likely the runs of a job are under each shape; with `out` draw them against two shapes.

    job: its whole key; numbers: of two shapes, or none for the two most likely."""
    from flows.machine_output import show_json
    from tasks.report.jobs_shapes import job_against_shapes

    found = job_against_shapes(warehouse, source, job, kind, (numbers[0], numbers[1]) if numbers else None)
    if out is not None:
        for path in _written(out, warehouse, source, kind, found):
            invocation.note(f"written: {path}")
    rows = _rows(found)
    if as_json:
        show_json({"source": source, "job": job, "normalisation": kind, "n_runs": found.n_runs, "shapes": rows})
        return
    best = max(rows, key=lambda row: row["log_likelihood"])["shape"]
    show_facts({"job": clean(job), "runs": count(found.n_runs), "most likely": f"shape {best} ({kind})"})
    print()
    show_table(rows, COLUMNS)


def _rows(found: "JobAgainstShapes") -> list[dict[str, Any]]:
    pairs = zip(found.all_log_likelihoods, found.all_posteriors, strict=True)
    return [{"shape": k, "log_likelihood": float(log), "posterior": float(p)} for k, (log, p) in enumerate(pairs)]


def _written(out: Path, warehouse: "Warehouse", source: str, kind: "Kind", found: "JobAgainstShapes") -> list[Path]:
    from tasks.report.jobs_shapes import METHOD, likelihood_figure
    from tasks.report.page import write_figures
    from tasks.report.result import Result

    one, other = found.numbers
    command = as_command(
        *("whorl", "jobs", "characterise", "--home", warehouse.home, "--source", source, "--job", found.group_key),
        *("--shapes", f"{one},{other}", "--normalisation", kind, "--out", out),
    )
    name = f"{kind}-{one}-{other}-{found.group_key}"
    result = Result(
        f"Shapes {one} and {other} for {found.group_key}",
        f"The runs of one job of source {source} against two of its shapes ({kind}).",
        figures=(likelihood_figure(found, name),),
        made_of=f"source {source}",
        again=command,
        method=METHOD,
    )
    return write_figures(out, name, result)
