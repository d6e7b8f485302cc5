"""How much a single file may cost before it is refused; light."""

from pydantic import Field

from tasks.params import Params


class ReadLimits(Params):
    """Limits on one input file, against gzip bombs and files that are no logs."""

    max_bytes: int = Field(
        200 * 2**30,
        ge=2**10,
        le=2**50,
        description="Largest size after decompression, in bytes. More for larger logs, where the disk has room",
    )
    max_ratio: float = Field(
        1000,
        gt=1,
        le=1_000_000,
        description="Largest ratio of unpacked to packed bytes (gzip bombs). More for logs that repeat themselves",
    )
    max_line_bytes: int = Field(
        2**20,
        ge=2**10,
        le=2**30,
        description="Longest line of a text file, in bytes. More for plans and events in one line",
    )
    max_refused_share: float = Field(
        0.2,
        ge=0,
        le=1,
        description="A file of which a larger share of the rows is refused is not loaded. More for exports that "
        "are known to be broken in part",
    )
