"""Verdicts: the threshold that a budget gives, the reasons, and the model that is learned, kept and asked."""

import json
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from tasks.errors import BadInput
from tasks.nodes.detect.detector import fit_detector
from tasks.nodes.detect.verdicts import (
    LARGEST_SHARE,
    judge_history,
    learn_verdicts,
    load_verdict_model,
    pace,
    reasons_of,
    save_verdict_model,
    threshold_of_alarms,
    threshold_of_share,
)
from tasks.nodes.node_words import MetricReason, apart, reason_of_row
from tasks.nodes.params import AlarmParams, BudgetParams, DetectorParams, PreprocessParams
from tests.nodes.synthetic import synthetic_history


def learned(history, **budget):
    given = (PreprocessParams(), DetectorParams(), BudgetParams(**budget), AlarmParams())
    return learn_verdicts(history, *given)


@pytest.fixture(scope="module")
def history():
    return synthetic_history(nodes=3, types=2, runs=80, stressed=0.2)


@pytest.fixture(scope="module")
def model(history):
    return learned(history).model


def test_figures_are_of_executions_that_the_others_judge(history):
    found = learned(history)
    assert (found.n_learned, found.n_stressed) == (480, 96)
    assert set(found.figures) == {"auprc", "f1_outlier", "precision", "recall", "false_alarms_per_1000"}
    assert 0.5 < found.figures["auprc"] < 1.0  # a third of the doses is one deviation


def test_what_ran_in_an_hour_is_not_taken_for_the_pace_of_a_day(history):
    """Or rounds that follow each other at once would have a threshold that nothing exceeds."""
    order = pd.Series(np.arange(len(history.executions)))
    began = [pd.to_datetime(order * 5, unit="s"), pd.Series(pd.NaT, index=order, dtype="datetime64[us]")]
    at_once, unknown = (
        learned(replace(history, executions=history.executions.assign(started_at=at))).model for at in began
    )
    assert at_once.budget.executions_per_day == len(order)
    assert at_once.threshold == unknown.threshold


def test_without_known_stress_there_are_verdicts_and_no_figures(history):
    unknown = history.executions.assign(is_stressed=None, dose_level=np.nan)
    found = learned(type(history)(unknown, history.metrics, history.telemetry))
    assert found.figures == {} and found.n_stressed == 0
    verdicts = judge_history(history, found.model).executions
    assert not verdicts["by_labels"].any() and verdicts["probability"].between(0, 1).all()
    strong = (history.executions["dose_level"] == 3).to_numpy()
    assert verdicts["probability"][strong].median() > 0.9 > 0.1 > verdicts["probability"][~strong].median()


@pytest.mark.parametrize("by", ["precision", "recall"])
def test_a_precision_or_a_recall_that_is_asked_for_is_had(history, by):
    found = learned(history, by=by, share=0.8)
    assert found.figures[by] >= 0.8 - 1e-9 and found.model.budget is None


def test_a_recall_without_known_stress_is_refused(history):
    calm = history.where((history.executions["dose_level"] == 0).to_numpy())
    with pytest.raises(BadInput, match=r"nodes\.budget\.by: no execution is known to be stressed.*choose by alarms"):
        learned(calm, by="recall")


def test_too_few_executions_are_one_line(history):
    with pytest.raises(BadInput, match="five calm ones; expected 5 of a benchmark at least, and 10 of a node to"):
        learned(history.where(np.arange(480) < 6))


def test_flagged_executions_have_reasons_and_others_have_none(history, model):
    found = judge_history(history, model)
    flagged = found.executions[found.executions["is_flagged"]]
    assert set(found.reasons["execution_id"]) <= set(flagged["execution_id"])
    strong = set(history.executions["execution_id"][history.executions["dose_level"] == 3])
    assert strong & set(flagged["execution_id"]) <= set(found.reasons["execution_id"])
    assert not found.reasons["value"].isna().any() and not found.reasons["metric"].str.contains("threads").any()


