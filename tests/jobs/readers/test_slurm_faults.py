"""What is wrong with a log of Slurm is said in one line: faults put into the phillips log of xdmod."""

import gzip
import os
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput, BadSetting, WhorlError
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.slurm import SlurmReader
from tasks.read_limits import ReadLimits

NEW_YORK = ReadParams(time_zone="America/New_York")


def read(path: str, params: ReadParams = NEW_YORK) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(SlurmReader().read(path, params))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


@pytest.fixture(scope="module")
def phillips() -> Path:
    path = Path(os.environ.get("WHORL_DATASETS", "-")) / "slurm" / "phillips_sacct.log"
    if not path.exists():
        pytest.skip("needs slurm/phillips_sacct.log of xdmod in the folder WHORL_DATASETS")
    return path


def in_field(field: str, value: str) -> Callable[[list[str]], list[str]]:
    """Put a value into a field of the hundredth line."""
    column = ReadParams().sacct_fields.split(",").index(field)

    def mutated(lines: list[str]) -> list[str]:
        fields = lines[99].split("|")
        return [*lines[:99], "|".join([*fields[:column], value, *fields[column + 1 :]]), *lines[100:]]

    return mutated


def cut_off(lines: list[str]) -> list[str]:
    return [*lines[:99], lines[99][:150], *lines[100:]]


BROKEN_LINES: list[tuple[Callable[[list[str]], list[str]], str]] = [
    (in_field("Start", "yesterday"), "Start 'yesterday' is not a time (YYYY-MM-DDTHH:MM:SS)"),
    (in_field("Submit", "2016-13-30T00:00:00"), "Submit '2016-13-30T00:00:00' is not a time"),
    (in_field("Submit", "2016-03-13T02:30:00"), "does not exist in America/New_York, where clocks were put forward"),
    (in_field("Elapsed", "25 min"), "Elapsed '25 min' is not a duration ([D-]HH:MM:SS)"),
    (in_field("State", "0:0"), "State '0:0' is not a job state"),
    (in_field("ReqMem", "lots"), "ReqMem 'lots' is not an amount of memory"),
    (in_field("NCPUS", "-8"), "NCPUS '-8' is not a whole number"),
    (in_field("AllocTRES", "cpu"), "AllocTRES 'cpu' is not a list of resources (cpu=8,mem=24000M)"),
    (in_field("Timelimit", "1 day"), "Timelimit '1 day' is not a duration"),
    (in_field("JobIDRaw", "x7"), "JobIDRaw 'x7' is not a job id"),
    (in_field("Cluster", "stewart"), "Cluster 'stewart' in a log of 'phillips', whose job ids may be the same"),
    (in_field("Submit", "2016-12-31T23:59:59"), "starts before it is submitted"),
    (in_field("End", "2016-01-01T00:00:00"), "ends before it starts"),
    (in_field("End", "2126-01-01T00:00:00"), "lies in the future"),
    (in_field("User", "a|b"), "Submit '330719' is not a time"),  # a bar that is not the name's shifts the fields
    (in_field("QOS", "caf\udce9"), "the line is not UTF-8"),
    (cut_off, "14 fields instead of 26"),
]


@pytest.mark.parametrize(("mutate", "reason"), BROKEN_LINES, ids=[reason[:30] for _, reason in BROKEN_LINES])
def test_a_broken_line_is_refused_alone(
    phillips: Path, tmp_path: Path, mutate: Callable[[list[str]], list[str]], reason: str
) -> None:
    lines = mutate(phillips.read_text().splitlines()[:300])
    path = tmp_path / "sacct.log"
    path.write_bytes("\n".join([*lines, ""]).encode("utf-8", "surrogateescape"))
    rows, refused = read(str(path))
    assert (len(rows), refused["place"].to_list()) == (299, [100])
    assert reason in refused["reason"].iloc[0]
    assert refused["raw"].iloc[0].startswith(lines[99][:20])


