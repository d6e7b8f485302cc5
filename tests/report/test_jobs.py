"""The jobs of a source in one result: who is likely to be late, why, and what is missing."""

import pandas as pd
import pytest

from tasks.errors import BadInput, NotFound
from tasks.jobs.params import NO_COLUMN, ReportParams
from tasks.report.jobs import changes_table, fetch_jobs, job_items, jobs_result
from tasks.report.result import as_markdown
from tasks.warehouse.connection import reading, writing
from tests.report import rows
from tests.report.rows import HOSTILE, family, figures, insight, next_run, reason, what_if

NAMES = ("job a", "job b")


def result_of(warehouse, source="log", **params):
    with reading(warehouse) as connection:
        return jobs_result(fetch_jobs(connection, source, ReportParams(**params)), "job.html")


@pytest.fixture
def log(summarised):
    """Two jobs of six runs each."""
    runs = [{"runtime_s": 10.0 + at, "group_key": name} for name in NAMES for at in range(6)]
    return summarised(runs)


@pytest.fixture
def keys(log):
    with reading(log) as connection:
        return [row[0] for row in connection.execute("SELECT group_key FROM jobs.groups ORDER BY ALL").fetchall()]


@pytest.fixture
def predicted(log, keys, put):
    """The second job is likely to be late."""
    risks = zip(keys, (0.02, 0.3), strict=True)
    return put(
        log,
        predictions=[next_run(key, twice=twice, beyond=1.0, n_before=6) for key, twice in risks],
        model_figures=figures(predict__n=30, predict__crps__model=1.5, predict__crps__history=2.0),
    )


def test_the_riskiest_job_is_the_answer_with_what_would_help_and_jobs_with_few_runs_stand_last(
    predicted, keys, rows_of
):
    result = result_of(predicted)
    assert result.answer == (
        "1 of 2 jobs have a chance of 25.0 % or more to take over twice their usual time next, first "
        f"{keys[1]} with 30.0 % (usually 50 s; 95 % under 95 s)."
    )
    assert result.state == "look"
    assert "whorl jobs predict" in result.action  # which change would help is not known before it is asked
    assert result.certainty == (
        "The model misses runtimes by 1.5 s on average (CRPS), 25.0 % less than the best beside it, the job's own "
        "earlier runs (2 s)."
    )
    assert [row["group_key"] for row in rows_of(result, "Jobs and their next runs")] == keys[::-1]
    assert result_of(predicted, min_support=100).answer.endswith("nothing is predicted yet.")


def test_each_part_says_which_command_gives_it_and_without_a_job_at_risk_all_is_well(log, keys, put, job_log, told):
    words = told(result_of(log))
    for verb in ("train", "characterise", "explain", "whatif", "watch"):
        assert f"whorl jobs {verb} --source log" in words
    put(log, predictions=[next_run(keys[0], twice=0.01, beyond=1.0)])
    result = result_of(log)
    assert result.answer.startswith("No job of log has a chance of 25.0 % or more")
    summary = "whorl jobs summary --source log"
    assert (result.state, any(summary in line for line in result.notices)) == ("good", False)
    job_log([{"runtime_s": 3.0}])  # the summary is older than its files now
    assert any(summary in line for line in result_of(log).notices)


def test_the_slow_share_of_the_tile_is_that_of_the_figure_and_every_figure_that_a_log_can_fill_is_there(
    summarised, varied_runs
):
    result = result_of(summarised(varied_runs))
    drawn = {one.name: one for part in result.sections for one in part.figures if one.chart}
    assert drawn.keys() >= {"over-time", "against-median"}
    tile = next(fact.text for fact in result.facts if fact.key == "jobs.slow_share")
    assert f"{tile} took at least" in drawn["against-median"].words


def test_a_run_has_its_first_reason_to_be_longer_even_after_one_to_be_shorter(log, put, rows_of):
    shorter = reason("job a", "r1", "smaller input", factor=0.5)
    longer = reason("job a", "r1", "fewer tokens", rank=2)
    put(log, reasons=[shorter, longer, reason("job b", None, "its past", question="variation")])
    [row] = rows_of(result_of(log), "Why single runs were long")
    assert (row["words"], row["runtime_s"], row["usual_s"]) == ("fewer tokens", "90 s", "10 s")


def test_families_insights_and_shapes_stand_with_what_they_are_measured_against(log, put, rows_of, told):
    families = [family("runtime", "input", 0.6), family("ratio", "input", 0.2), family("runtime", "other", 0.3)]
    insights = [insight("larger inputs vary more", reason="too few inputs")]
    put(log, cause_families=families, insights=insights, shapes=rows.SHAPES, shape_curve=rows.CURVE)
    result = result_of(log)
    inputs, own = rows_of(result, "What makes runs long")
    assert (inputs["ratio"], own["family"]) == ("20.0 %", "own columns")
    [row] = rows_of(result, "The paper's insights here")
    assert (row["verdict"], row["rho"], row["reason"]) == ("cannot be told", "–", "too few inputs")
    drawn = {one.name for part in result.sections for one in part.figures if one.chart}
    assert drawn >= {"shapes-ratio", "shapes-delta"}
    assert "data version older, not of the files of now" in told(result)