def test_a_saved_model_gives_the_same_verdicts_to_the_bit(history, model, tmp_path):
    save_verdict_model(model, tmp_path)
    again = load_verdict_model(tmp_path)
    assert (again.threshold, again.budget) == (model.threshold, model.budget)
    one, other = judge_history(history, model), judge_history(history, again)
    pd.testing.assert_frame_equal(one.executions, other.executions, check_exact=True)
    pd.testing.assert_frame_equal(one.reasons, other.reasons, check_exact=True)


@pytest.mark.parametrize("name", ["budget.json", "detector.json", "detector.npz", "preprocessor.json"])
@pytest.mark.parametrize(
    "content", [None, b"", b"{}", b"[1]", b"\x00 no model", b'{"types": [{"name": 3}]}', b"PK\x03\x04cut off"]
)
def test_a_broken_folder_is_refused_with_one_line(model, tmp_path, name, content):
    save_verdict_model(model, tmp_path)
    file = tmp_path / name
    file.unlink()
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(BadInput) as refused:
        load_verdict_model(tmp_path)
    assert str(tmp_path) in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize(("written", "told"), [(1, "version 1, not 2"), (None, "KeyError: 'version'")])
def test_a_model_whose_numbers_meant_something_else_is_refused(model, tmp_path, written, told):
    """Scales of earlier detectors are 1.76 times as large: by them stress would pass for usual."""
    save_verdict_model(model, tmp_path)
    file = tmp_path / "detector.json"
    about = {**json.loads(file.read_text()), "version": written}
    file.write_text(json.dumps({name: one for name, one in about.items() if one is not None}))
    with pytest.raises(BadInput, match=f"{told}.*train again"):
        load_verdict_model(tmp_path)


RULES = AlarmParams()
N_SERIES, LENGTH = 60, 500


def calm_fleet(seed, *, memory=0.0, row=1.0, n_series=N_SERIES):
    """Scores of calm executions of many nodes, one an hour each: (LENGTH, n_series).

    memory: correlation of one with the one before it. row: executions that have the same score, on average."""
    rng = np.random.default_rng(seed)
    noise = rng.standard_normal((LENGTH, n_series))
    stays = rng.random((LENGTH, n_series)) < 1 - 1 / row
    for at in range(1, LENGTH):
        drawn = memory * noise[at - 1] + np.sqrt(1 - memory**2) * noise[at]
        noise[at] = np.where(stays[at], noise[at - 1], drawn)
    return noise


def chosen(scores, **asked):
    nodes, at_h = np.tile(np.arange(N_SERIES), LENGTH), np.repeat(np.arange(LENGTH), N_SERIES).astype(np.float64)
    executions = pd.DataFrame({"node": nodes.astype(str), "aspect": "cpu"})
    calm = np.ones(len(nodes), dtype=bool)
    return threshold_of_alarms(executions, scores.ravel(), calm, at_h, BudgetParams(**asked), RULES)


def alarms_per_day(scores, threshold):
    """Over N_SERIES nodes, by the rules written once more: 3 of the last 5 raise an alarm, 3 clean ones clear it."""
    flags = scores > threshold
    n_series = flags.shape[1]
    goes_on, n_clean, window = np.zeros(n_series, bool), np.zeros(n_series, int), np.zeros((RULES.last, n_series), bool)
    n_alarms = 0
    for at, flagged in enumerate(flags):
        n_clean = np.where(flagged, 0, n_clean + 1)
        window[at % RULES.last] = flagged
        raised = ~goes_on & flagged & (window.sum(axis=0) >= RULES.flagged) & (at + 1 >= RULES.min_executions)
        cleared = goes_on & (n_clean >= RULES.clear)
        window[:, cleared] = False
        goes_on = (goes_on | raised) & ~cleared
        n_alarms += int(raised.sum())
    return n_alarms / n_series * N_SERIES / (LENGTH - 1) * 24


def test_the_pace_is_executions_a_day():
    assert pace(np.array([0.0, 6.0, 12.0])) == pytest.approx(3 / 12 * 24)
    assert pace(np.array([np.nan, 3.0])) == 2.0  # one day, where nobody knows
    assert pace(np.array([0.0, 6.0, 12.0]), 1.0) == 3.0
    assert pace(np.array([0.0, 24.0, 48.0]), 1.0) == pytest.approx(1.5)


