"""A log from an address is kept on disk while it is hashed: memory stays that of one chunk, rows stay as they were."""

import gc
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.jobs import intake
from tasks.jobs.columns import SKYLINE
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.spool import Spool
from tasks.jobs.vetting import vet_runs
from tasks.read_limits import ReadLimits
from tasks.reading import Chunk, no_refusals, refusals
from tasks.warehouse.place import Warehouse

ADDRESS = "http://127.0.0.1:4200/api"
N_ROWS = 1000


def chunk_of(first: int, n_rows: int = N_ROWS) -> Chunk:
    at = pd.Timestamp("2026-01-01") + pd.to_timedelta(range(n_rows), unit="s")
    rows = pd.DataFrame(
        {
            "place": np.arange(first, first + n_rows),
            "run_id": [f"run-{i}" for i in range(first, first + n_rows)],
            "name": "load",
            "queue": ["fast", None] * (n_rows // 2),
            "started_at": at.astype("datetime64[us]"),
            "runtime_s": [1.5, 2.5] * (n_rows // 2),
            "status": "completed",
        }
    )
    rows = vet_runs(rows, ReadParams(), datetime(2026, 2, 1)).rows
    return Chunk(rows, refusals([first + n_rows], "no run id", ["{}"]), {})


class Remote:
    """A reader of an address; it may count the chunks that are alive while it reads, its own and those made of them."""

    name, version, title, endings = "prefect-api", 1, "a test", ()

    def __init__(self, n_chunks: int, *, counts: bool = False) -> None:
        self.n_chunks, self.counts, self.most_alive = n_chunks, counts, 0

    def sniff(self, head: bytes, path: str) -> bool:
        return True

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        for i in range(self.n_chunks):
            yield chunk_of(1 + i * (N_ROWS + 1))
            if self.counts:  # a look at all objects there are: it takes most of a second
                self.most_alive = max(self.most_alive, sum(isinstance(one, Chunk) for one in gc.get_objects()))


def asked(limits: ReadLimits | None = None) -> intake.Intake:
    read = ReadParams(limits=limits or ReadLimits())
    return intake.Intake("main", "", read, GroupParams())


def test_what_comes_out_of_a_spool_is_what_went_in(tmp_path: Path) -> None:
    first, second = chunk_of(1), Chunk(chunk_of(2000).rows, no_refusals(), {"more": pd.DataFrame({"x": [1, 2]})})
    with Spool(tmp_path, ADDRESS, max_bytes=2**30) as spool:
        spool.write(first)
        spool.write(second)
        back = list(spool.read())
    for ours, theirs in zip((first, second), back, strict=True):
        pd.testing.assert_frame_equal(ours.rows, theirs.rows)
        pd.testing.assert_frame_equal(ours.refused, theirs.refused)
    pd.testing.assert_frame_equal(second.tables["more"], back[1].tables["more"])


@pytest.mark.slow
def test_a_long_history_never_lies_in_memory_as_a_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    remote = Remote(20, counts=True)
    monkeypatch.setattr(intake, "_reader", lambda *_: remote)
    batch = intake.land_log(Warehouse(home=tmp_path / "home"), ADDRESS, asked())
    assert batch.tables["runs"].n_rows == 20 * N_ROWS
    assert batch.n_quarantined == 20
    assert remote.most_alive <= 5  # not 20
    assert sorted(path.name for path in (tmp_path / "home").iterdir()) == ["landing"]  # nothing is left of the spool


def test_the_same_history_is_the_same_batch_however_it_is_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    warehouse = Warehouse(home=tmp_path / "home")
    ids = []
    for n_chunks in (3, 3, 4):
        monkeypatch.setattr(intake, "_reader", lambda *_, n=n_chunks: Remote(n))
        ids.append(intake.land_log(warehouse, ADDRESS, asked()).batch_id)
    assert ids[0] == ids[1] != ids[2]


def test_a_history_beyond_the_largest_size_is_refused_with_the_knob(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "_reader", lambda *_: Remote(20))
    with pytest.raises(BadInput) as refusal:
        intake.land_log(Warehouse(home=tmp_path / "home"), ADDRESS, asked(ReadLimits(max_bytes=100_000)))
    assert str(refusal.value) == (
        f"{ADDRESS}: more than 100,000 bytes of rows; expected a shorter history; raise read.limits.max_bytes"
    )
    assert list((tmp_path / "home").iterdir()) == []


def test_lists_come_back_as_they_were(tmp_path):
    step = {"at_s": 0.0, "tokens": 2.0, "guaranteed": 1.0}
    rows = chunk_of(1, 2).rows.assign(skyline=pd.Series([[step], None], dtype=pd.ArrowDtype(SKYLINE)))
    with Spool(tmp_path, "here", max_bytes=10**6) as spool:
        spool.write(Chunk(rows, no_refusals(), {}))
        [back] = spool.read()
        assert back.rows["skyline"].dtype == rows["skyline"].dtype
        assert back.rows["skyline"].iloc[0] == [step] and pd.isna(back.rows["skyline"].iloc[1])
