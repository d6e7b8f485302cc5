"""What preprocessing learned: of each metric that was recorded, and altogether."""

import numpy as np
import pandas as pd

from tasks.nodes.preprocess.orientation import Orientation
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.preprocess.scaling import Scale
from tasks.nodes.preprocess.spread import Spread
from tasks.params import Params


class FittedMetric(Params):
    """One metric of one benchmark type.

    units: as written. base_as_read: what they become; base: that of the values, per second if it is divided_by a time.
    n_apart: training values in no column, for the reason in note. spread: None without a usable value. why: what
    it is dropped for, empty if it is kept. scale: None for a dropped one."""

    type: str
    benchmark: str
    metric: str
    units: tuple[str, ...]
    base_as_read: str
    base: str
    divided_by: str
    n_apart: int
    note: str
    spread: Spread | None
    why: str
    orientation: Orientation
    scale: Scale | None

    @property
    def name(self) -> str:
        """Of its column."""
        return f"{self.type}/{self.metric}"

    @property
    def is_kept(self) -> bool:
        """Whether it is in the vectors."""
        return self.scale is not None


class Preprocessor(Params):
    """types: benchmark types of the training executions, ordered. metrics: all recorded ones, by type and name."""

    params: PreprocessParams
    n_executions: int
    types: tuple[str, ...]
    metrics: tuple[FittedMetric, ...]

    @property
    def kept(self) -> tuple[FittedMetric, ...]:
        """The metrics of the vectors, in the order of their columns."""
        return tuple(metric for metric in self.metrics if metric.is_kept)

    def columns(self) -> pd.DataFrame:
        """One row a recorded metric; base: as read; place: among the kept ones, -1 for a dropped one."""
        place = np.cumsum([metric.is_kept for metric in self.metrics]) - 1
        return pd.DataFrame(
            {
                "type": [metric.type for metric in self.metrics],
                "benchmark": [metric.benchmark for metric in self.metrics],
                "metric": [metric.metric for metric in self.metrics],
                "base": [metric.base_as_read for metric in self.metrics],
                "divided_by": [metric.divided_by for metric in self.metrics],
                "place": np.where([metric.is_kept for metric in self.metrics], place, -1).astype(np.int64),
            }
        )
