"""Times of every unit and of every distance are read, or refused with a reason: none stops the reader."""

from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.jobs.params import ReadParams
from tasks.jobs.readers.own import OwnReader
from tasks.jobs.readers.own_values import in_microseconds

NOON = datetime(2026, 1, 1, 12)
FAR = 9 * 10**15  # seconds: 285 million years, more than microseconds can count
FUTURE = "lies in the future; check clock, unit and time zone"
PAST = "lies before 1970; check the unit of the times"


def read(path: Path, params: ReadParams | None = None) -> tuple[pd.DataFrame, pd.DataFrame]:
    chunks = list(OwnReader().read(str(path), params or ReadParams()))
    return pd.concat([chunk.rows for chunk in chunks]), pd.concat([chunk.refused for chunk in chunks])


def write(path: Path, started: pa.Array, **more: pa.Array) -> Path:
    n = len(started)
    names = {"run_id": [str(row) for row in range(n)], "name": ["etl"] * n, "runtime_s": [1.0] * n}
    pq.write_table(pa.table({**names, "started_at": started, **more}), path, coerce_timestamps=None)
    return path


@pytest.mark.parametrize("zone", [None, "UTC", "Europe/Berlin"])
@pytest.mark.parametrize("unit", ["s", "ms"])
def test_a_start_too_far_out_is_refused_alone(tmp_path: Path, unit: str, zone: str | None) -> None:
    far = FAR if unit == "s" else FAR * 1000
    noon = int((NOON - datetime(1970, 1, 1)).total_seconds()) * (1 if unit == "s" else 1000)
    column = pa.array([noon, far, -far, None], pa.int64()).cast(pa.timestamp(unit, zone))
    if unit == "s":  # Parquet knows no seconds: they become milliseconds there
        rows = in_microseconds(column).cast(pa.int64()).to_pylist()
        assert rows == [noon * 10**6, 253_402_300_799 * 10**6, -253_402_300_799 * 10**6, None]
        return
    rows, refused = read(write(tmp_path / "far.parquet", column))
    assert rows["started_at"].to_list() == [pd.Timestamp(NOON)]
    assert refused["reason"].to_list() == [FUTURE, PAST, "neither submission nor start time; expected one of them"]


def test_dates_too_far_out_are_refused_alone(tmp_path: Path) -> None:
    days = pa.array([20_454, 2**31 - 1], pa.int32()).cast(pa.date32())
    rows, refused = read(write(tmp_path / "dates.parquet", days))
    assert rows["started_at"].to_list() == [pd.Timestamp("2026-01-01")]
    assert refused["reason"].to_list() == [FUTURE]


@pytest.mark.parametrize("unit", ["ms", "us"])
def test_a_far_time_inside_a_list_is_refused_and_shown(tmp_path: Path, unit: str) -> None:
    far = FAR * 10**3
    kind = pa.list_(pa.struct([("vertex", pa.int32()), ("started_at", pa.timestamp(unit))]))
    inner = pa.StructArray.from_arrays(
        [pa.array([1, 2], pa.int32()), pa.array([far, 10**12], pa.int64()).cast(pa.timestamp(unit))],
        fields=list(kind.value_type),
    )
    vertices = pa.ListArray.from_arrays(pa.array([0, 2], pa.int32()), inner, type=kind)
    _, refused = read(write(tmp_path / "far.parquet", pa.array([NOON]), vertices=vertices))
    assert refused["reason"].iloc[0].startswith("a vertex lies before 1970 or in the future")
    assert f'"vertices": [{{"vertex": 1, "started_at": "{far} timestamp[{unit}]"}}' in refused["raw"].iloc[0]


def test_a_list_cannot_be_mapped_in_csv(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text("run_id,name,started_at,runtime_s,parts\n1,a,2026-01-01,3,[]\n")
    with pytest.raises(BadInput, match=r"cannot map 'parts' to 'vertices'; .*; lists need Parquet"):
        read(tmp_path / "log.csv", ReadParams(columns={"vertices": "parts"}))


def test_what_is_near_stays_as_it_was() -> None:
    times = pa.array([NOON, None, NOON + timedelta(microseconds=1)], pa.timestamp("us"))
    assert in_microseconds(times).equals(times)
    whole: Any = in_microseconds(pa.array([NOON, None], pa.timestamp("ms", "UTC")))
    assert whole.type == pa.timestamp("us", "UTC") and whole.cast(pa.timestamp("us")).to_pylist() == [NOON, None]