Mutation = Callable[[bytes], bytes]
FIELDS = ReadParams().sacct_fields.replace(",", "|").encode()
WRONG_FILES: list[tuple[str, Mutation, ReadParams, str]] = [
    ("no zone", bytes, ReadParams(), "Submit is local time without a time zone; expected the time zone of the"),
    (
        "no zone, what to do",
        bytes,
        ReadParams(),
        "name it: --time-zone Europe/Berlin (or export with SLURM_TIME_FORMAT",
    ),
    (
        "a wrong zone",
        bytes,
        ReadParams(time_zone="Buffalo"),
        "read.time_zone: no time zone is called 'Buffalo'; expected",
    ),
    (
        "columns missing",
        lambda log: log.replace(b"|phillips|", b"|"),
        NEW_YORK,
        "lines of 25 fields, but read.sacct_fields",
    ),
    (
        "fewer in the header",
        lambda log: b"JobID|Start|End|JobIDRaw|QOS\n" + b"a|b\n",
        NEW_YORK,
        "lines of 2 fields, but its",
    ),
    (
        "no start in the header",
        lambda log: FIELDS.replace(b"Start|", b"") + b"\n" + log,
        NEW_YORK,
        "the header lacks Start",
    ),
    ("no end in the header", lambda log: b"JobID|Start|State\n", NEW_YORK, "lacks End or Elapsed or ElapsedRaw"),
    (
        "a wrong list of fields",
        bytes,
        NEW_YORK.model_copy(update={"sacct_fields": "Start,End"}),
        "read.sacct_fields lacks JobIDRaw or JobID; list the fields that sacct --format was given",
    ),
    (
        "commas for bars",
        lambda log: log.replace(b"|", b","),
        NEW_YORK,
        "no bars (|) between fields; expected output of sacct",
    ),
    ("nothing", lambda log: b"", NEW_YORK, "the file is empty"),
    ("blank lines", lambda log: b"\n \n\n", NEW_YORK, "only blank lines; expected output of sacct --parsable2"),
    ("UTF-16", lambda log: log.decode().encode("utf-16"), NEW_YORK, "the text is UTF-16; expected"),
    ("binary", lambda log: log.replace(b"|", b"\x00"), NEW_YORK, "binary content (NUL bytes)"),
    ("cut-off gzip", lambda log: gzip.compress(log)[:-900], NEW_YORK, "the gzip stream is damaged or cut off"),
    ("zip", lambda log: b"PK\x03\x04" + log, NEW_YORK, "packed with zip; expected plain text or gzip"),
    (
        "a gzip bomb",
        lambda log: gzip.compress(log[:340] * 20_000),
        NEW_YORK.model_copy(update={"limits": ReadLimits(max_ratio=50)}),
        "unpacks to more than 50 times its size (a gzip bomb?)",
    ),
    (
        "too large",
        bytes,
        NEW_YORK.model_copy(update={"limits": ReadLimits(max_bytes=10_000)}),
        "more than 10,000 bytes",
    ),
]


@pytest.mark.parametrize(
    ("mutate", "params", "message"), [case[1:] for case in WRONG_FILES], ids=[case[0] for case in WRONG_FILES]
)
def test_a_file_of_the_wrong_kind_is_one_clear_line(
    phillips: Path, tmp_path: Path, mutate: Mutation, params: ReadParams, message: str
) -> None:
    path = tmp_path / "sacct.log"
    path.write_bytes(mutate(phillips.read_bytes()))
    with pytest.raises(WhorlError) as told:
        read(str(path), params)
    assert message in str(told.value) and "\n" not in str(told.value)
    assert isinstance(told.value, BadSetting) or str(told.value).startswith(f"{path}: ")


def test_a_packed_log_gives_the_same_rows(phillips: Path, tmp_path: Path) -> None:
    (tmp_path / "sacct.log.gz").write_bytes(gzip.compress(phillips.read_bytes()))
    pd.testing.assert_frame_equal(read(str(tmp_path / "sacct.log.gz"))[0], read(str(phillips))[0])


def test_a_missing_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be opened"):
        read(str(tmp_path / "none.log"))