def test_a_larger_budget_has_a_lower_threshold_and_more_flags():
    """Three of five with the newest among them: about p^3, and less where many are flagged, as an alarm goes on."""
    fleet = calm_fleet(0)
    found = [chosen(fleet, alarms_per_day=budget) for budget in (0.1, 1.0, 5.0, 10_000)]
    assert np.all(np.diff([one.threshold for one in found]) < 0)
    assert np.all(np.diff([one.flagged_share for one in found]) > 0)
    assert [one.alarms_per_day for one in found[:3]] == pytest.approx([0.1, 1.0, 5.0])
    assert found[0].executions_per_day == pytest.approx(N_SERIES * 24, rel=0.01)
    slope = np.log(5.0) / np.log(found[2].flagged_share / found[1].flagged_share)
    assert slope == pytest.approx(RULES.flagged, abs=1.0)
    assert found[3].flagged_share == pytest.approx(LARGEST_SHARE) and found[3].alarms_per_day < 10_000


def test_a_threshold_is_never_below_even_odds_and_what_it_raises_is_stated():
    """All calm executions lie at or below 0: a score of 0 is not above the threshold, so none is flagged."""
    found = chosen(-np.abs(calm_fleet(0)), alarms_per_day=8.0)
    assert found.threshold == 0.0 and found.alarms_per_day < 1e-3


@pytest.mark.parametrize(("memory", "row"), [(0.0, 1.0), (0.5, 1.0), (0.0, 3.0)])
def test_a_budget_is_kept_two_sided_whether_flags_come_alone_or_in_rows(memory, row):
    """20 days of 60 nodes teach the threshold; at 0.2 a day they show four alarms. 700 days of others tell the rate."""
    how = {"memory": memory, "row": row}
    later, taught = calm_fleet(100, **how, n_series=2000), [calm_fleet(seed, **how) for seed in range(2)]
    for budget in (0.2, 3.0):
        stated = [chosen(one, alarms_per_day=budget) for one in taught]
        assert [one.alarms_per_day for one in stated] == pytest.approx([budget] * 2, rel=0.01)
        ratio = np.mean([alarms_per_day(later, one.threshold) for one in stated]) / budget
        assert 0.67 < ratio < 1.5, (budget, ratio)


