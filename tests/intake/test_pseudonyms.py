"""Nothing of a file's content is left where pseudonyms are asked for, in any word; one machine has one pseudonym."""

import logging
import random
import re
import stat
import traceback
from pathlib import Path

import pandas as pd
import pytest

from tasks.errors import BadInput, quoted, quoting_nothing, without_quotes
from tasks.intake.pseudonyms import HOST, KEY_FILE, load_key, pseudonym
from tasks.jobs import intake as jobs
from tasks.jobs.params import GroupParams
from tasks.jobs.params import ReadParams as JobsRead
from tasks.nodes import intake as nodes
from tasks.nodes.params import ReadParams as NodesRead
from tasks.params import ReadLimits
from tasks.warehouse.connection import fetch
from tasks.warehouse.ingest import ingest
from tasks.warehouse.place import Warehouse
from tasks.workloads import intake as workloads
from tasks.workloads.params import ReadParams as WorkloadsRead
from tests.test_mutated_inputs import samples

SECRET = "zqsecretname"
JOBS, WORKLOADS, NODES = "jobs", "workloads", "nodes"


def sample(name: str) -> tuple[str, str]:
    """Name and text of a file that the tests of mutated inputs begin with."""
    good = samples()[name]
    return Path(good.target).name, good.files[good.target].decode()


LOG = "run_id,name,user_name,started_at,runtime_s,status,queue\n" + "".join(
    f"r{n},etl,ada,2026-01-0{n}T00:00:00Z,{n},ok,day\n" for n in range(1, 10)
)
TELEMETRY = "run_id,workload,machine,at_s,cpu,mem\n" + "".join(f"r1,kmeans,m1,{n},{n % 5},{n * 2}\n" for n in range(9))
RESULTS = "execution_id,node,benchmark,metric,value,unit,started_at\n" + "".join(
    f"e{n},m1,cpu-x,speed,{n},1/s,2026-01-0{n}T00:00:00Z\n" for n in range(1, 10)
)
FILES = {  # word, and name and text of the file
    "table": (JOBS, "log.csv", LOG),
    **{name: (JOBS, *sample(name)) for name in ("swf", "slurm", "pbs", "grid-engine", "airflow-csv", "airflow-json")},
    "spark": (JOBS, *sample("spark-plain")),
    "telemetry": (WORKLOADS, "series.csv", TELEMETRY),
    **{name: (WORKLOADS, *sample(name)) for name in ("perf.csv", "perf.json", "sadf.csv")},
    "results": (NODES, "results.csv", RESULTS),
}


def land(warehouse: Warehouse, word: str, path: Path, *, is_hidden: bool = True, share: float = 0.2) -> str:
    read = {"pseudonymise": is_hidden, "limits": ReadLimits(max_refused_share=share)}
    if word == JOBS:
        asked = jobs.Intake("s", "", JobsRead(time_zone="UTC", **read), GroupParams())  # type: ignore[arg-type]
        return jobs.land_log(warehouse, str(path), asked).batch_id
    if word == WORKLOADS:
        telemetry = workloads.Intake("s", "", WorkloadsRead(**read))  # type: ignore[arg-type]
        return workloads.land_telemetry(warehouse, str(path), telemetry).batch_id
    return nodes.land_executions(warehouse, str(path), nodes.Intake("s", "", NodesRead(**read))).batch_id  # type: ignore[arg-type]