def test_what_a_log_has_no_column_for_is_one_line_and_no_row(log, put, rows_of, told):
    """The log has operators, as one insight of them is told: another lacks only its own."""
    names = ("inputs", "load_deviation", "range")
    lacking = [insight(name, reason=NO_COLUMN) | {"insight": name, "rank": rank} for rank, name in enumerate(names, 2)]
    put(log, insights=[insight("window operators vary more") | {"insight": "window"}, *lacking])
    result = result_of(log)
    assert [row["words"] for row in rows_of(result, "The paper's insights here")] == ["window operators vary more"]
    assert "Not tested, for want of these columns of jobs.runs: input_bytes, load_sd." in told(result)


def test_a_what_if_has_predicted_beside_measured_and_what_it_can_and_cannot_claim(log, put, rows_of, told):
    put(log, **what_if("no_spare"))
    result = result_of(log)
    [row] = rows_of(result, "What a change would do")
    assert (row["predicted"], row["measured"], row["right_share"]) == ("1.65 ×", "1.00 ×", "75.0 %")
    words = told(result)
    assert "it supports no_spare" in words
    assert "Mind: it does not prove no_spare" in words
    assert "(seconds from the historic median): no_spare moves 3 runs" in words  # no chart has these
    [change] = rows_of(result, "What if: no_spare")
    assert list(change.values()) == ["95th percentile, in seconds", "2 s", "3 s", "+1 s", "+500 ms to +1.5 s"]


def test_a_change_without_a_figure_is_left_out_and_a_falling_one_has_its_sign():
    nothing = {"before": None, "after": None, "change": None, "low": None, "high": None}
    fallen = {"before": 0.5, "after": 0.25, "change": -0.25, "low": None, "high": None}
    table = pd.DataFrame([nothing, fallen], index=pd.Index(["money", "outlier_share"]), dtype=float)
    assert changes_table(table).cells() == [
        ["probability of an outlier, over the ratio to the historic median", "50.0 %", "25.0 %", "−25.0 %", "–"]
    ]


@pytest.mark.parametrize(
    ("runs", "why"),
    [
        (
            [{"runtime_s": 1.0}],
            ["No job of log has 3 finished runs, so there is no variation to report.", "so there is no line to draw"],
        ),
        ([{"runtime_s": 5.0}] * 8, ["source log"]),
        ([{"runtime_s": 0.0}] * 8, ["source log"]),
        ([{"status": "failed", "runtime_s": None}] * 3, ["source log"]),
    ],
)
def test_a_log_that_cannot_fill_a_part_or_does_not_vary_is_a_result_too(summarised, told, runs, why):
    words = told(result_of(summarised(runs)))
    assert all(one in words for one in why)


def test_a_source_without_summary_or_with_a_mixture_has_no_result(job_log, summarised):
    with pytest.raises(NotFound, match="has no summary yet"):
        result_of(job_log([{"runtime_s": 1.0}]))
    warehouse = summarised([{"runtime_s": 1.0}], source="pure")
    job_log([{"runtime_s": 1.0, "is_simulated": True}], source="pure")
    with pytest.raises(BadInput, match="1 simulated runs stand among 1 measured ones"):
        result_of(warehouse, "pure")


def test_the_figures_are_of_the_model_in_use_not_of_the_latest(predicted, put):
    put(predicted, model_figures=[{"model_id": "runtime-2-b", "key": "predict.crps.model", "value": 7.0}])
    with writing(predicted) as connection:
        connection.execute(
            "INSERT INTO ops.champions (word, source, kind, sequence, model_id, reason, decided_at) "
            "VALUES ('jobs', 'log', 'runtime', 1, $model, '', now()::TIMESTAMP)",
            {"model": rows.MODEL},
        ).fetchall()
    with reading(predicted) as connection:
        assert fetch_jobs(connection, "log", ReportParams()).model_id == rows.MODEL


def test_every_job_has_a_page_with_its_history_and_its_next_run(predicted, keys):
    with reading(predicted) as connection:
        items = dict(job_items(connection, fetch_jobs(connection, "log", ReportParams())))
    assert list(items) == keys[::-1]
    late = items[keys[1]]
    assert late.answer == (
        "The next run takes over twice its usual 50 s with a chance of 30.0 %; it stays under 95 s with 95 %."
    )
    [history] = [figure for part in late.sections for figure in part.figures]
    assert history.use == "history"
    kinds = [row[list(history.columns).index("is")] for row in history.rows]
    assert kinds == ["as usual"] * 6 + ["next run"]


def test_reasons_are_sentences_once_each_and_the_name_of_a_feature_stays_as_it_is(predicted, keys, put):
    why = [(1, "more input"), (2, "more input"), (3, "spare_tokens: more of them"), (4, "its past")]
    put(predicted, reasons=[reason(keys[1], None, words, rank=rank) for rank, words in why])
    with reading(predicted) as connection:
        data = fetch_jobs(connection, "log", ReportParams())
        late = dict(job_items(connection, data))[keys[1]]
    assert late.reasons == ("More input.", "spare_tokens: more of them.", "Its past.")
    assert jobs_result(data).reasons[1:] == late.reasons[:2]


def test_the_artifact_takes_nothing_as_markup(log, put):
    put(log, predictions=[next_run(HOSTILE, twice=0.5, beyond=1.0)], **what_if(HOSTILE))
    text = as_markdown(result_of(log))
    assert "<script" not in text
    assert "<img" not in text
