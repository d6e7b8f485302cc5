"""The page about workloads: an answer for any source, nothing from a file taken as markup, no request to anywhere."""

import re
import shutil
import subprocess
from datetime import datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.report.workloads_artifact import workloads_artifact
from tasks.report.workloads_page import render_workloads
from tasks.report.workloads_run_figures import AskedRuns, write_run_figures
from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

NOON = datetime(2026, 3, 1, 12)
COUNTERS = ("cpu.user_cores", "disk.written_bytes", "net.sent_bytes", "own.cpu.user_cores")
HOSTILE = "<script>alert('x')</script> | [link](http://example.org)"
FIGURES = {"held_out.accuracy": 0.987, "held_out.macro_f1": 0.98, "held_out.n": 7.0, "held_out.n_new": None}


@pytest.fixture
def home(migrated, tmp_path):
    """An empty warehouse of this test."""
    warehouse = Warehouse(home=tmp_path / "home", memory_mb=256, threads=1)
    warehouse.home.mkdir()
    shutil.copy(migrated, warehouse.file)
    return warehouse


@pytest.fixture
def put_rows(home):
    """A function that puts rows into tables of the warehouse, all of one source, and returns it."""

    def put(source="box", **tables):
        with writing(home) as connection, transaction(connection):
            for name, rows in tables.items():
                new_rows = pd.DataFrame(rows).assign(source=source)
                connection.register("new_rows", new_rows)
                schema = "ops" if name in ("files", "alarms", "quarantine") else "workloads"
                connection.execute(f"INSERT INTO {schema}.{name} BY NAME SELECT * FROM new_rows").fetchall()
                connection.unregister("new_rows")
        return home

    return put


def telemetry(*, n_runs=6, simulated=False, name="redis", n_samples=30):
    """Rows of files, runs, counters: runs in turn of two workloads, each with two inputs."""
    rng = np.random.default_rng(1)
    runs, counters = [], []
    for number in range(n_runs):
        run_id = f"round-{number % 3}/{number:03}"
        workload = name if number % 2 else "nginx"
        runs.append(
            {
                "run_id": run_id, "workload": workload, "input": f"input {number % 4 // 2}", "round": str(number % 3),
                "machine": "box", "started_at": NOON + pd.Timedelta(number, "min"), "interval_s": 1.0,
                "n_samples": n_samples, "duration_s": float(n_samples), "n_rows": n_samples, "n_missed": 1,
                "n_resets": 0, "is_resampled": False, "refused_columns": [],
                "at_s": np.arange(float(n_samples)).tolist(), "is_simulated": simulated, "batch_id": "batch",
            }
        )  # fmt: skip
        for at, counter in enumerate(COUNTERS):
            level = np.where(np.arange(n_samples) < 9 + number, 1.0, 5.0 + at) * (1 + number % 2)
            samples = [float(value) for value in level + rng.normal(0, 0.1, n_samples)]
            samples[4] = None
            counters.append(
                {
                    "run_id": run_id, "counter": counter, "unit": "B", "kind": "software", "is_rate": True,
                    "scope": "machine", "is_constant": False, "running_pct": None, "samples": samples,
                    "batch_id": "batch",
                }
            )  # fmt: skip
    file = {
        "batch_id": "batch", "word": "workloads", "reader": "wide", "reader_version": "1", "options": "{}",
        "origin": "/in/part-1.parquet", "origin_sha256": "0", "ordered_at": NOON, "n_read": n_runs * n_samples,
        "n_kept": n_runs * n_samples, "n_quarantined": 0, "landed_at": NOON,
    }  # fmt: skip
    return {"files": [file], "runs": runs, "counters": counters}


