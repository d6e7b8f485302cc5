"""What the tests of the readers share: real samples, and files made on the spot."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from tasks.workloads.intake import read_file
from tasks.workloads.params import ReadParams, RegularParams
from tasks.workloads.prepared import PreparedRun

FIXTURES = Path(__file__).parent / "fixtures"


@dataclass(frozen=True)
class Found:
    """What came out of a file."""

    runs: list[PreparedRun]
    refused: pd.DataFrame

    @property
    def n_read(self) -> int:
        """Rows of the file: behind a run, or refused."""
        return sum(run.n_rows for run in self.runs) + len(self.refused)

    @property
    def reasons(self) -> list[str]:
        return self.refused["reason"].to_list()

    def column(self, counter: str, run: int = 0) -> list[float]:
        """The values of a counter, rounded; missing ones are None."""
        told = self.runs[run].telemetry
        values = told.values[:, told.names.index(counter)]  # noqa: PD011
        return [None if np.isnan(value) else round(float(value), 6) for value in values]  # type: ignore[misc]


@pytest.fixture
def found_in(tmp_path: Path) -> Callable[..., Found]:
    """A function that reads a sample, or a text as a file; runs of one sample are long enough unless said otherwise."""

    def read(source: Path | str | bytes, name: str = "set/redis.csv", **params: Any) -> Found:
        path = source
        if not isinstance(source, Path):
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(source.encode() if isinstance(source, str) else source)
        regular = RegularParams(**{"min_samples": 1, **params.pop("regular", {})})
        reader = params.pop("reader", "")
        return Found(*read_file(str(path), ReadParams(regular=regular, **params), reader))

    return read


@pytest.fixture(scope="session")
def samples() -> Path:
    """The folder of real samples."""
    return FIXTURES
