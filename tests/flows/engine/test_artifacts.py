"""What flows show: artifacts under stable keys, and alarms as events."""

import os
import re
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from flows.engine import artifacts
from flows.engine.artifacts import alarms_part, artifact_key, figures_part, ingest_part, page_line
from tasks.errors import BadInput
from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import summarise
from tasks.machine import write_server_file
from tasks.quantities import plain
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import writing
from tasks.warehouse.place import Warehouse


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        (("jobs", "main", "summary"), "jobs-main-summary"),
        (("jobs", "NASA iPSC/860", "summary"), r"jobs-nasa-ipsc-860-[0-9a-f]{8}-summary"),
        (("jobs", "∆∆∆", "alarms"), r"jobs-[0-9a-f]{8}-alarms"),
        (("jobs", "x" * 100, "alarms"), r"jobs-x{60}-[0-9a-f]{8}-alarms"),
    ],
)
def test_a_key_holds_only_what_prefect_allows(parts: tuple[str, ...], key: str) -> None:
    assert re.fullmatch(key, artifact_key(*parts))


def test_no_two_sources_share_a_report() -> None:
    sources = ["a/b", "A b", "a-b", "∆", "ø", "x" * 99, "x" * 100]
    assert len({artifact_key("jobs", source, "summary") for source in sources}) == len(sources)


def test_a_job_named_like_markup_stays_text() -> None:
    assert plain("<script>alert(1)</script>") == "&lt;script&gt;alert\\(1\\)&lt;/script&gt;"
    assert plain("a|b\nc") == "a\\|b c"
    assert plain("![x](http://evil)") == "\\!\\[x\\]\\(http://evil\\)"


def test_each_file_has_a_row_with_its_counts_and_refused_files_a_line() -> None:
    origin = SimpleNamespace(path="/logs/a|b.csv", reader="own")
    batch: Any = SimpleNamespace(
        origin=origin, batch_id="b1", tables={"runs": SimpleNamespace(n_rows=12345)}, n_quarantined=1,
        understood=["read `x` as name"],
    )  # fmt: skip
    refused = [BadInput("c.csv", "nothing in it", "rows")]
    part = ingest_part("Job logs of source night", [batch], {"runs": "run"}, refused)
    assert part.startswith("# Job logs of source night\n\n1 file, 12,345 runs and 1 row in quarantine.")
    assert "| /logs/a\\|b.csv | own | 12,345 | 1 | b1 |" in part
    assert "## What columns were taken for\n- /logs/a|b.csv: read" in part.replace("\\", "")
    assert "## Files that could not be read\n- c.csv: nothing in it; expected rows" in part


def test_new_alarms_are_counted_and_each_leads_to_the_page_of_what_it_is_of(warehouse: Warehouse) -> None:
    warehouse.home.mkdir()
    write_server_file(warehouse.home, "http://127.0.0.1:1/api", os.getpid(), pages="http://host:1")
    assert alarms_part("Slow runs", warehouse, [], "None.") == "# Slow runs\n\nNone."
    evidence = ({"node": "rack (2)"}, {})
    found = [Alarm("nodes", "log", "degrading", f"{i}", f"<b> {i}", told) for i, told in enumerate(evidence)]
    with writing(warehouse) as connection:
        ids = raise_alarms(connection, found, now=datetime(2026, 1, 29))
    part = alarms_part("States", warehouse, ids, "None.")
    assert "2 new alarms." in part
    assert "| [&lt;b&gt; 0](http://host:1/nodes-log-node.html#rack%20%282%29) | degrading | 2026-01-29 00:00 |" in part
    assert "| [&lt;b&gt; 1](http://host:1/nodes-log.html#alarms) |" in part


def test_the_page_of_an_artifact_is_where_the_site_is_served(warehouse: Warehouse) -> None:
    path = warehouse.home / "reports" / "jobs-my log.html"
    assert page_line(warehouse, "") == ""
    assert page_line(warehouse, str(path)).startswith("[The whole page](http://127.0.0.1:4280/jobs-my%20log.html), on")
    warehouse.home.mkdir(exist_ok=True)
    write_server_file(warehouse.home, "http://127.0.0.1:1/api", os.getpid(), pages="http://host:7")
    assert "(http://host:7/jobs-my%20log.html)" in page_line(warehouse, str(path))
    assert page_line(warehouse, "/elsewhere/page.html") == "On the worker's machine as a page: /elsewhere/page.html"


def test_a_figure_that_cannot_be_had_says_why() -> None:
    part = figures_part(
        {"n": 1234, "n.low": 1000, "n.high": 2000, "best": None, "best.reason": "no node", "report": "x"}
    )
    assert part.splitlines()[2:] == [r"| n | 1,234 \(1,000 to 2,000\) |", "| best | no node |"]


sent: list[dict[str, Any]] = []


@pytest.fixture(autouse=True)
def caught(monkeypatch: pytest.MonkeyPatch) -> None:
    sent.clear()
    monkeypatch.setattr(artifacts, "emit_event", lambda **event: sent.append(event))


def raised(warehouse: Warehouse, n_alarms: int) -> list[str]:
    found = [Alarm("jobs", "main", "slow-run", f"run {i}", f"run {i} was slow", {"n": i}) for i in range(n_alarms)]
    with writing(warehouse) as connection:
        return raise_alarms(connection, found, now=datetime(2026, 1, 1))


def test_an_alarm_is_an_event_of_its_word_with_message_and_evidence(warehouse: Warehouse) -> None:
    ids = raised(warehouse, 1)
    assert (artifacts.announce(warehouse, []), artifacts.announce(warehouse, ids)) == (0, 1)
    [event] = sent
    assert event["event"] == "whorl.jobs.alarm"
    assert event["payload"]["message"] == "run 0 was slow"
    assert event["payload"]["evidence"] == {"n": 0}
    assert event["payload"]["raised_at"] == "2026-01-01T00:00:00Z"
    assert event["payload"]["page"] == "http://127.0.0.1:4280/jobs-main.html#alarms"
    assert event["resource"]["prefect.resource.id"].startswith("whorl.alarm.")
    artifacts.announce(warehouse, ids)
    assert sent[1]["id"] == event["id"]  # announced again it is the same


def test_a_hundred_alarms_are_twenty_events_and_one_that_says_so(warehouse: Warehouse) -> None:
    assert artifacts.announce(warehouse, raised(warehouse, 100)) == 21
    assert len(sent) == 21
    assert sent[-1]["payload"]["message"].startswith("80 more alarms of source main")


def test_flows_of_a_block_leave_their_pages_to_its_end(job_log: Any) -> None:
    warehouse = job_log([{"runtime_s": 1.0}])
    with artifacts.pages_at_the_end(warehouse):
        paths = [Path(artifacts.write_report.fn(warehouse, "jobs", "log", after)) for after in ("one", "two")]
        summarise(warehouse, "log", SummaryParams())
        assert not paths[0].exists() and not list((warehouse.home / "reports").glob("*.html"))
    assert paths[0] == paths[1]
    assert paths[0].exists()
    assert (warehouse.home / "reports" / "index.html").exists()
    paths[0].unlink()
    assert artifacts.write_report.fn(warehouse, "jobs", "log", "three") == str(paths[0])
    assert paths[0].exists()