def test_without_an_alarm_in_training_flags_count_as_nearly_independent():
    """Ten executions have raised none; p^3 · 6 is about the rate of three of five; that of none in ten is less."""
    executions = pd.DataFrame({"node": ["a"] * 10, "aspect": "cpu"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        given = np.arange(10.0), np.ones(10, dtype=bool), np.arange(10.0)
        found = threshold_of_alarms(executions, *given, BudgetParams(alarms_per_day=0.01), RULES)
    assert 6 * found.flagged_share**3 * found.executions_per_day == pytest.approx(0.02, rel=0.5)


def told(*, begins, n):
    """The flagged executions of a node alone, by number; from `begins` on its rate is 40 % lower."""
    drawn = synthetic_history(nodes=1, types=1, runs=n, stressed=0.0, seed=5)
    is_late = drawn.executions.groupby("node").cumcount() >= begins
    worse = drawn.metrics["execution"].map(is_late) & (drawn.metrics["metric"] == "events_per_second")
    metrics = drawn.metrics.assign(value=drawn.metrics["value"] * np.where(worse, 0.6, 1.0))
    spoiled = type(drawn)(drawn.executions.assign(is_stressed=None), metrics, drawn.telemetry)
    return np.flatnonzero(judge_history(spoiled, learned(spoiled).model).executions["is_flagged"].to_numpy())


@pytest.mark.parametrize(("begins", "n"), [(20, 30), (40, 60), (54, 60)])
def test_a_node_alone_that_is_worse_than_its_own_past_up_to_now_is_told_without_labels(begins, n):
    """However long it has been so, up to a third of what is known: its bad executions are no measure of calm ones."""
    flagged = told(begins=begins, n=n)
    assert set(range(begins, n)) <= set(flagged) and (flagged < begins).mean() < 0.25


def test_values_that_are_all_alike_are_refused_as_such():
    drawn = synthetic_history(nodes=1, types=1, runs=6, stressed=0.0)
    alike = type(drawn)(drawn.executions, drawn.metrics.assign(value=1.0), drawn.telemetry)
    with pytest.raises(BadInput, match="6 executions: no metric of theirs varies"):
        learned(alike)


def test_without_a_calm_execution_there_is_no_threshold():
    executions = pd.DataFrame({"node": ["a"] * 3, "aspect": "cpu"})
    with pytest.raises(ValueError, match="no calm execution has a score"):
        threshold_of_alarms(executions, np.ones(3), np.zeros(3, dtype=bool), np.arange(3.0), BudgetParams(), RULES)


@pytest.mark.parametrize(
    ("by", "wanted", "expected"),
    [("recall", 1.0, 1.5), ("recall", 0.5, 3.5), ("precision", 0.9, 3.5), ("precision", 0.6, 1.5)],
)
def test_a_threshold_by_precision_or_recall_lies_between_two_scores(by, wanted, expected):
    """Of scores 4, 3, 2, 1 the first and the third are stressed: precision 1, 1/2, 2/3, 1/2; recall 1/2, 1/2, 1, 1."""
    scores, stressed = np.array([1.0, 3.0, 4.0, 2.0]), np.array([False, False, True, True])
    assert threshold_of_share(scores, stressed, by, wanted) == expected


def reasons(tables, natural, *, n_calm=None, **told):
    """Of the last execution; all before it are calm, or the first n_calm."""
    n = len(natural)
    found = tables(natural, [0] * n, **told)
    at_h, asked, calm = np.arange(n, dtype=np.float64), np.arange(n) == n - 1, np.arange(n) < (n_calm or n - 1)
    params = DetectorParams(headlines={"spin": ("rate",)})
    fitted = fit_detector(found, at_h, calm, np.zeros(n, dtype=bool), calm, params)
    return reasons_of(fitted, found, at_h, asked)


def steady(last, levels, n=40, spread=0.05, seed=0):
    """Executions that vary by 5 % around their levels, and then one with the values of last."""
    x = np.log(levels) + spread * np.random.default_rng(seed).standard_normal((n, len(levels)))
    return np.vstack([np.exp(x), last])


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        (("clat", "s", 0.0113, 0.0041, 0.0049, 9.2), "clat 11.3 ms, usually 4.1 to 4.9: worse (9 deviations)"),
        (
            ("bw", "B/s", 1.2e6, 2.9e8, 3.1e8, 450.0),
            "bw 1 MB/s, usually 290 to 310: worse (beyond 100 deviations)",
        ),
        (("iops", "1/s", 0.0, 70.0, 80.0, 50.0), "iops 0 a second, usually 70.0 to 80.0: worse (50 deviations)"),
        (("score", "", 3.0, 5.0, 5.0, -4.0), "score 3.00, usually 5.00: better (4 deviations)"),
        (("x", "", 4.0, 3.0, 5.0, 0.7), "x 4.00, usually 3.00 to 5.00: on the worse side (0.7 deviations)"),
    ],
)
def test_a_reason_is_told_in_a_unit_that_one_reads(reason, words):
    assert MetricReason(*reason).words() == words


def test_a_value_that_looks_like_its_usual_range_has_more_digits():
    assert apart([100.4, 100.1, 100.3]) == ["100.4", "100.1", "100.3"]
    assert apart([1.23, 4.56]) == ["1.23", "4.56"]
    assert apart([np.nan, 1.0]) == ["–", "1.00"]


