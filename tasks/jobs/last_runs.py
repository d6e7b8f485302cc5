"""Rolling windows over the runs of one job after the other."""

import numpy as np
from numpy.typing import NDArray
from pandas.api.indexers import BaseIndexer

Ints = NDArray[np.int64]


class LastRuns(BaseIndexer):
    """Windows of at most `size` runs up to and with each run, which never reach into another job."""

    def __init__(self, starts: Ints, size: int) -> None:
        super().__init__()
        self.starts, self.size = starts, size

    def get_window_bounds(  # pandas asks for these names
        self,
        num_values: int = 0,
        min_periods: int | None = None,  # noqa: ARG002
        center: bool | None = None,  # noqa: ARG002
        closed: str | None = None,  # noqa: ARG002
        step: int | None = None,  # noqa: ARG002
    ) -> tuple[Ints, Ints]:
        ends = np.arange(1, num_values + 1, dtype=np.int64)
        return np.maximum(self.starts, ends - self.size), ends
