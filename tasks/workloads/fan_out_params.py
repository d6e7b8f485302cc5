"""How work on many runs is shared out; nothing heavy is imported here."""

from pydantic import Field

from tasks.params import Params


class FanOutParams(Params):
    """How the fingerprints of many runs are shared out."""

    ray_address: str = Field(
        "",
        max_length=500,
        description="Ray that makes fingerprints, such as ray://head:10001; local: one on this machine; empty: none",
    )
    runs_per_part: int = Field(
        50, ge=1, le=100_000, description="Runs of one part: each is a task of its own, tried again on its own"
    )
