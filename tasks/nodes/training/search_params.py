"""How the parameters of Perona's model are searched; nothing heavy is imported here. Source: Perona, IV-B."""

from typing import Literal

from pydantic import Field

from tasks.params import Params

LOCAL = "local"  # in place of an address: a Ray on this machine, for as long as the search takes


class SearchParams(Params):
    """Trials of Table II's values and, in ours, of more batches and rates: Optuna proposes, ASHA gives up the worse."""

    n_trials: int = Field(100, ge=1, le=100_000, description="Configurations tried, given up or not (paper: 100)")
    runner: Literal["ray", "here"] = Field(
        "ray",
        description="ray: side by side through Ray Tune, where they end in another order each time; "
        "here: one after the other without Ray, the same every time",
    )
    ray_address: str = Field(
        LOCAL,
        min_length=1,
        max_length=500,
        description="Ray that runs the trials, such as ray://head:10001; local: one on this machine, while it lasts",
    )
    concurrency: int = Field(
        4, ge=1, le=1000, description="Trials at a time on Ray (paper: 4), and on this machine at most one a core"
    )
    warm_up_trials: int = Field(10, ge=0, le=10_000, description="Trials drawn at random before Optuna's TPE proposes")
    grace_epochs: int = Field(
        50, ge=1, le=10_000, description="Epochs that every trial is given, at most half of all (paper: 50)"
    )
    reduction: int = Field(4, ge=2, le=100, description="Of so many trials one goes on after the grace (paper: 4)")
    seed: int = Field(42, ge=0, le=2**31 - 1, description="Seed of what is proposed (paper: 42)")