def planted(text: str, rng: random.Random) -> str:
    """The text with the secret in place of some of its words, or behind them, and now and then cut off."""
    words = re.split(r"(\w+)", text)
    for at in rng.sample(range(1, len(words), 2), min(len(words) // 2, rng.choice([1, 1, 3, 30]))):
        words[at] = rng.choice([SECRET, f"{words[at]} {SECRET}", f"{SECRET}'{SECRET}", f'{SECRET}"s {SECRET}'])
    whole = "".join(words)
    return whole[: rng.randrange(1, len(whole))] if rng.random() < 0.2 else whole


def names_left(root: Path) -> list[str]:
    return [str(path) for path in root.rglob("*") if path.is_file() and SECRET.encode() in path.read_bytes()]


@pytest.mark.parametrize("name", FILES)
def test_no_message_log_or_quarantine_quotes_what_stands_in_a_file(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    warehouse, rng, (word, file, text) = Warehouse(home=tmp_path / "home"), random.Random(name), FILES[name]
    path, n_told = tmp_path / file, 0
    for _ in range(8):
        path.write_text(planted(text, rng))
        try:
            land(warehouse, word, path, share=rng.choice([0.0, 1.0]))
        except BadInput as error:
            assert SECRET not in str(error) and error.__suppress_context__
            assert SECRET not in "".join(traceback.format_exception(error))
            n_told += 1
    assert SECRET not in caplog.text
    for landed in (tmp_path / "home").rglob("quarantine-*.parquet"):
        assert SECRET not in pd.read_parquet(landed).to_json()
    assert n_told


def test_the_header_of_a_refused_file_is_told_only_without_pseudonyms(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(f"{SECRET},b\n1,2\n")
    with pytest.raises(BadInput, match=r"no column run_id and no name or group_key .* among '…'; expected the columns"):
        land(Warehouse(home=tmp_path), JOBS, tmp_path / "log.csv")
    with pytest.raises(BadInput, match=f"among '{SECRET}', 'b'; expected"):
        land(Warehouse(home=tmp_path), JOBS, tmp_path / "log.csv", is_hidden=False)


def test_machines_have_one_pseudonym_in_all_words_and_nothing_else_names_them(tmp_path: Path) -> None:
    warehouse = Warehouse(home=tmp_path / "home")
    (tmp_path / "results.csv").write_text(RESULTS.replace("m1", SECRET))
    (tmp_path / "series.csv").write_text(TELEMETRY.replace("m1", SECRET).replace("r1", f"{SECRET}-run"))
    for word, file in ((NODES, "results.csv"), (WORKLOADS, "series.csv")):
        ingest(warehouse, word, land(warehouse, word, tmp_path / file))
    key = load_key(warehouse.home)
    assert stat.S_IMODE((warehouse.home / KEY_FILE).stat().st_mode) == 0o600
    shown = [pseudonym(SECRET, HOST, key)]
    assert fetch(warehouse, "SELECT DISTINCT node FROM nodes.executions")["node"].to_list() == shown
    assert fetch(warehouse, "SELECT DISTINCT machine FROM workloads.runs")["machine"].to_list() == shown
    assert fetch(warehouse, "SELECT node FROM ops.machines")["node"].to_list() == shown
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [9]
    paths = fetch(warehouse, "SELECT origin FROM ops.files")["origin"]
    assert paths.str.startswith("pseudonymised-").all()
    assert names_left(warehouse.home) == []


def test_the_same_export_later_gives_the_same_ids_and_so_updates(tmp_path: Path) -> None:
    warehouse, path = Warehouse(home=tmp_path / "home"), tmp_path / "results.csv"
    path.write_text(RESULTS)
    ingest(warehouse, NODES, land(warehouse, NODES, path))
    path.write_text(RESULTS.replace("e9,m1,cpu-x,speed,9", "e9,m1,cpu-x,speed,90"))
    ingest(warehouse, NODES, land(warehouse, NODES, path))
    assert fetch(warehouse, "SELECT count(*) AS n FROM nodes.executions")["n"].to_list() == [9]


def test_a_look_leaves_no_key_behind(tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    asked = jobs.Intake("s", "", JobsRead(pseudonymise=True), GroupParams())
    assert jobs.preview_log(tmp_path / "home", str(tmp_path / "log.csv"), asked).n_kept == 9
    assert not (tmp_path / "home").exists()


def test_what_is_quoted_is_left_out_whatever_quotes_it_holds() -> None:
    for value in ("ada", "O'Brien", 'a "b" c', "x'y\"z"):
        assert value not in without_quotes(f"column {value!r} twice").removeprefix("column").removesuffix("twice")
    with quoting_nothing():
        assert quoted(["ada", "bob"]) == "'…'"
    assert quoted(["ada", "bob"]) == "'ada', 'bob'" and quoted([*"abc"], most=2) == "'a', 'b' and 1 more"


def test_without_the_key_nobody_can_try_out_names() -> None:
    ours, theirs = (pseudonym("ada", HOST, key) for key in (b"a" * 32, b"b" * 32))
    assert ours != theirs
    assert ours == pseudonym("ada", HOST, b"a" * 32)
    assert ours != pseudonym("ada", "user", b"a" * 32)  # a host and a user of one name
