"""Which reader a file is for."""

from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs.readers import READERS, detect
from tasks.params import ReadLimits

LIMITS = ReadLimits()
SWF = b"; UnixStartTime: 0\n1 0 -1 1451 128 -1 -1 -1 -1 -1 -1 1 1 -1 -1 -1 -1 -1\n"
CSV = b"run_id,name,started_at,runtime_s\n1,etl,2026-01-01,5\n"
SACCT = b"JobID|Start|End|State|JobName\n1|2024-12-01T12:00:00|2024-12-01T12:10:00|COMPLETED|etl\n"

FILES = {
    "log.swf": (SWF, "swf"), "log.txt": (SWF, "swf"), "jobs.csv": (CSV, "table"), "jobs.dat": (CSV, "table"),
    "sacct.txt": (SACCT, "slurm"), "export.csv": (SACCT, "slurm"),
    "theirs.csv": (b"id,title,begin,seconds\n", "table"),  # to be read with renamed columns
    "oddly named.swf": (b"no numbers\n", "swf"),  # so that the reader says what is wrong with it
}  # fmt: skip


@pytest.mark.parametrize(("name", "content", "reader"), [(name, *case) for name, case in FILES.items()])
def test_the_content_decides_and_the_ending_where_it_does_not(
    tmp_path: Path, name: str, content: bytes, reader: str
) -> None:
    (tmp_path / name).write_bytes(content)
    assert detect(str(tmp_path / name), LIMITS).name == reader


def test_parquet_is_ours_whatever_it_is_called(tmp_path: Path) -> None:
    pd.DataFrame({"a": [1]}).to_parquet(tmp_path / "log.swf")
    assert detect(str(tmp_path / "log.swf"), LIMITS).name == "table"


def test_an_address_is_told_without_asking_it() -> None:
    assert detect("http://127.0.0.1:1/api", LIMITS).name == "prefect-api"


def test_a_file_that_nobody_knows_is_refused_with_what_could_be_read(tmp_path: Path) -> None:
    (tmp_path / "song.mp3").write_bytes(b"ID3\x04 la la la")
    with pytest.raises(BadInput) as refusal:
        detect(str(tmp_path / "song.mp3"), LIMITS)
    said = str(refusal.value)
    assert "no known job log (it begins with 'ID3" in said
    assert said.endswith("name the reader: --reader swf|slurm|pbs|grid-engine|spark|airflow|prefect-api|table")
    assert "Standard Workload Format (.swf, .swf.gz)" in said
    assert "any other log as such a table: name, start, and runtime or end, named by --map" in said


def test_a_missing_file_is_missing_and_not_unknown(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be opened"):
        detect(str(tmp_path / "nothing.swf"), LIMITS)


def test_every_reader_goes_by_its_own_name_and_says_what_it_reads() -> None:
    for name, reader in READERS.items():
        assert (reader.name, reader.version >= 1, bool(reader.title)) == (name, True, True)
        assert all(ending == ending.lower() for ending in reader.endings)