def fingerprints(runs):
    """Rows of phases and run_phases: each counter changes once, at a sample of its own."""
    phases, whole = [], []
    for number, run in enumerate(runs):
        middle, end = 9 + number, run["n_samples"]
        for at, counter in enumerate(COUNTERS):
            for phase, (start, stop, level) in enumerate(((0, middle, -2.0), (middle, end, 2.0 + at + number % 2)), 1):
                phases.append(
                    {
                        "run_id": run["run_id"], "key": "k", "counter": counter, "phase": phase, "start_sample": start,
                        "end_sample": stop, "probability": 0.97 if phase == 2 else None, "mean": level, "median": level,
                        "variance": 0.1, "adf": -3.0 if stop - start >= 20 else None, "q10": level, "q25": level,
                        "q75": level, "q90": level,
                    }
                )  # fmt: skip
        edges = (0, middle, end) if number % 3 else (0, middle // 2, middle, end)
        for phase, (start, stop) in enumerate(pairwise(edges), 1):
            whole.append(
                {"run_id": run["run_id"], "key": "k", "phase": phase, "start_sample": start, "end_sample": stop}
            )
    return {"phases": phases, "run_phases": whole}


def identified(runs, *, reason="cpu.user_cores in phase 2 matches best: 5.1 against 5.0"):
    """Rows of identifications, confusions and figures of a model."""
    rows = [
        {
            "run_id": run["run_id"], "model_id": "m1", "identified_at": NOON + pd.Timedelta(number, "h"),
            "workload": run["workload"] if number else None, "is_known": bool(number), "confidence": 0.9712,
            "unknown_score": 0.03, "nearest": run["workload"], "nearest_distance": 1.2, "reasons": [reason, "second"],
            "proxy": None if number else "redis",
        }
        for number, run in enumerate(runs)
    ]  # fmt: skip
    confusions = [
        {"model_id": "m1", "workload": "redis", "identified_as": "redis", "n_runs": 9},
        {"model_id": "m1", "workload": "nginx", "identified_as": "", "n_runs": 1},
    ]
    figures = [
        {"model_id": "m1", "key": key, "value": value, "reason": None if value is not None else "all were learned from"}
        for key, value in FIGURES.items()
    ]
    return {"identifications": rows, "confusions": confusions, "model_figures": figures}


def page_of(warehouse, source="box"):
    return render_workloads(warehouse, source).read_text()


@pytest.fixture
def filled(put_rows):
    """A warehouse with everything that the page shows."""
    rows = telemetry()
    alarm = {
        "alarm_id": "a1", "word": "workloads", "kind": "unknown", "subject": "box",
        "message": "box runs what is unknown", "evidence": "{}", "raised_at": NOON, "announced_at": pd.NaT,
    }  # fmt: skip
    evaluation = [
        {"key": "known.accuracy.random.trees", "value": 0.93, "reason": None},
        {"key": "unknown.auroc", "value": 0.9123, "reason": None},
    ]
    told = [one | {"data_version": "000000000000", "evaluated_at": NOON} for one in evaluation]
    return put_rows(
        **rows, **fingerprints(rows["runs"]), **identified(rows["runs"]), alarms=[alarm], evaluation_figures=told
    )


def test_the_page_asks_for_nothing_outside_itself(filled, tags_of):
    page = page_of(filled)
    tags = tags_of(page)
    assert tags.open == []
    assert [address for address in tags.addresses if not address.startswith(("#", "data:"))] == []
    assert "script" not in tags.names
    assert not re.findall(r"url\((?!#)", page)
    assert "default-src 'none'" in page
    ids = re.findall(r'<clipPath id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_page_says_what_ran_what_it_was_called_and_why(filled, words_of):
    words = words_of(page_of(filled))
    assert "6 runs of 2 workloads" in words
    assert "3 min of telemetry" in words
    assert "redis input 0" in words
    assert "unknown, most like nginx proxy: redis" in words
    assert "97.1 %" in words
    assert "cpu.user_cores in phase 2 matches best: 5.1 against 5.0 second" in words
    assert "box runs what is unknown 2026-03-01 12:00" in words
    assert "98.7 % of 7 held-out runs called right by the model" in words
    assert "part-1.parquet wide 180 180 0 No row is in quarantine" in words
    assert "random runs boosted trees on phases 93.0 %" in words
    assert "evaluation of data version 000000000000, not of the files of now · model m1" in words
    assert "held-out runs called right by the model 98.7 %" in words
    assert "held-out runs of workloads that it has never seen all were learned from" in words


def test_every_figure_is_there_with_its_n_and_data_version(filled):
    page = page_of(filled)
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 5
    assert all(re.match(r"n = [\d,]+ ", caption) and "data version" in caption for caption in captions)
    assert "n = 30 samples of one run; 4 of 4 counters" in captions[0]
    assert "n = 2 runs; 4 of 4 counters" in captions[1]
    assert "n = 48 phases of all counters" in captions[4]


def test_the_run_identified_last_is_shown_beside_another_of_its_workload(filled, words_of):
    page = page_of(filled)
    assert "redis · input 0 (round-2/005)" in page  # identified last
    assert "upper strip: redis" in page
    assert "lower strip: redis" in page


def test_the_same_rows_give_the_same_page(filled):
    assert page_of(filled) == page_of(filled)


def test_a_source_without_fingerprints_says_how_to_make_them(put_rows, words_of):
    words = words_of(page_of(put_rows(**telemetry())))
    assert "No run has been cut into phases yet: whorl workloads fingerprint --source box does." in words
    assert (
        "No run of this source was identified yet. whorl workloads identify --source box says what a run was." in words
    )
    assert "Nothing that ran has raised an alarm" in words
    assert words.count("No run has been cut into phases yet.") == 3
    assert "There are no two runs with phases to compare." in words


def test_a_single_run_without_a_label_is_a_page_too(put_rows, words_of):
    rows = telemetry(n_runs=1)
    rows["runs"] = [run | {"workload": None, "input": None, "round": None, "machine": None} for run in rows["runs"]]
    words = words_of(page_of(put_rows(**rows, **fingerprints(rows["runs"]))))
    assert "runs of 0 workloads, 1 without a label" in words
    assert "no label – 1 – – 30 s 4 3" in words


def test_simulated_runs_are_called_simulated_and_never_mixed(put_rows, words_of):
    warehouse = put_rows("drawn", **telemetry(simulated=True))
    assert "these runs were drawn, not measured" in words_of(page_of(warehouse, "drawn"))
    mixed = telemetry(n_runs=2)
    mixed["runs"][0]["is_simulated"] = True
    put_rows("mixed", runs=mixed["runs"])
    with pytest.raises(BadInput, match="1 simulated runs stand among 1 measured ones"):
        page_of(warehouse, "mixed")
    with pytest.raises(NotFound, match="source 'nobody' has no runs of workloads"):
        page_of(warehouse, "nobody")


def test_nothing_from_a_file_is_taken_as_markup(put_rows, tags_of):
    rows = telemetry(name=HOSTILE)
    warehouse = put_rows(**rows, **fingerprints(rows["runs"]), **identified(rows["runs"], reason=HOSTILE))
    page = page_of(warehouse)
    assert tags_of(page).names.isdisjoint({"script", "b", "img", "i", "u"})
    assert "&lt;script&gt;" in page
    artifact = workloads_artifact(warehouse, "box")
    assert "<script" not in artifact
    assert "\\[link\\]\\(http" in artifact


def test_the_artifact_holds_its_figures_and_stays_small(filled):
    artifact = workloads_artifact(filled, "box")
    pictures = re.findall(r"!\[[^\]]+\]\(data:image/png;base64,([A-Za-z0-9+/=]+)\)", artifact)
    assert len(pictures) == 5
    assert all(len(picture) * 3 / 4 < 100_000 for picture in pictures)
    assert "| round-2/005 | redis | 97.1 % |" in artifact
    assert artifact.count("data version") == 5


def test_figures_of_runs_are_a_page_and_images(filled, tmp_path, words_of):
    asked = AskedRuns("box", ["round-0/000", "round-1/001"], ["disk.written_bytes"], 5, "whorl report workloads …")
    page, *images = write_run_figures(filled, asked, tmp_path / "out")
    assert [path.name for path in images] == ["series-1.png", "series-2.png", "phases.png", "alignment-1.png"]
    words = words_of(page.read_text())
    assert "n = 30 samples of one run; 1 of 4 counters" in words
    assert "made again by whorl report workloads …" in words
    with pytest.raises(NotFound, match=r"run 'round-9/009' of source 'box': not there, or not cut into phases yet"):
        write_run_figures(filled, AskedRuns("box", ["round-9/009"], [], 5, ""), tmp_path)
    with pytest.raises(NotFound, match=r"run 'round-0/000' has no counter 'gpu.busy'"):
        write_run_figures(filled, AskedRuns("box", ["round-0/000"], ["gpu.busy"], 5, ""), tmp_path)


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("chromium") is None, reason="needs chromium (apt-get install chromium)")
def test_a_browser_finds_no_fault_and_asks_nobody(filled, tmp_path):
    path = render_workloads(filled, "box")
    quiet = "headless no-sandbox disable-gpu disable-quic no-first-run disable-background-networking"
    quiet += " disable-component-update disable-sync enable-logging=stderr dump-dom"
    command = ["chromium", *(f"--{flag}" for flag in quiet.split()), f"--user-data-dir={tmp_path / 'browser'}"]
    found = subprocess.run([*command, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)
    assert "Runs by workload and input" in found.stdout
    assert [line for line in found.stderr.splitlines() if "CONSOLE" in line] == []
