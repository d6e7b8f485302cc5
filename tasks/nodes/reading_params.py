"""How results of benchmarks are read: readers and their parameters, light enough for forms and flags.

The readers themselves import pandas."""

from pydantic import Field

from tasks.params import Params
from tasks.read_limits import ReadLimits

RESULT_BYTES = 8 * 2**30
DAY_S = 86_400.0


class ReadParams(Params):
    """How results of benchmarks are read, and who says on which node they were measured."""

    label_from: str = Field(
        "",
        max_length=200,
        description="Node of a file's executions: stem (its name), parent (its folder), column:NAME; empty: columns",
    )
    manifest: str = Field(
        "",
        max_length=4096,
        description="CSV or JSONL with path, benchmark, node, machine_type, started_at, is_stressed, dose of each file",
    )
    columns: dict[str, str] = Field(
        {}, description="Renames columns of tables: our name to the name in the file (ours: theirs)"
    )
    time_zone: str = Field("UTC", min_length=1, max_length=100, description="Time zone of times that name none")
    pseudonymise: bool = Field(
        False,
        description="Replace nodes and ids by keyed hashes and drop logs and command lines before anything is kept",
    )
    future_slack_s: float = Field(
        DAY_S, ge=0, le=1e9, description="Executions that begin later than this after now are refused, in seconds"
    )
    limits: ReadLimits = ReadLimits(max_bytes=RESULT_BYTES)
