"""The site: what it writes, and how its pages behave in a browser, wide and narrow, light and dark."""

import json
import re
import shutil
import zlib
from pathlib import Path

import pytest

from flows.cli import run
from flows.engine.serving import metrics_text
from tasks.errors import NotFound
from tasks.jobs.params import SummaryParams
from tasks.jobs.summary import summarise
from tasks.quantities import plain
from tasks.report.result import Result, as_markdown
from tasks.report.site import (
    SiteParams,
    item_address,
    part_of,
    read_result,
    result_of,
    write_advice,
    write_index,
    write_site,
    write_source,
)
from tasks.warehouse.connection import reading, writing
from tasks.warehouse.place import Warehouse
from tests.report.browser import CHROMIUM, CONTRAST, WIDE, browsing
from tests.report.pictures import write_pictures
from tests.report.rows import HOSTILE, next_run

LEAST_CONTRAST = 4.5  # WCAG 2.1, AA
needs_chromium = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium (apt-get install chromium)")


@pytest.fixture(scope="module")
def home(tmp_path_factory, nodes_home, job_log_at, varied_runs, put, fill_workloads, fill_verdicts):
    """A home with all words, one job of it with a hostile name."""
    folder = tmp_path_factory.mktemp("site") / "home"
    put_jobs = job_log_at(folder)
    warehouse = Warehouse(home=folder, memory_mb=256, threads=1)
    shutil.copy(nodes_home / warehouse.file.name, warehouse.file)
    hostile = [{"runtime_s": 5.0 + at, "group_key": HOSTILE, "is_simulated": True} for at in range(5)]
    put_jobs(varied_runs)
    put_jobs(hostile)
    summarise(warehouse, "log", SummaryParams())
    with reading(warehouse) as connection:
        keys = [row[0] for row in connection.execute("SELECT group_key FROM jobs.groups ORDER BY ALL").fetchall()]
    put(warehouse, predictions=[next_run(key, twice=0.01 * at, beyond=1.0) for at, key in enumerate(keys, 25)])
    fill_workloads(warehouse)
    fill_verdicts(warehouse)
    write_advice(warehouse, "advice-story", Result("A machine type", "Take the small one.", state="good"))
    write_site(warehouse)
    return warehouse


@pytest.fixture
def copy(home, warehouse_in, tmp_path):
    """A copy of it that a test may change."""
    return warehouse_in(tmp_path / "home", home.home)


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    with browsing(tmp_path_factory.mktemp("profile")) as found:
        yield found


def described(home, name):
    page = (home.home / "reports" / name).read_text()
    return json.loads(re.search(r'<script type="application/json" id="data">(.*?)</script>', page, re.DOTALL).group(1))


def test_the_index_has_a_verdict_a_word_and_what_is_missing(home):
    found = described(home, "index.html")
    assert [card["title"].split(" ")[0] for card in found["cards"]] == ["Jobs", "Workloads", "Nodes", "Advice"]
    assert found["cards"][2]["answer"] == "Leave out node-3 (disk): its degradation is confirmed."
    assert found["cards"][3]["answer"] == "Take the small one."
    assert found["answer"] == "Look at jobs and workloads and nodes."
    missing = next(part for part in found["sections"] if part["title"] == "What is missing or stale")
    assert "whorl jobs characterise --source log" in [row[-1] for row in missing["tables"][0]["rows"]]


def test_every_page_and_every_item_is_written(home):
    names = {path.name for path in (home.home / "reports").glob("*.html")}
    assert names == {
        *("index.html", "advice-story.html", "jobs-log.html", "jobs-log-job.html", "nodes-log.html"),
        *("nodes-log-node.html", "workloads-box.html", "workloads-box-workload.html"),
    }
    parts = "".join(path.read_text() for path in (home.home / "reports" / "data").rglob("*.js"))
    for name in ("node-1", "redis", "job 3"):
        assert name in parts


def test_equal_numbers_print_equally_on_all_pages(home):
    page, index = described(home, "jobs-log.html"), described(home, "index.html")
    told = {fact["key"]: fact["text"] for fact in page["facts"]}
    first = index["cards"][0]["fact"]
    assert told[first["key"]] == first["text"]


