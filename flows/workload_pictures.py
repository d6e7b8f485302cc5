"""The figures inside the artifacts of the flows about models of workloads."""

from collections.abc import Sequence

import pandas as pd

from flows.pictures import picture_part
from tasks.warehouse.alarms import read_alarms
from tasks.warehouse.place import Warehouse
from tasks.workloads.identification_rows import read_identifications
from tasks.workloads.model_steps import markdown_of_evaluation

WORD = "workloads"
MOST_ALARMS = 10_000


def confusion_part(confusion: pd.DataFrame, model_id: str) -> str:
    """What the held-out runs were taken for. confusion: workload, identified_as, n_runs."""
    from tasks.report.workloads_figures import confusion_figure  # matplotlib: a second that other flows need not pay
    from tasks.report.workloads_measured import confusion_of_rows

    named = {"workload": "actual", "identified_as": "predicted", "n_runs": "n"}
    return picture_part(confusion_figure(confusion_of_rows(confusion.rename(columns=named), f"model {model_id}")))


def timeline_part(rows: pd.DataFrame, odd: Sequence[str] = ()) -> str:
    """What ran when; "" without a run. rows: of read_identifications; odd: ids of runs that have raised an alarm."""
    if rows.empty:
        return ""
    from tasks.report.workloads_figures import timeline_figure
    from tasks.report.workloads_timeline import runs_over_time

    return picture_part(timeline_figure(runs_over_time(rows, odd)))


def watched_part(warehouse: Warehouse, source: str, looked_at: pd.DataFrame, expected: Sequence[str]) -> str:
    """What ran when on the machines of these runs, as far as it was identified.

    looked_at: of read_identifications; expected: workloads that may run, empty: those without an alarm."""
    known = read_identifications(warehouse, source)
    rows = known[known["machine"].isin(looked_at["machine"])]
    alarms = read_alarms(warehouse, source=source, limit=MOST_ALARMS)
    odd = [*alarms.loc[alarms["word"] == WORD, "subject"]]
    if expected:
        odd += list(rows.loc[~rows["workload"].isin(list(expected)), "run_id"])
    return timeline_part(rows, odd)


def drawn_evaluation(folder: str) -> str:
    """The tables and figures of an evaluation, as its step has written them; "" where the folder is elsewhere."""
    path = markdown_of_evaluation(folder)
    return path.read_text(encoding="utf-8") if path.exists() else ""
