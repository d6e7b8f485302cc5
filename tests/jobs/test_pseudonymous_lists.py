"""Pseudonyms hide the hosts in vertices and SKUs too, and leave everything else in those lists as it was."""

from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from tasks.jobs.columns import ALL_COLUMNS
from tasks.jobs.intake import Intake, land_log
from tasks.jobs.params import GroupParams, ReadParams
from tasks.jobs.pseudonyms import pseudonymise
from tasks.jobs.readers import READERS
from tasks.warehouse.place import Warehouse

KEY = b"k" * 32
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


ROWS = pd.DataFrame(
    {"run_id": list("1234"), "vertices": lists("vertices", VERTICES), "skus": lists("skus", SKUS)},
)


def of(rows: pd.DataFrame, name: str, field: str) -> list[list[object] | None]:
    values = pa.array(rows[name]).to_pylist()
    return [None if entries is None else [entry[field] for entry in entries] for entries in values]


def test_a_host_has_one_pseudonym_in_all_lists_and_profiles_stay() -> None:
    hidden = pseudonymise(ROWS, KEY)
    (first, second), no_list, no_vertex, (again, missing, profile) = of(hidden, "vertices", "sku")  # type: ignore[misc]
    assert (no_list, no_vertex, missing, profile) == (None, [], None, "profile 3")
    assert again == first != second and of(hidden, "skus", "sku")[0] == [second]
    assert all(len(str(name)) == 12 and "node" not in str(name) for name in (first, second))
    assert "node" not in str(hidden.to_dict("list"))


def test_the_rest_of_the_lists_stays_as_it_was_also_in_a_part_of_the_rows() -> None:
    for rows in (ROWS, ROWS[1:], ROWS[::-1], ROWS[:0]):
        hidden = pseudonymise(rows, KEY)
        assert hidden.dtypes.equals(rows.dtypes) and hidden.index.equals(rows.index)
        for name, field in [
            ("vertices", "vertex"),
            ("vertices", "cpu_s"),
            ("vertices", "started_at"),
            ("skus", "tokens"),
        ]:
            assert of(hidden, name, field) == of(rows, name, field)


def test_rows_without_lists_get_none() -> None:
    assert list(pseudonymise(ROWS[["run_id"]], KEY)) == ["run_id"]


def test_no_host_of_a_spark_log_is_landed(tmp_path: Path) -> None:
    params = ReadParams(pseudonymise=True)
    home = Warehouse(home=tmp_path)
    batch = land_log(home, str(LOG), Intake("s", "", params, GroupParams()))
    landed = pq.read_table(Path(home.landing_folder) / "jobs" / batch.tables["runs"].name).to_pylist()
    open_rows = next(iter(READERS["spark"].read(str(LOG), params))).rows
    assert {entry["sku"] for entry in open_rows["vertices"].iloc[0]} == {"node-1"}
    assert len({entry["sku"] for row in landed for entry in row["vertices"]}) == 1
    assert "node-1" not in str(landed)