ASKED = {  # the verb that says the same as the page, and where its JSON has what a fact of the page is
    "jobs-log": (
        ("jobs", "summary", "--source", "log"),
        {f"jobs.{key}": lambda told, key=key: told[key] for key in (
            *("n_finished", "n_supported_groups", "median_cov"),
            *("outlier_share_ratio", "outlier_share_delta", "excess_s"))},
    ),
    "nodes-log": (
        ("nodes", "summary", "--source", "log"),
        {"nodes.n_nodes": lambda told: len(told["nodes"]),
         "nodes.n_executions": lambda told: sum(one["n_executions"] for one in told["nodes"])},
    ),
    "workloads-box": (
        ("query", "SELECT count(*) AS n FROM workloads.runs"),
        {"workloads.n_runs": lambda told: told["rows"][0]["n"]},
    ),
}  # fmt: skip


@pytest.mark.parametrize("page", ASKED)
def test_one_question_has_one_number_on_the_page_in_the_terminal_in_json_and_in_the_artifact(
    home, monkeypatch, capsys, page
):
    verb, measures = ASKED[page]
    monkeypatch.setenv("WHORL_HOME", str(home.home))
    capsys.readouterr()
    assert run([*verb, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert run(list(verb)) == 0
    terminal = capsys.readouterr().out
    with reading(home) as connection:
        result, _ = result_of(connection, page.split("-")[0], page.split("-")[1], SiteParams())
    shown = {fact["key"]: fact["text"] for fact in described(home, f"{page}.html")["facts"]}
    described_as = {fact.key: fact for fact in result.facts}
    artifact = as_markdown(result)
    for key, read in measures.items():
        text = described_as[key].show(read(told))
        assert shown[key] == text, key
        assert f"- {plain(text)} " in artifact, key
        if key not in ("nodes.n_nodes", "nodes.n_executions"):  # the terminal has a row a node
            assert text in terminal, key


def test_an_item_stands_in_the_part_that_the_page_looks_in():
    assert part_of("", 7) == 0x811C9DC5 % 7
    assert part_of("a", 2**32) == 0xE40C292C  # FNV-1a, as published
    assert item_address("jobs", "log", "a b/ü") == "jobs-log-job.html#a%20b%2F%C3%BC"


def test_pages_of_a_source_that_is_gone_leave_the_site_and_nothing_that_whorl_did_not_write(copy, tmp_path):
    reports = copy.home / "reports"
    (reports / "jobs-log-notes.html").write_text("mine")
    mine = reports / "data" / "jobs-log" / "mine.js"
    mine.write_text("mine")
    outside = tmp_path / "outside.html"
    outside.write_text("mine")
    verdict = reports / "data" / "verdicts" / "nodes-log.json"
    verdict.write_text(
        json.dumps(json.loads(verdict.read_text()) | {"files": ["nodes-log.html", "../../outside.html"]})
    )
    with writing(copy) as connection:
        connection.execute("DELETE FROM ops.files WHERE word IN ('jobs', 'nodes')").fetchall()
    write_index(copy)
    left = {path.name for path in reports.glob("*.html")}
    assert {"jobs-log.html", "jobs-log-job.html", "nodes-log.html"}.isdisjoint(left)
    assert {"index.html", "workloads-box.html", "advice-story.html", "jobs-log-notes.html"} <= left
    assert [path.name for path in (reports / "data" / "jobs-log").iterdir()] == ["mine.js"]
    assert outside.exists()


def test_an_item_that_is_gone_leaves_no_part_behind(copy):
    verdict = copy.home / "reports" / "data" / "verdicts" / "workloads-box.json"
    old = copy.home / "reports" / "data" / "workloads-box" / "499.js"
    old.write_text("whorlPart(499,{});")
    found = json.loads(verdict.read_text())
    verdict.write_text(json.dumps(found | {"files": [*found["files"], "data/workloads-box/499.js"]}))
    write_source(copy, "workloads", "box")
    assert not old.exists()
    assert json.loads(verdict.read_text())["files"] == found["files"]


def test_what_a_page_was_just_written_of_is_read_again_only_after_a_change(copy):
    write_source(copy, "workloads", "box")
    first = read_result(copy, "workloads", "box", SiteParams())
    assert first is read_result(copy, "workloads", "box", SiteParams())
    with writing(copy) as connection:
        connection.execute("UPDATE workloads.runs SET machine = 'another'")
    assert first is not read_result(copy, "workloads", "box", SiteParams())


def test_the_index_keeps_what_a_page_said_before(copy):
    write_advice(copy, "advice-story", Result("A machine type", "Take the large one.", state="good"))
    write_advice(copy, "advice-story", Result("A machine type", "Take the large one.", state="good"))
    part = next(one for one in described(copy, "index.html")["sections"] if one["title"].startswith("All pages"))
    [row] = [row for row in part["tables"][0]["rows"] if row[0][0] == "A machine type"]
    assert row[1] == "Take the large one." and row[3] == "Take the small one."


def test_a_source_without_anything_is_refused_and_no_page_is_left(home):
    with pytest.raises(NotFound):
        write_source(home, "nodes", "other")
    assert not (home.home / "reports" / "nodes-other.html").exists()


def test_metrics_are_those_of_the_warehouse(home, tmp_path):
    text = metrics_text(home).decode()
    assert 'whorl_node_state{aspect="disk",node="node-3",source="log"} 3.0' in text
    assert re.search(r'whorl_workloads_unknown_ratio\{source="box"\} 0\.16', text)
    assert "whorl_job_twice_usual_ratio" in text
    assert 'whorl_data_age_seconds{source="box",word="workloads"}' in text
    assert metrics_text(Warehouse(home=tmp_path)).decode().endswith("whorl_up 0.0\n")


IDENTIFIED_ANEW = """INSERT INTO workloads.identifications SELECT * REPLACE (
    'a later model' AS model_id, identified_at + INTERVAL 1 HOUR AS identified_at, false AS is_known, NULL AS workload
) FROM workloads.identifications"""


def test_of_runs_that_were_identified_again_the_last_answer_counts_in_metrics(copy):
    with writing(copy) as connection:
        connection.execute(IDENTIFIED_ANEW)
    assert 'whorl_workloads_unknown_ratio{source="box"} 1.0' in metrics_text(copy).decode()


def test_the_site_is_small(home):
    files = [path for path in (home.home / "reports").rglob("*") if path.is_file() and path.name != "vega.js"]
    packed = sum(len(zlib.compress(path.read_bytes())) for path in files)
    assert packed < 1_000_000


PAGES = [
    ("index.html", 0),
    ("jobs-log.html", 2),
    ("jobs-log-job.html", 1),
    ("nodes-log.html", 1),
    ("nodes-log-node.html#node-3", 1),
    ("workloads-box.html", 3),
    ("workloads-box-workload.html#redis", 1),
    ("advice-story.html", 0),
]


@pytest.mark.parametrize(("mode", "kept"), [(None, 0o700), (0o755, 0o700), (0o750, 0o750)])
def test_the_pages_name_people_and_are_for_the_owner_and_whom_the_owner_lets_in(copy, mode, kept):
    shutil.rmtree(copy.home / "reports")
    if mode is not None:
        (copy.home / "reports").mkdir(mode)
    write_index(copy)
    assert (copy.home / "reports").stat().st_mode & 0o777 == kept


@needs_chromium
@pytest.mark.parametrize(("name", "n_charts"), PAGES)
def test_a_page_is_whole_wide_and_narrow_light_and_dark(home, browser, name, n_charts):
    if name.startswith("jobs-log-job"):
        with reading(home) as connection:
            [key] = connection.execute("SELECT group_key FROM jobs.groups WHERE group_key LIKE '%script%'").fetchone()
        name = item_address("jobs", "log", key)
    address = f"{(home.home / 'reports').as_uri()}/{name}"
    for width, scheme in ((1280, "light"), (400, "dark")):
        browser.open(address, width=width, scheme=scheme)
        if "#" in name:
            browser.until("document.querySelector('.answer') !== null")
        assert browser.draw_all() >= n_charts
        assert browser.evaluate(WIDE) <= 0, (name, width)
        assert browser.evaluate(CONTRAST)[0] >= LEAST_CONTRAST, browser.evaluate(CONTRAST)
        assert browser.logged == []
        assert [one for one in browser.asked if not one.startswith(("file:", "data:", "about:"))] == []
        assert browser.evaluate("document.querySelectorAll('.chart svg:not([aria-label])').length") == 0
        assert browser.evaluate("[...document.querySelectorAll('main script, main img')].length") == 0
        hrefs = browser.evaluate("[...document.querySelectorAll('a[href]')].map((a) => a.getAttribute('href'))")
        for href in {href.split("#")[0] for href in hrefs} - {""}:
            assert (home.home / "reports" / href).is_file(), href


@needs_chromium
def test_a_sentence_in_a_list_has_room_on_a_phone(home, browser):
    browser.open(f"{(home.home / 'reports').as_uri()}/jobs-log.html", width=400)
    width = browser.evaluate(
        "(() => { const e = document.querySelector('#list tbody td:first-child'); e.className = 'long';"
        " e.textContent = 'the run took longer than was expected '.repeat(5);"
        " return e.getBoundingClientRect().width; })()"
    )
    assert width >= browser.evaluate("innerWidth") / 2


@needs_chromium
def test_a_list_is_searched_sorted_and_kept_in_its_address(home, browser):
    address = f"{(home.home / 'reports').as_uri()}/jobs-log.html"
    first = "document.querySelector('#list tbody tr td').textContent"
    browser.open(f"{address}#list?sort=n_finished")
    assert "script" in browser.evaluate(first)  # the job of the fewest runs
    browser.evaluate("document.querySelector('#list th:first-child button').click()")
    assert browser.evaluate("document.querySelector('#list th').getAttribute('aria-sort')") == "ascending"
    assert "sort=group_key" in browser.evaluate("location.hash")
    browser.evaluate(
        "(() => { const e = document.querySelector('#list input'); e.value = 'job 3';"
        " e.dispatchEvent(new Event('input')); })()"
    )
    assert browser.evaluate("document.querySelectorAll('#list tbody tr').length") == 1
    browser.open(f"{address}#list?q=nothing+has+this+name")
    assert browser.evaluate("document.querySelector('#list [role=status]').textContent") == "nothing fits"


@needs_chromium
def test_a_name_is_found_from_every_page_and_leads_to_its_own(home, browser):
    browser.open(f"{(home.home / 'reports').as_uri()}/index.html")
    find = "(() => {{ const e = document.querySelector('.find input'); e.focus(); e.value = '{}'; e.dispatchEvent(new Event('input')); }})()"  # noqa: E501
    browser.evaluate(find.format("NODE-3"))
    browser.until("document.querySelector('.hits a') !== null")
    assert browser.evaluate("[...document.querySelectorAll('.hits a')].map((a) => a.getAttribute('href'))") == [
        "nodes-log-node.html#node-3"
    ]
    browser.evaluate(find.format("no such name"))
    assert browser.evaluate("document.querySelector('.hits').textContent") == "nothing has this name"


@needs_chromium
def test_a_command_is_copied_or_marked(home, browser):
    browser.open(f"{(home.home / 'reports').as_uri()}/index.html")
    browser.evaluate("document.querySelector('#what-is-missing-or-stale .command').click()")
    browser.until("document.querySelector('#what-is-missing-or-stale .command').dataset.told !== undefined")
    assert browser.logged == []


@needs_chromium
def test_a_mark_that_is_chosen_searches_the_lists_for_what_it_is_of(home, browser):
    browser.open(f"{(home.home / 'reports').as_uri()}/nodes-log.html")
    browser.until("document.querySelector('#how-good-each-node-is .chart svg') !== null")
    browser.evaluate(
        "document.querySelector('#how-good-each-node-is .chart .mark-symbol path')"
        ".dispatchEvent(new MouseEvent('click', {bubbles: true}))"
    )
    assert browser.evaluate("document.querySelector('#list input').value") == "node-2"  # the first of the ranking
    assert browser.evaluate("document.querySelectorAll('#list tbody tr').length") == 1


@needs_chromium
def test_pictures_are_of_the_index_and_of_the_ranking_of_nodes(home, tmp_path):
    written = write_pictures(home.home / "reports", tmp_path)
    assert [path.name for path in written] == ["index.png", "nodes.png"]
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in written)


@needs_chromium
def test_a_list_is_downloaded_with_whole_numbers_and_no_formula(home, browser, tmp_path):
    browser.open(f"{(home.home / 'reports').as_uri()}/jobs-log.html")
    browser.call("Browser.setDownloadBehavior", behavior="allow", downloadPath=str(tmp_path))
    browser.evaluate("document.querySelector('#list .csv').click()")
    path = Path(tmp_path, "list.csv")
    browser.until(f"new Promise((r) => setTimeout(() => r(true), 300)) && {str(path.exists()).lower()} || true")
    for _ in range(50):
        if path.exists() and path.stat().st_size:
            break
        browser.evaluate("new Promise((r) => setTimeout(r, 100))")
    lines = path.read_text().splitlines()
    assert lines[0].startswith("group_key,exceeds_2x_share,median_s")
    assert any("0.25" in line for line in lines)


@needs_chromium
def test_a_hostile_name_stays_text_and_a_missing_item_is_told(home, browser):
    reports = (home.home / "reports").as_uri()
    browser.open(f"{reports}/jobs-log.html#list?q=script")
    assert "<script>alert('x')</script>" in browser.evaluate("document.querySelector('#list tbody').textContent")
    browser.evaluate("document.querySelector('#list tbody a').click()")
    browser.until("document.querySelector('h1') && document.querySelector('h1').textContent.includes('<script>')")
    browser.open(f"{reports}/nodes-log-node.html#nobody")
    browser.until("document.querySelector('h1').textContent.startsWith('nobody: not in this report')")
    assert browser.logged == [] or all("Failed to load" in line for line in browser.logged)
