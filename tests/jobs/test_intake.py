"""From a log to a batch: rows of addresses are kept on disk first, and names become keyed hashes everywhere."""

import gc
import json
import os
import re
import stat
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput, BadSetting
from tasks.intake.files import Chunk, no_refusals, refusals
from tasks.intake.pseudonyms import KEY_BYTES, KEY_FILE, load_key, without_names
from tasks.jobs import intake
from tasks.jobs.columns import ALL_COLUMNS, SKYLINE, vet_runs
from tasks.jobs.grouping import group_keys, normalise_names
from tasks.jobs.intake import Intake, land_log, pseudonymise, spooled
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.readers import READERS
from tasks.params import ReadLimits
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
    first, second = chunk_of(1), Chunk(chunk_of(2000).rows, no_refusals(), {})
    with spooled([first, second], tmp_path, ADDRESS, max_bytes=2**30) as (_, again):
        back = list(again)
    for ours, theirs in zip((first, second), back, strict=True):
        pd.testing.assert_frame_equal(ours.rows, theirs.rows)
        pd.testing.assert_frame_equal(ours.refused, theirs.refused)


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
    with spooled([Chunk(rows, no_refusals(), {})], tmp_path, "here", max_bytes=10**6) as (_, again):
        [back] = again
        assert back.rows["skyline"].dtype == rows["skyline"].dtype
        assert back.rows["skyline"].iloc[0] == [step] and pd.isna(back.rows["skyline"].iloc[1])


KEY, OTHER_KEY = bytes(range(32)), bytes(32)
ROWS = pd.DataFrame(
    {
        "run_id": ["1", "2", "3", "4", "5"],
        "name": ["etl-2026-11-20", "etl-2026-11-21", "report", None, "ada"],
        "user_name": ["ada", "ada", "grace", "grace", None],
        "queue": ["night", "night", "day", "day", "day"],
        "requested_cpus": [4.0, 4.0, 1.0, 1.0, 1.0],
    }
).astype({"name": "str", "user_name": "str"})


def test_no_user_and_no_name_is_left_and_the_rest_stays() -> None:
    hidden = pseudonymise(ROWS, KEY)
    shown = hidden.to_csv()
    assert not any(word in shown for word in ("ada", "grace", "etl", "report"))
    pd.testing.assert_frame_equal(
        hidden[["run_id", "queue", "requested_cpus"]], ROWS[["run_id", "queue", "requested_cpus"]]
    )
    assert hidden[["name", "user_name"]].isna().equals(ROWS[["name", "user_name"]].isna())
    pseudonyms = pd.concat([hidden["name"], hidden["user_name"]]).dropna()
    assert pseudonyms.str.fullmatch("[0-9a-f]{12}").all()


def test_runs_of_one_recurring_job_stay_one_group() -> None:
    before, after = group_keys(ROWS), group_keys(pseudonymise(ROWS, KEY))
    assert before.groupby(after).nunique().eq(1).all() and after.groupby(before).nunique().eq(1).all()
    assert before.nunique() == 4


