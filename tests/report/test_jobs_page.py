"""The page about jobs: an answer for any log, nothing from a log taken as markup, no request to anywhere."""

import re
import shutil
import subprocess

import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import (
    ReportParams,
    SummaryParams,
)
from tasks.jobs.summary import summarise
from tasks.report.jobs_artifact import summary_artifact
from tasks.report.jobs_page import render_report
from tasks.report.page import file_slug
from tasks.warehouse.alarms import Alarm, raise_alarms
from tasks.warehouse.connection import writing

PARAMS = ReportParams()
HOSTILE = "<script>alert('x')</script> | [link](http://example.org) `code` $x$"


def page_of(warehouse, source="log", params=PARAMS):
    return render_report(warehouse, source, params).read_text()


@pytest.fixture(scope="module")
def page(job_log_at, varied_runs, tmp_path_factory):
    warehouse = job_log_at(tmp_path_factory.mktemp("page") / "home")(varied_runs)
    summarise(warehouse, "log", SummaryParams())
    return page_of(warehouse)


def test_the_page_asks_for_nothing_outside_itself(page, tags_of):
    tags = tags_of(page)
    assert tags.open == []
    assert [address for address in tags.addresses if not address.startswith(("#", "data:"))] == []
    assert "script" not in tags.names
    assert not re.findall(r"url\((?!#)", page)
    assert "default-src 'none'" in page


def test_every_table_and_figure_names_its_data_version_and_every_figure_its_n(page):
    version = re.search(r"data version ([0-9a-f]{12})", page).group(1)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 3
    assert all(re.search(r"n = [\d,]+ ", caption) and version in caption for caption in captions)
    assert page.count(version) >= 8


def test_ids_of_the_drawings_do_not_meet(page):
    ids = re.findall(r'<clipPath id="([^"]+)"', page)
    assert len(ids) == len(set(ids)) > 3


def test_the_same_rows_give_the_same_page(summarised, varied_runs, page):
    assert page_of(summarised(varied_runs)) == page


def test_nothing_from_a_log_is_taken_as_markup(summarised, job_log, tags_of):
    warehouse = summarised(
        [{"runtime_s": x, "group_key": HOSTILE, "run_id": f"<b>{i}"} for i, x in enumerate([10.0] * 6 + [500.0] * 2)]
    )
    with writing(warehouse) as connection:
        raise_alarms(connection, [Alarm("jobs", "log", "slow-run", "<b>7", f"{HOSTILE}: run <b>7 took 8 min", {})])
        connection.execute("UPDATE ops.files SET origin = '/in/<img src=x>.csv'").fetchall()
        connection.execute(
            "INSERT INTO ops.quarantine SELECT batch_id, word, source, 3, '<i>broken</i>', '<u>' FROM ops.files"
        ).fetchall()
    page = page_of(warehouse)
    tags = tags_of(page)
    assert tags.names.isdisjoint({"script", "b", "img", "i", "u"})
    assert "&lt;script&gt;" in page
    assert "&lt;img src=x&gt;.csv" in page
    artifact = summary_artifact(warehouse, "log", PARAMS)
    assert "<script" not in artifact
    assert "\\[link\\]\\(http" in artifact
    assert "\\|" in artifact


def test_the_source_names_the_file_and_cannot_leave_the_folder(summarised):
    warehouse = summarised([{"runtime_s": 1.0}], source="../../etc/passwd")
    path = render_report(warehouse, "../../etc/passwd", PARAMS)
    assert path.parent == warehouse.home / "reports"
    assert file_slug("jobs-nasa_1.2") == "jobs-nasa_1.2"
    assert file_slug("a/b") != file_slug("a b")


def test_no_half_page_and_no_draft_is_left(summarised):
    warehouse = summarised([{"runtime_s": 1.0}])
    render_report(warehouse, "log", PARAMS)
    assert [path.name for path in (warehouse.home / "reports").iterdir()] == ["jobs-log.html"]


def test_a_log_of_one_run_says_what_cannot_be_said(summarised, words_of):
    words = words_of(page_of(summarised([{"runtime_s": 1.0}])))
    assert "No job has 3 finished runs, so there is no variation to report." in words
    assert "No job has 3 finished runs and a runtime above 0, so there is no line to draw." in words
    assert "so there is no historic median to compare new runs with." in words
    assert "No job has 3 finished runs both in the historic part of the log and after it." in words


def test_a_log_without_recurring_jobs_says_so(summarised, words_of):
    words = words_of(page_of(summarised([{"runtime_s": 1.0, "group_key": f"job {i}"} for i in range(30)])))
    assert "0.0 % of the runs belong to a job that ran at least twice" in words
    assert "there is no variation to report" in words