def test_the_headline_comes_first_then_what_is_worse_by_most(tables):
    natural = steady([50.0, 10.0, 0.1, 7.0], [100.0, 1.0, 0.05, 7.0])
    told = {"metrics": ("rate", "wait", "delay", "same"), "orientation": (1, -1, -1, 1)}
    found = reasons(tables, natural, **told)
    assert found["metric"].tolist() == ["rate", "wait", "delay"] and found["place"].tolist() == [1, 2, 3]
    first = reason_of_row(found.iloc[0])
    assert first.value == 50.0 and first.usual_low < 100 < first.usual_high
    assert first.usual_high / first.usual_low == pytest.approx(np.exp(4 * 0.05), rel=0.2)  # two deviations either way


def assert_far_from_100(tables, natural):
    """By the first reason of the last execution, learned from the first 40."""
    said = reason_of_row(reasons(tables, natural, n_calm=40, metrics=("rate",)).iloc[0])
    assert said.usual_low < 100 < said.usual_high and said.deviation > 5


def test_what_is_far_from_the_level_is_a_reason_where_lately_all_was_so(tables):
    """The last 50 executions were at 60 as well: beside these nothing is worse."""
    natural = steady([60.0], [100.0], n=40)
    assert_far_from_100(tables, np.vstack([natural, steady([60.0], [60.0], n=55, seed=1)]))


def test_what_is_far_from_the_good_times_is_a_reason_where_most_of_late_was_so_as_well(tables):
    """Learned at 60, then long at 100, then 60 two times of three: the level and the median of the last 50 are 60."""
    levels = [60.0] * 40 + [100.0] * 60 + [60.0, 60.0, 100.0] * 20 + [60.0]
    natural = np.array(levels)[:, None] * np.exp(0.05 * np.random.default_rng(0).standard_normal((len(levels), 1)))
    natural[-1] = 60.0
    assert_far_from_100(tables, natural)


def test_where_no_metric_is_unusual_by_itself_those_that_the_score_hangs_on_are_told(drawn):
    """Stress costs 6 deviations of `rate`; an execution at 1.5 below has less than two, and `wait` is as usual."""
    tables, at_h, stressed = drawn(dose=6.0)
    [table] = tables.tables
    last = len(at_h) - 1
    natural = table.natural.copy()
    own = natural[(table.nodes == table.nodes[last]) & ~stressed]
    natural[last] = np.median(own, axis=0) * [np.exp(-1.5 * 0.05), 1.0]
    tables = replace(tables, tables=(replace(table, natural=natural, scaled=natural),))
    asked = np.arange(len(at_h)) == last
    fitted = fit_detector(tables, at_h, ~asked, stressed & ~asked, ~stressed & ~asked, DetectorParams())
    said = [reason_of_row(row) for _, row in reasons_of(fitted, tables, at_h, asked).iterrows()]
    assert said[0].metric == "rate" and said[0].is_usual and "on the worse side (1." in said[0].words()


def test_what_is_better_or_neither_better_nor_worse_is_no_reason(tables):
    natural = steady([200.0, 0.01, 9.0], [100.0, 1.0, 1.0])
    told = {"metrics": ("rate", "wait", "threads"), "orientation": (1, -1, 1), "is_directed": (True, True, False)}
    assert not (reasons(tables, natural, **told)["deviation"] > 0).any()


def test_the_usual_range_of_a_count_that_is_often_0_lies_among_what_was_counted(tables):
    counts = np.array([0.0, 0.0, 1.0, 90.0] * 10 + [60.0])
    natural = np.column_stack([steady([50.0], [100.0])[:, 0], counts])
    said = reasons(tables, natural, metrics=("rate", "retries"), orientation=(1, -1)).set_index("metric").loc["retries"]
    assert said["usual_low"] == 0 and said["usual_high"] < 60


def test_what_a_tool_rounds_away_is_no_reason(tables):
    """sysbench writes latencies in hundredths of milliseconds: 0.01 and 0.20 ms are one and twenty steps, 9 ms 900."""
    told = {"name": "cpu-sysbench@1", "metrics": ("latency_avg", "latency_95p"), "units": ("s", "s")}
    natural = steady([9e-5, 0.05], [2e-5, 0.01])
    assert reasons(tables, natural, orientation=(-1, -1), **told)["metric"].tolist() == ["latency_95p"]
