"""What became of each metric, as a table, and how many there are beside the paper's."""

from dataclasses import dataclass

import pandas as pd

from tasks.nodes.preprocess.fitted import FittedMetric, Preprocessor

PAPER_RECORDED, PAPER_KEPT = 153, 54  # Perona, IV-B


@dataclass(frozen=True)
class MetricCounts:
    """Metrics of all types together; a metric that two types have counts twice."""

    recorded: int
    kept: int
    paper_recorded: int = PAPER_RECORDED
    paper_kept: int = PAPER_KEPT


def count_metrics(preprocessor: Preprocessor) -> MetricCounts:
    """How many metrics training recorded and how many are kept, beside the paper's 153 and 54."""
    return MetricCounts(recorded=len(preprocessor.metrics), kept=len(preprocessor.kept))


def decisions(preprocessor: Preprocessor) -> pd.DataFrame:
    """One row a recorded metric, in order of type and name.

    type, metric; unit_written (all spellings), unit (base), divided_by (time that a total is divided by), n_values,
    n_apart (training values in no column) and note why; n_distinct, dispersion (robust coefficient of variation),
    deviation (standard); is_kept, why (it is dropped); orientation (1 or -1), orientation_from, is_directed (false:
    neither is better, the orientation is a guess); rule_with_stressed and rule_without_stressed (the paper's), agrees
    (the first of these with what is declared; missing where one is silent)."""
    table = pd.DataFrame([_row(metric) for metric in preprocessor.metrics], columns=list(COLUMNS))
    return table.astype(COLUMNS)


COLUMNS = {
    "type": "str",
    "metric": "str",
    "unit_written": "str",
    "unit": "str",
    "divided_by": "str",
    "n_values": "int64",
    "n_apart": "int64",
    "note": "str",
    "n_distinct": "int64",
    "dispersion": "float64",
    "deviation": "float64",
    "is_kept": "bool",
    "why": "str",
    "orientation": "int64",
    "orientation_from": "str",
    "is_directed": "bool",
    "rule_with_stressed": "Int64",
    "rule_without_stressed": "Int64",
    "agrees": "boolean",
}


def _row(metric: FittedMetric) -> dict[str, object]:
    spread, orientation = metric.spread, metric.orientation
    return {
        "type": metric.type,
        "metric": metric.metric,
        "unit_written": ", ".join(metric.units),
        "unit": metric.base,
        "divided_by": metric.divided_by,
        "n_values": spread.n_values if spread else 0,
        "n_apart": metric.n_apart,
        "note": metric.note,
        "n_distinct": spread.n_distinct if spread else 0,
        "dispersion": spread.dispersion if spread else float("nan"),
        "deviation": spread.deviation if spread else float("nan"),
        "is_kept": metric.is_kept,
        "why": metric.why,
        "orientation": orientation.sign,
        "orientation_from": orientation.origin,
        "is_directed": orientation.is_directed,
        "rule_with_stressed": orientation.rule_with_stressed,
        "rule_without_stressed": orientation.rule_without_stressed,
        "agrees": orientation.agrees,
    }
