"""Rolled event logs of Spark that are cut off, empty in a part, or in a folder with a strange name."""

import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pytest

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.spark import SparkReader

PLAIN = Path(__file__).parent / "fixtures" / "spark" / "local-1795239004004"
LINES = PLAIN.read_bytes().splitlines(keepends=True)
HALF = len(LINES) // 2


def read(folder: Path) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(SparkReader().read(str(folder), ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def packed(lines: list[bytes]) -> bytes:
    """Lines as a running application packs them: a frame of zstd for every few of them."""
    codec = pa.Codec("zstd")
    return b"".join(codec.compress(b"".join(lines[at : at + 4]), asbytes=True) for at in range(0, len(lines), 4))


def rolled(folder: Path, *parts: bytes, is_running: bool = True) -> Path:
    path = folder / "eventlog_v2_local-1"
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir(parents=True)
    for number, content in enumerate(parts, 1):
        (path / f"events_{number}_local-1.zstd").write_bytes(content)
    (path / f"appstatus_local-1{'.inprogress' if is_running else ''}").touch()
    return path


def test_only_the_last_part_may_be_cut_while_the_application_runs(tmp_path: Path) -> None:
    first, second = packed(LINES[:HALF]), packed(LINES[HALF:])
    rows, refused = read(rolled(tmp_path, first, second[:-20]))
    assert (rows["status"].to_list(), len(refused)) == (["running"], 0)
    with pytest.raises(BadInput, match=r"events_1_local-1\.zstd: the zstd stream is cut off; expected a whole event"):
        read(rolled(tmp_path, first[:-20], second))
    with pytest.raises(BadInput, match=r"events_2_local-1\.zstd: the zstd stream is cut off"):
        read(rolled(tmp_path, first, second[:-20], is_running=False))


def test_a_part_that_was_just_begun_may_be_empty_and_no_other(tmp_path: Path) -> None:
    first, second = packed(LINES[:HALF]), packed(LINES[HALF:])
    assert read(rolled(tmp_path, first, b""))[0]["status"].to_list() == ["running"]
    empty = "the file is empty; expected events of Spark; copy it again, or wait until the application has ended"
    with pytest.raises(BadInput, match=rf"events_1_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, b"", second))
    with pytest.raises(BadInput, match=rf"events_2_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, first, b"", is_running=False))
    with pytest.raises(BadInput, match=rf"events_1_local-1\.zstd: {empty}"):
        read(rolled(tmp_path, b""))
