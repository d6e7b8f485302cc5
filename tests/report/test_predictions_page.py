"""The page about predictions: each part with and without rows, nothing taken as markup, nothing written elsewhere."""

import json
import re
from pathlib import Path

import pandas as pd
import pytest

from flows.cli import run
from tasks.errors import BadInput, NotFound
from tasks.jobs.params import ReportParams
from tasks.report.predictions_data import fetch_predictions_data, has_predictions
from tasks.report.predictions_page import render_predictions
from tasks.warehouse.connection import reading, writing

HOSTILE = "<script>alert('x')</script> <img src=x> $x$"
MODEL = "runtime-1-a"
SHAPES = [
    {
        "shape": shape,
        "kind": kind,
        "n_groups": 4 + shape,
        "n_runs": 100,
        "outlier_percent": 1.0,
        "p25_p75": 0.1,
        "p95": 2.0,
        "std": 0.5,
        "centre": [0.1, 0.4 + 0.1 * shape, 0.4 - 0.1 * shape, 0.1],
        "bins_low": 0.0 if kind == "ratio" else -10.0,
        "bins_high": 10.0,
        "n_bins": 4,
        "inertia": 1.0,
        "min_support": 3,
        "data_version": "older",
        "parameters": "{}",
    }
    for kind in ("ratio", "delta")
    for shape in range(2)
]
CURVE = [
    {"kind": kind, "k": k, "inertia": 4.0 / k, "is_elbow": k == 2} for kind in ("ratio", "delta") for k in range(1, 5)
]
QUANTILES = {f"p{level:02}_s": float(level) for level in (5, 25, 50, 75, 90, 95, 99)}


def next_run(job, *, twice, beyond, n_before=10):
    at = pd.Timestamp("2026-01-02")
    known = {"group_key": job, "model_id": MODEL, "predicted_at": at, "last_at": at, "data_version": "older"}
    return {**known, "n_before": n_before, "usual_s": 50.0, "exceeds_2x_share": twice, "expected_excess_s": beyond} | {
        **QUANTILES,
        "shape_ratio": None,
    }


def figures(**values):
    return [{"model_id": MODEL, "key": key.replace("__", "."), "value": value} for key, value in values.items()]


def page_of(warehouse, source="log"):
    return render_predictions(warehouse, source).read_text()


@pytest.fixture
def log(job_log):
    return job_log([{"runtime_s": 10.0}] * 4)


@pytest.fixture
def full(log, put):
    """A source with shapes, predictions and figures, its jobs named by HOSTILE."""
    return put(
        log,
        shapes=SHAPES,
        shape_curve=CURVE,
        predictions=[next_run(HOSTILE, twice=0.5, beyond=1.0)],
        model_figures=figures(predict__n=30, predict__crps__model=1.5, predict__crps__history=2.5),
    )


def test_a_source_without_any_row_says_how_to_make_each_part(log, words_of):
    words = words_of(page_of(log))
    for verb in ("characterise", "train", "predict", "explain"):
        assert f"whorl jobs {verb} --source log" in words
    assert "the flow jobs-explain writes them" in words
    assert "whorl jobs whatif --source log --scenario no_spare" in words
    assert not has_predictions(log, "log")


