"""The parameters of phases and their summaries; nothing heavy is imported here."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

PhaseMode = Literal["counter", "shared"]


class PhaseParams(Params):
    """How runs are cut into phases, and what is kept of each phase."""

    mode: PhaseMode = Field(
        "counter",
        description="Change points of each counter by itself (V-B), or one set over all counters (III-A)",
    )
    adf_min_samples: int = Field(
        20, ge=5, le=1_000_000, description="Samples below which the Dickey-Fuller statistic is undetermined"
    )
    adf_lags: int = Field(1, ge=0, le=1_000, description="Lagged differences in the Dickey-Fuller regression")
    vote_share: float = Field(
        0.1, gt=0, le=1, description="Share of the varying counters that must change for the workload to change phase"
    )
    vote_samples: int = Field(1, ge=0, le=1_000, description="Samples by which changes of counters may lie apart")
