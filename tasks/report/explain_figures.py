"""The figures of reasons with their words: over all jobs, for one shape, between two, and for one run."""

from tasks.report.explain_beeswarm import Swarm, draw_swarm
from tasks.report.explain_importance import Importances, draw_importance
from tasks.report.explain_one_run import RunReasons, draw_one_run
from tasks.report.explain_two_shapes import TwoShapes, draw_two_shapes
from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage

NO_FEATURE = "The model uses no feature: every run is predicted alike."
NOT_CAUSES = "These are reasons of the prediction, which need not be causes of the runtime."


def importance_figure(importances: Importances | None) -> FigureOfPage:
    """What the model looks at."""
    words = f"How much each feature contributes to the decisions of the model over all training runs. {NOT_CAUSES}"
    empty = importances is None or not (importances.shares > 0).any()
    title, evidence = "What the prediction looks at", importances.evidence if importances else ""
    return figure_of(
        "importance", title, words, evidence, draw_importance, importances, nothing=NO_FEATURE, is_empty=empty
    )


def swarm_figure(swarm: Swarm | None, name: str = "swarm") -> FigureOfPage:
    """What speaks for one shape."""
    towards = swarm.towards if swarm else "one shape"
    words = (
        f"Each dot is a run: how much the feature added to, or took from, the log-odds of {towards} (SHAP values). "
        f"Orange: the feature is high, blue: low, a ring: unknown. {NOT_CAUSES}"
    )
    empty = swarm is None or not len(swarm.order)
    title, evidence = f"What speaks for {towards}", swarm.evidence if swarm else ""
    return figure_of(name, title, words, evidence, draw_swarm, swarm, nothing=NO_FEATURE, is_empty=empty)


def two_shapes_figure(shapes: TwoShapes | None, name: str = "two-shapes") -> FigureOfPage:
    """What tells two shapes apart."""
    pair = f"{shapes.one} and {shapes.other}" if shapes else "two shapes"
    words = (
        "Mean addition to the log-odds of one shape over the other, where the feature is in its lowest third (blue) "
        f"and in its highest (orange). The further apart, the more it tells {pair} apart. {NOT_CAUSES}"
    )
    empty = shapes is None or not len(shapes.order)
    title, evidence = f"What tells {pair} apart", shapes.evidence if shapes else ""
    return figure_of(name, title, words, evidence, draw_two_shapes, shapes, nothing=NO_FEATURE, is_empty=empty)


def one_run_figure(run: RunReasons | None, name: str = "one-run") -> FigureOfPage:
    """Why one run is predicted as it is."""
    words = (
        f"From what is usual to the prediction for this run: each bar multiplies the {run.what if run else 'risk'} by "
        f"its factor, orange for the worse, blue for the better. {NOT_CAUSES}"
    )
    empty = run is None or not run.shown
    nothing = "Nothing about this run differs from what is usual."
    evidence = run.evidence if run else ""
    return figure_of(
        name, "Why this run is predicted so", words, evidence, draw_one_run, run, nothing=nothing, is_empty=empty
    )