def test_the_command_prints_the_second_page_only_if_there_is_something_on_it(log, monkeypatch, capsys, put):
    monkeypatch.setenv("WHORL_HOME", str(log.home))
    paths = [f"{log.home}/reports/jobs-log{name}.html" for name in ("", "-predictions")]
    assert (run(["report", "jobs"]), capsys.readouterr().out) == (0, f"{paths[0]}\n")
    assert run(["report", "jobs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"word": "jobs", "source": "log", "path": paths[0]}
    put(log, predictions=[next_run("job", twice=0.5, beyond=1.0)])
    assert (run(["report", "jobs"]), capsys.readouterr().out) == (0, "\n".join([*paths, ""]))
    assert run(["report", "jobs", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["predictions_path"] == paths[1]


def test_the_commands_of_the_page_quote_the_source(job_log):
    page = page_of(job_log([{"runtime_s": 1.0}], source="a b; rm"), "a b; rm")
    assert "whorl jobs train --source &#39;a b; rm&#39;" in page


def test_parts_with_rows_say_no_more_how_to_make_them(full, words_of):
    words = words_of(page_of(full))
    for told in ("has no shapes yet", "no trained model yet", "Nothing is predicted"):
        assert told not in words
    assert has_predictions(full, "log")


def test_nothing_from_a_log_is_taken_as_markup_and_nothing_is_fetched(full, tags_of):
    page = page_of(full)
    tags = tags_of(page)
    assert tags.open == []
    assert tags.names.isdisjoint({"script", "img"})
    assert [address for address in tags.addresses if not address.startswith(("#", "data:"))] == []
    assert page.count("&lt;script&gt;") >= 2


def test_nothing_is_written_but_one_page_in_the_folder_of_reports(job_log):
    source = "../../etc/passwd"
    warehouse = job_log([{"runtime_s": 1.0}], source=source)
    before = {file for file in warehouse.home.parent.rglob("*") if file.is_file()}
    path = render_predictions(warehouse, source)
    assert path.parent == warehouse.home / "reports"
    after = {file for file in warehouse.home.parent.rglob("*") if file.is_file()}
    assert {file for file in after - before if file.suffix != ".lock"} == {path}


def test_the_page_stands_beside_the_page_about_jobs(log):
    assert render_predictions(log, "log").name == "jobs-log-predictions.html"


def test_a_source_without_runs_or_with_a_mixture_gets_no_page(log, job_log):
    with pytest.raises(NotFound, match="source 'other' has no job runs"):
        render_predictions(log, "other")
    job_log([{"runtime_s": 1.0, "is_simulated": True}])
    with pytest.raises(BadInput, match="1 simulated runs stand among 4 measured ones"):
        render_predictions(log, "log")


def test_rows_of_another_source_are_not_shown(full, job_log, words_of):
    warehouse = job_log([{"runtime_s": 1.0}], source="other")
    assert not has_predictions(warehouse, "other")
    words = words_of(page_of(warehouse, "other"))
    assert "has no shapes yet" in words and MODEL not in words


def test_shapes_of_both_kinds_and_their_numbers_are_drawn_apart(log, put):
    page = page_of(put(log, shapes=SHAPES, shape_curve=CURVE))
    captions = re.findall(r"<figcaption>(.*?)</figcaption>", page)
    assert len(captions) == 4
    assert all("n = " in caption and "data version older, not of the files of now" in caption for caption in captions)
    ids = re.findall(r'<clipPath id="([^"]+)"', page)
    assert len(ids) == len(set(ids))


def test_the_share_of_jobs_that_kept_their_shape_counts_only_those_with_two_labels(log, words_of, put):
    parts = [
        ("a", "D1", 0),
        ("a", "D3", 0),
        ("b", "D1", 0),
        ("b", "D3", 1),
        ("c", "D1", 1),
        ("c", "D3", None),
        ("d", "D3", None),
    ]
    rows = [
        {"kind": "ratio", "group_key": job, "part": part, "n_runs": 5, "label": label, "posterior": [0.5, 0.5]}
        for job, part, label in parts
    ]
    put(log, shapes=SHAPES, shape_curve=CURVE, group_shapes=pd.DataFrame(rows).assign(median_source="history"))
    words = words_of(page_of(log))
    assert "Of n = 2 jobs with a shape (ratio)" in words
    assert "50.0 % have the same in both" in words
    assert "jobs with a shape (delta)" not in words


def test_either_order_of_the_next_runs_has_its_own_first_and_leaves_out_jobs_with_few_runs(log, words_of, put):
    put(
        log,
        predictions=[
            next_run("likely", twice=0.9, beyond=1.0),
            next_run("costly", twice=0.1, beyond=900.0),
            next_run("young", twice=1.0, beyond=9000.0, n_before=2),
        ],
    )
    words = words_of(page_of(log))
    chance, excess = words.split("Where the most time beyond the usual is expected")
    assert chance.index("likely") < chance.index("costly")
    assert excess.index("costly") < excess.index("likely")
    assert "young" not in words
    assert "n = 2 jobs with at least 3 finished runs" in words
    assert "3 jobs, as if each were submitted at 2026-01-02 00:00" in words


def test_the_rows_of_tables_and_the_runs_that_a_job_needs_are_settings(log, put, words_of):
    jobs = [next_run(f"job {i}", twice=0.9 - i / 10, beyond=1.0, n_before=4 + i) for i in range(4)]
    put(log, predictions=jobs)
    page = render_predictions(log, "log", ReportParams(n_rows=2, min_support=5)).read_text()
    words = words_of(page)
    assert "n = 3 jobs with at least 5 finished runs" in words
    assert [f"job {i} {4 + i} 50 s" in words for i in range(4)] == [False, True, True, False]


def test_the_command_gives_the_page_the_settings_of_reports(log, put, words_of, monkeypatch, capsys):
    monkeypatch.setenv("WHORL_HOME", str(log.home))
    monkeypatch.setenv("WHORL_JOBS__REPORT__MIN_SUPPORT", "11")
    put(log, predictions=[next_run("job", twice=0.5, beyond=1.0)])
    assert run(["report", "jobs"]) == 0
    page = capsys.readouterr().out.splitlines()[-1]
    assert "None of them has 11 finished runs yet." in words_of(Path(page).read_text())


def test_numbers_of_bins_and_rival_clusterings_are_drawn_where_they_were_compared(log, put, words_of):
    bins = [
        {"kind": "ratio", "n_bins": n, "stability": 0.5, "log_score": -n / 100, "n_groups": 31} for n in (4, 50, 100)
    ]
    rivals = [
        {"kind": "ratio", "method": name, "largest_share": share, "n_groups": 30}
        for name, share in (("k-means", 0.25), ("agglomerative (average)", 0.875))
    ]
    page = page_of(put(log, shapes=SHAPES, shape_curve=CURVE, bin_comparisons=bins, shape_rivals=rivals))
    words = words_of(page)
    assert "n = 31 jobs, their runs dealt into two halves; 3 numbers of bins" in words
    assert "n = 30 jobs in 2 clusters each" in words
    for drawn in ("87.5 %", "agglomerative (average)", "-0.040", "-1.000"):
        assert drawn in page
    assert "Numbers of bins were not compared" in words  # of delta


def test_the_figures_are_of_the_model_in_use_not_of_the_latest(log, put):
    put(log, model_figures=figures(predict__crps__model=1.0))
    put(
        log, model_figures=[{**row, "model_id": "runtime-2-b", "value": 7.0} for row in figures(predict__crps__model=0)]
    )
    found = fetch_predictions_data(log, "log", ReportParams())
    assert (found.measured_model_id, found.figures) == ("runtime-2-b", {"predict.crps.model": 7.0})
    with writing(log) as connection:
        for sequence, model_id in ((1, "runtime-2-b"), (2, MODEL)):
            connection.execute(
                "INSERT INTO ops.champions VALUES ('jobs', 'log', 'runtime', $n, $model, '', TIMESTAMP '2026-01-01')",
                {"n": sequence, "model": model_id},
            ).fetchall()
    assert fetch_predictions_data(log, "log", ReportParams()).measured_model_id == MODEL


def test_predictors_without_a_figure_are_left_out_and_missing_figures_are_dashes(log, words_of, put):
    put(log, model_figures=figures(predict__n=30, predict__crps__model=1.5, predict__ks_group__model=None))
    words = words_of(page_of(log))
    assert "the model 1.5 s – – – – –" in words
    assert "random-forest regression" not in words


def test_the_same_rows_give_the_same_page_and_reading_changes_nothing(full):
    first = page_of(full)
    with reading(full) as connection:
        n_rows = connection.execute("SELECT count(*) FROM jobs.predictions").fetchone()
    assert page_of(full) == first
    assert n_rows == (1,)