def test_a_pseudonym_never_looks_like_a_date_or_a_counter() -> None:
    names = pd.DataFrame(
        {"name": [f"job {chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(9000)]}
    )
    hidden = pseudonymise(names, KEY)["name"]
    assert hidden.nunique() == 9000
    assert normalise_names(hidden.to_list()) == hidden.to_list()


def test_the_same_key_gives_the_same_pseudonyms_in_every_export() -> None:
    pd.testing.assert_frame_equal(pseudonymise(ROWS[::-1], KEY)[::-1], pseudonymise(ROWS, KEY))
    assert pseudonymise(ROWS, KEY)["name"][0] == pseudonymise(ROWS[1:], KEY)["name"][1]


def test_a_user_and_a_job_of_the_same_name_cannot_be_matched() -> None:
    hidden = pseudonymise(ROWS, KEY)
    assert hidden["name"][4] != hidden["user_name"][0]  # both are called ada


def test_a_given_group_key_is_hidden_too() -> None:
    hidden = pseudonymise(ROWS.assign(group_key=["ada etl", "ada etl", None, "x", "x"]), KEY)
    assert hidden["group_key"].nunique() == 2 and not hidden["group_key"].str.contains("ada").any()


@pytest.mark.parametrize("quoted", ["ada's | etl", "ada\netl"])
def test_refused_lines_lose_the_line_and_what_the_reason_quotes(quoted: str) -> None:
    refused = pd.DataFrame({"place": [3], "reason": [f"Start '{quoted}' is not a time"], "raw": ["7|ada|etl"]})
    assert without_names(refused).to_dict("list") == {"place": [3], "reason": ["Start '…' is not a time"], "raw": [""]}


def test_the_key_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    home = tmp_path / "new" / "home"
    key = load_key(home)
    assert len(key) == KEY_BYTES and key != bytes(KEY_BYTES)
    assert load_key(home) == key
    assert stat.S_IMODE((home / KEY_FILE).stat().st_mode) == 0o600
    assert [file.name for file in home.iterdir()] == [KEY_FILE]
    assert load_key(tmp_path / "other") != key


def test_a_process_that_lost_the_race_takes_the_winners_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def lost(draft: Path, path: Path) -> None:
        path.write_bytes(KEY)
        path.chmod(0o600)
        link(draft, path)

    monkeypatch.setattr(os, "link", lost)
    assert load_key(tmp_path) == KEY
    assert [file.name for file in tmp_path.iterdir()] == [KEY_FILE]


def test_a_damaged_key_is_not_replaced_in_silence(tmp_path: Path) -> None:
    (tmp_path / KEY_FILE).write_bytes(KEY[:5])
    (tmp_path / KEY_FILE).chmod(0o600)
    with pytest.raises(BadSetting, match="5 bytes; expected a key of 32; put your own copy of it back"):
        load_key(tmp_path)


def test_a_key_that_others_may_read_is_refused(tmp_path: Path) -> None:
    load_key(tmp_path)
    (tmp_path / KEY_FILE).chmod(0o644)
    with pytest.raises(BadSetting, match=r"others may read the key; .* run chmod 600"):
        load_key(tmp_path)


def test_ids_made_of_names_are_hidden_and_links_between_runs_survive() -> None:
    ids = ROWS.assign(run_id=[f"etl/load/{n}" for n in range(5)], matched_run_id=[None, "etl/load/0", None, None, ""])
    hidden = pseudonymise(ids, KEY, with_ids=True)
    assert hidden["run_id"].str.fullmatch("[0-9a-f]{32}").all() and hidden["run_id"].nunique() == 5
    assert hidden["matched_run_id"][1] == hidden["run_id"][0]
    assert hidden["matched_run_id"].isna().to_list() == [True, False, True, True, True]


LOG = Path(__file__).parent / "readers" / "fixtures" / "spark" / "local-1795239004004"
VERTICES = [
    [{"vertex": 0, "sku": "node-1", "cpu_s": 2.5, "started_at": 7}, {"vertex": 1, "sku": "node-2"}],
    None,
    [],
    [{"vertex": 0, "sku": "node-1"}, {"vertex": 1, "sku": None}, {"vertex": 2, "sku": "profile 3"}],
]
SKUS = [[{"sku": "node-2", "tokens": 4.0}], [{"sku": "node-3"}], None, None]


def lists(name: str, values: list[list[dict[str, object]] | None]) -> pd.Series:
    return pd.Series(pd.arrays.ArrowExtensionArray(pa.array(values, type=ALL_COLUMNS[name][0])))


LISTS_ROWS = pd.DataFrame(
    {"run_id": list("1234"), "vertices": lists("vertices", VERTICES), "skus": lists("skus", SKUS)}
)


def of(rows: pd.DataFrame, name: str, field: str) -> list[list[object] | None]:
    values = pa.array(rows[name]).to_pylist()
    return [None if entries is None else [entry[field] for entry in entries] for entries in values]


def test_a_host_has_one_pseudonym_in_all_lists_and_profiles_stay() -> None:
    hidden = pseudonymise(LISTS_ROWS, KEY)
    (first, second), no_list, no_vertex, (again, missing, profile) = of(hidden, "vertices", "sku")  # type: ignore[misc]
    assert (no_list, no_vertex, missing, profile) == (None, [], None, "profile 3")
    assert again == first != second and of(hidden, "skus", "sku")[0] == [second]
    assert all(len(str(name)) == 12 and "node" not in str(name) for name in (first, second))
    assert "node" not in str(hidden.to_dict("list"))


def test_the_rest_of_the_lists_stays_as_it_was_also_in_a_part_of_the_rows() -> None:
    for rows in (LISTS_ROWS, LISTS_ROWS[1:], LISTS_ROWS[::-1], LISTS_ROWS[:0]):
        hidden = pseudonymise(rows, KEY)
        assert hidden.dtypes.equals(rows.dtypes) and hidden.index.equals(rows.index)
        for name, field in [
            ("vertices", "vertex"),
            ("vertices", "cpu_s"),
            ("vertices", "started_at"),
            ("skus", "tokens"),
        ]:
            assert of(hidden, name, field) == of(rows, name, field)


def test_no_host_of_a_spark_log_is_landed(tmp_path: Path) -> None:
    params = ReadParams(pseudonymise=True)
    home = Warehouse(home=tmp_path)
    batch = land_log(home, str(LOG), Intake("s", "", params, GroupParams()))
    landed = pq.read_table(Path(home.landing_folder) / "jobs" / batch.tables["runs"].name).to_pylist()
    open_rows = next(iter(READERS["spark"].read(str(LOG), params))).rows
    assert {entry["sku"] for entry in open_rows["vertices"].iloc[0]} == {"node-1"}
    assert len({entry["sku"] for row in landed for entry in row["vertices"]}) == 1
    assert "node-1" not in str(landed)


def test_accounts_and_texts_of_features_are_hidden_and_their_numbers_stay() -> None:
    features = ['{"branch": "ada/fix", "size": 3}', None]
    rows = ROWS.head(2).assign(account=["physics", None], features=pd.Series(features, dtype="str"))
    hidden = pseudonymise(rows, KEY)
    assert hidden[["account", "features"]].isna().to_numpy().tolist() == [[False, False], [True, True]]
    told = json.loads(hidden["features"].iloc[0])
    assert told["size"] == 3 and re.fullmatch("[0-9a-f]{12}", told["branch"])
    assert re.fullmatch("[0-9a-f]{12}", hidden["account"].iloc[0])