def test_a_log_of_one_job_with_constant_runtimes_is_drawn(summarised, words_of):
    page = page_of(summarised([{"runtime_s": 5.0}] * 12))
    assert page.count("<figcaption>") == 3
    assert "so there is no rank correlation" in words_of(page)


def test_a_log_of_zero_runtimes_says_so(summarised, words_of):
    words = words_of(page_of(summarised([{"runtime_s": 0.0}] * 12)))
    assert "and a runtime above 0, so there is no line to draw." in words


def test_a_log_in_which_nothing_has_finished_is_a_page_too(summarised, words_of):
    import pandas as pd

    rows = pd.DataFrame({"runtime_s": [None] * 4, "status": ["running"] * 4}).astype({"runtime_s": "float64"})
    words = words_of(page_of(summarised(rows)))
    assert "0 finished runs, 0 failed, 4 go on" in words


def test_reasons_of_the_quarantine_are_counted_without_their_numbers(summarised, words_of):
    warehouse = summarised([{"runtime_s": 1.0}])
    with writing(warehouse) as connection:
        connection.execute(
            """INSERT INTO ops.quarantine SELECT batch_id, word, source, place, reason, '' FROM ops.files,
            (VALUES (9, 'run id a stands again in row 3, which counts'),
            (7, 'run id b stands again in row 4, which counts'),
            (5, '17 fields'), (4, '18 fields'), (3, 'negative runtime')) AS refused(place, reason)"""
        ).fetchall()
    words = words_of(page_of(warehouse))
    assert "a run id stands again in another row, which counts 2 batch-000.csv, row 7" in words
    assert "… fields 2 batch-000.csv, row 4" in words
    assert "n = 5 rows" in words


def test_alarms_are_shown_with_their_time(summarised, words_of):
    warehouse = summarised([{"runtime_s": 10.0}])
    assert "No run or job has raised an alarm in this source." in words_of(page_of(warehouse))
    with writing(warehouse) as connection:
        raise_alarms(
            connection, [Alarm("jobs", "log", "slow-run", "7", "it took long", {"ended_at": "2026-01-01T00:11:00Z"})]
        )
    words = words_of(page_of(warehouse))
    assert "The latest 1 of 1 alarms" in words
    assert "it took long 2026-01-01 00:11" in words


def test_simulated_runs_are_called_simulated(page, summarised, words_of):
    assert "these runs were drawn, not measured" in words_of(page)
    assert "these runs were drawn" not in words_of(page_of(summarised([{"runtime_s": 1.0}], source="real"), "real"))


def test_a_summary_older_than_its_files_is_called_so(summarised, job_log):
    warehouse = summarised([{"runtime_s": 1.0}])
    assert "after this summary was made" not in page_of(warehouse)
    job_log([{"runtime_s": 1.0}])
    assert "after this summary was made" in page_of(warehouse)


def test_a_source_without_summary_or_with_a_mixture_gets_no_page(job_log, summarised):
    warehouse = job_log([{"runtime_s": 1.0}])
    with pytest.raises(NotFound, match="has no summary yet"):
        render_report(warehouse, "log", PARAMS)
    warehouse = summarised([{"runtime_s": 1.0}], source="pure")
    job_log([{"runtime_s": 1.0, "is_simulated": True}], source="pure")
    with pytest.raises(BadInput, match="1 simulated runs stand among 1 measured ones"):
        render_report(warehouse, "pure", PARAMS)


def test_the_artifact_holds_its_figures_and_stays_small(summarised, varied_runs):
    artifact = summary_artifact(summarised(varied_runs), "log", PARAMS)
    pictures = re.findall(r"!\[[^\]]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)", artifact)
    assert len(pictures) == 3
    assert all(len(picture) * 3 / 4 < 100_000 for picture in pictures)
    assert artifact.count("data version") == 3
    assert "<" not in re.sub(r"< 0\.1 %", "", artifact)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (apt-get install chromium)")
def test_a_browser_finds_no_fault_and_asks_nobody(summarised, varied_runs, tmp_path):
    path = render_report(summarised(varied_runs), "log", PARAMS)
    quiet = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    quiet += " disable-component-update disable-sync enable-logging=stderr dump-dom"
    command = ["chromium", *(f"--{flag}" for flag in quiet.split()), f"--user-data-dir={tmp_path / 'browser'}"]
    found = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "Which jobs vary most" in found.stdout
    # the page's own policy forbids requests, so an attempted one stands on the console as well
    assert [line for line in found.stderr.splitlines() if "CONSOLE" in line] == []
