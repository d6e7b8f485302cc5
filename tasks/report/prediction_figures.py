"""The figures of prediction with their words: labels, distributions, calibration, and the fan of one job."""

from tasks.quantities import duration, share
from tasks.report.figure_of import figure_of
from tasks.report.jobs_figures import FigureOfPage
from tasks.report.prediction_by_history import AccuracyByHistory, draw_accuracy
from tasks.report.prediction_calibration import CalibrationCheck, draw_calibration
from tasks.report.prediction_confusion import Confusion, draw_confusion
from tasks.report.prediction_distances import DistanceComparison, draw_distances
from tasks.report.prediction_fan import Fan, draw_fan
from tasks.report.prediction_quantiles import QuantileComparison, draw_quantiles

NO_TEST = "No run of the test period has a prediction to compare it with."


def confusion_figure(confusion: Confusion | None, kind: str) -> FigureOfPage:
    """Predicted against actual shapes."""
    words = (
        "Of the runs whose job had the shape of the row, the percent that were predicted to have that of the column. "
        "The framed diagonal is right. Shapes next to one another are alike, so misses beside it cost least."
    )
    empty = confusion is None or not confusion.n
    title, evidence = f"Predicted and actual shape ({kind})", confusion.evidence if confusion else ""
    return figure_of(
        f"confusion-{kind}", title, words, evidence, draw_confusion, confusion, nothing=NO_TEST, is_empty=empty
    )


def accuracy_figure(accuracy: AccuracyByHistory | None, kind: str) -> FigureOfPage:
    """Accuracy of labels by the number of earlier runs."""
    words = (
        "Share of right labels by how often the job had run before. The ceiling is what somebody who knows the "
        "job's distribution would get, since a label from few runs is partly chance; history gives each job the label "
        "of its past, and is what must be beaten."
    )
    empty = accuracy is None or not accuracy.n
    title, evidence = f"Right labels by number of earlier runs ({kind})", accuracy.evidence if accuracy else ""
    return figure_of(
        f"accuracy-{kind}", title, words, evidence, draw_accuracy, accuracy, nothing=NO_TEST, is_empty=empty
    )


def quantiles_figure(comparison: QuantileComparison | None) -> FigureOfPage:
    """QQ plots and errors by percentile."""
    shown = comparison.shown if comparison else {}
    errors = ", ".join(f"{name} {duration(one.mae_s)}" for name, one in shown.items())
    words = (
        "Percentiles of all predicted runtimes together against those of all actual ones: on the diagonal they agree. "
        f"Below, by how much each percentile was missed. Mean over the percentiles: {errors}. This comparison ignores "
        "which job a run belongs to, and so rewards predicting the same for all; the next one does not."
    )
    title, evidence = "Predicted and actual percentiles of all runs", comparison.evidence if comparison else ""
    return figure_of(
        "quantiles", title, words, evidence, draw_quantiles, comparison, nothing=NO_TEST, is_empty=not shown
    )


def distances_figure(comparison: DistanceComparison | None) -> FigureOfPage:
    """Distances within jobs."""
    words = (
        "How far what was predicted for a job lies from how its runs were distributed: the largest difference of the "
        "two cumulative distributions, 0 if they are the same. One dot is one job, the tick is the mean. Even a "
        "perfect prediction is not at 0, since a job has few runs."
    )
    empty = comparison is None or not comparison.shown
    title, evidence = "Distance of each job's runs from their prediction", comparison.evidence if comparison else ""
    nothing = "No job has enough runs in the test period for a distance."
    return figure_of("distances", title, words, evidence, draw_distances, comparison, nothing=nothing, is_empty=empty)


def calibration_figure(check: CalibrationCheck | None) -> FigureOfPage:
    """Whether intervals hold what they say."""
    held = share(check.coverage(0.9)) if check and check.n else ""
    words = (
        "First: where in its predicted distribution each run fell; if the probabilities are right, every bar is alike. "
        "High ends mean that the predictions were too sure. Second: how many runs lay inside the interval that should "
        f"hold so many. The 90 % interval held {held}."
    )
    empty = check is None or not check.n
    title, evidence = "Can the probabilities be believed", check.evidence if check else ""
    return figure_of("calibration", title, words, evidence, draw_calibration, check, nothing=NO_TEST, is_empty=empty)


def fan_figure(fan: Fan | None, name: str = "fan") -> FigureOfPage:
    """What was predicted for each run of one job, and what came."""
    words = (
        "Before each run its runtime was predicted from what was known when it was submitted: light, the interval "
        "that should hold 90 % of the runs, darker 50 %, and the median. Points are the runs as they came, orange "
        "outside the 90 % interval."
    )
    empty = fan is None or fan.runs.empty
    title, evidence = "What was predicted, and what came", fan.evidence if fan else ""
    return figure_of(name, title, words, evidence, draw_fan, fan, nothing=NO_TEST, is_empty=empty)
