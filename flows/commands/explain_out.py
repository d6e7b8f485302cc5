"""`whorl jobs explain --out`: Figure 9 of the paper for the shapes of a source, or the reasons of one run, drawn."""

from pathlib import Path
from typing import TYPE_CHECKING

from flows.invocation import Invocation
from flows.shown import as_command, count

if TYPE_CHECKING:
    from tasks.jobs.explain.explaining import RunReasons
    from tasks.jobs.shape_params import Kind

NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."


def draw_source(invocation: Invocation, source: str, kind: "Kind", numbers: tuple[int, ...], out: Path) -> None:
    """Draw what speaks for each of these shapes, and between two; by default the steadiest and the most variable.

    Raises BadSetting for a shape that the model in use does not know."""
    from flows.progress_bar import progress_bar
    from tasks.jobs.explain.explaining import load_explainer
    from tasks.report.jobs_reasons import find_shape_reasons, shape_reason_figures
    from tasks.report.jobs_shapes import METHOD
    from tasks.report.page import write_figures
    from tasks.report.result import Result

    home = invocation.warehouse.home
    with progress_bar(invocation, first="drawing reasons"):
        reasons = find_shape_reasons(load_explainer(invocation.warehouse, source), kind)
        chosen = numbers or reasons.ends
        figures = shape_reason_figures(reasons, chosen)
        shapes = ",".join(str(number) for number in chosen)
        result = Result(
            f"What speaks for shapes: {source}",
            f"Of the {count(len(reasons.features))} held-out runs of source {source}. {NOT_CAUSES}",
            figures=tuple(figures),
            made_of=f"model {reasons.model_id}",
            again=as_command(
                *("whorl", "jobs", "explain", "--home", home, "--source", source),
                *("--shapes", shapes, "--normalisation", kind, "--out", out),
            ),
            method=METHOD,
        )
        name = "-".join(["jobs", source, "reasons", kind, *shapes.split(",")])
        page, *images = write_figures(out, name, result)
    invocation.note(f"written: {page} and {count(len(images))} images beside it")


def draw_run(invocation: Invocation, found: "RunReasons", out: Path) -> None:
    """Draw the reasons of one run, or of the next run of a job."""
    from tasks.report.jobs_reasons import run_reason_figure
    from tasks.report.jobs_shapes import METHOD
    from tasks.report.page import write_figures
    from tasks.report.result import Result

    command = ["whorl", "jobs", "explain", "--home", str(invocation.warehouse.home), "--source", found.source]
    command += ["--job", found.group_key] if found.run_id is None else [found.run_id]
    name = f"reasons-{found.run_id or found.group_key}"
    result = Result(
        f"Why this long: {found.run_id or found.group_key}",
        f"A run of job {found.group_key} of source {found.source}. {NOT_CAUSES}",
        figures=(run_reason_figure(found, name),),
        made_of=f"model {found.model_id}",
        again=as_command(*command, "--out", out),
        method=METHOD,
    )
    for path in write_figures(out, name, result):
        invocation.note(f"written: {path}")
