"""Figures of reasons that somebody asked for: of shapes of a source, or of one run."""

import math
from collections.abc import Sequence

from tasks.jobs.explain.explaining import RunReasons as Explained
from tasks.jobs.explain.reasons import words_of
from tasks.report.explain_figures import one_run_figure, swarm_figure, two_shapes_figure
from tasks.report.explain_one_run import Reason, RunReasons
from tasks.report.explain_shapes import ShapeReasons
from tasks.report.jobs_figures import FigureOfPage

NEXT = "the next run"


def shape_reason_figures(reasons: ShapeReasons, numbers: Sequence[int]) -> list[FigureOfPage]:
    """A beeswarm for each of the shapes, and of two what tells them apart.

    Raises BadSetting for a shape that the model does not know, or the same one twice."""
    kind = reasons.kind
    compared = []
    if len(numbers) == 2:
        one, other = numbers
        compared = [two_shapes_figure(reasons.two(one, other), f"two-shapes-{kind}-{one}-{other}")]
    return [swarm_figure(reasons.swarm(number), f"beeswarm-{kind}-{number}") for number in numbers] + compared


def run_reason_figure(found: Explained, name: str) -> FigureOfPage:
    """From the usual time of its job to what was expected of one run."""
    reasons = [
        Reason(f"{one.family}: {words_of(one.feature)}", math.exp(one.contribution)) for one in found.runtime.reasons
    ]
    start_s, words = found.usual_s, "usual"
    if not start_s > 0:
        start_s, words = found.expected_s / math.prod(reason.factor for reason in reasons), "all runs"
    run = RunReasons(
        f"{found.group_key}: {found.run_id or NEXT}",
        "expected runtime in seconds",
        start_s,
        found.expected_s,
        reasons,
        found.n_usual,
        start_words=words,
    )
    return one_run_figure(run, name)
