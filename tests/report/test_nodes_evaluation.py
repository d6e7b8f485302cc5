"""The tables of an evaluation say at once whether the detector is ahead of each simple detector, and where not."""

import pandas as pd

from tasks.nodes.evaluate import applications
from tasks.nodes.evaluate.network_fits import FIT_MEASURES
from tasks.report.evaluation import Evaluation
from tasks.report.nodes_evaluation import (
    FITTED,
    METHODS,
    detectors_table,
    evaluation_result,
    falls_short,
    fitted_table,
    injected_table,
    is_learned,
    keys_of,
    rank_table,
    summary_words,
    verdict_tables,
)

BASE = {"n": 1800, "n_nodes": 3, "n_types": 6, "n_stressed": 360, "seed": 0, "data_sha256": "0123456789abcdef"}
F1 = "detect.f1_outlier"
PLAIN = {
    f"{F1}.zscore": 0.61, f"{F1}.zscore.dose_1": 0.31, f"{F1}.zscore.dose_3": 0.9, f"{F1}.zscore.from_dose_2": 0.8,
    f"{F1}.logistic": 0.5, f"{F1}.logistic.dose_1": 0.45, f"{F1}.logistic.dose_3": 0.7,
    f"{F1}.logistic.from_dose_2": 0.6,
    f"{F1}.zscore.random": 0.7, f"{F1}.zscore.random.deviation": 0.02, f"{F1}.zscore.random.dose_1": 0.4,
    f"{F1}.zscore.left_node": None, f"{F1}.zscore.left_node.reason": "there is one node",
}  # fmt: skip
DETECTED = {
    f"{F1}.detector": 0.8, f"{F1}.detector.low": 0.75, f"{F1}.detector.high": 0.85, f"{F1}.detector.deviation": 0.04,
    f"{F1}.detector.dose_1": 0.4, f"{F1}.detector.dose_1.low": 0.3, f"{F1}.detector.dose_1.high": 0.5,
    f"{F1}.detector.dose_3": 0.93, f"{F1}.detector.dose_3.low": 0.89, f"{F1}.detector.dose_3.high": 0.97,
    f"{F1}.detector.from_dose_2": 0.801, f"{F1}.detector.random": 0.72, f"{F1}.detector.random.dose_1": 0.41,
    f"{F1}.paper": 0.55, f"{F1}.detector.paper": 0.7, f"{F1}.zscore.paper": 0.72,
}  # fmt: skip
FIGURES = PLAIN | DETECTED


def heads(table):
    return tuple(column.title for column in table.columns[1:])


def names(table):
    return [row["name"].text for row in table.rows]


def cells(table):
    return [[cell for key, cell in row.items() if key != "name"] for row in table.rows]


def texts(table):
    return {name: [cell.text for cell in row] for name, row in zip(names(table), cells(table), strict=True)}


def marked(table):
    return {
        (name, head)
        for name, row in zip(names(table), cells(table), strict=True)
        for head, cell in zip(heads(table), row, strict=True)
        if cell.is_marked
    }


def test_keys_are_read_by_protocol_dose_and_detector():
    keys = keys_of(FIGURES, "f1_outlier")
    assert keys["", "dose_1", "logistic"] == f"{F1}.logistic.dose_1"
    assert keys["random", "dose_1", "zscore"] == f"{F1}.zscore.random.dose_1"
    assert (keys["paper", "any", "detector"], keys["", "any", "paper"]) == (f"{F1}.detector.paper", f"{F1}.paper")
    assert ("left_node", "any", "zscore") not in keys
    beside = (".low", ".high", ".deviation", ".reason")
    assert len(keys) == sum(value is not None and not key.endswith(beside) for key, value in FIGURES.items())


def test_the_verdict_says_how_far_ahead_of_the_best_and_marks_where_it_is_behind():
    [table] = verdict_tables(FIGURES)
    assert heads(table) == ("all doses", "doses from 2 on", "dose 1", "dose 3")
    found = texts(table)
    assert found["later executions"] == ["+0.19", "level", "-0.05", "+0.03"]
    assert found["random executions"] == ["+0.02", "–", "+0.01", "–"]
    assert found["the paper's way"] == ["-0.02", "–", "–", "–"]
    assert marked(table) == {("later executions", "dose 1"), ("the paper's way", "all doses")}
    [later, *_] = table.rows
    assert later["0"].notes == ("0.80 against 0.61", "robust z-scores")
    assert later["2"].notes == ("0.40 against 0.45", "logistic regression a benchmark")
    assert later["3"].notes[-1] == "within its spread"  # 0.89 to 0.97 holds 0.90


def test_the_summary_counts_places_and_the_lines_name_who_is_better():
    assert "ahead of every simpler one in 4 of 7 places" in summary_words(FIGURES)
    assert "level with the best of them in 1, behind in 2." in summary_words(FIGURES)
    assert falls_short(FIGURES) == [
        "F1 of stressed, later executions, dose 1: 0.40; better: logistic regression a benchmark 0.45",
        "F1 of stressed, the paper's way, all doses: 0.70; better: robust z-scores 0.72",
    ]


def test_without_a_learned_model_there_is_no_verdict():
    assert not is_learned(FIGURES) and is_learned(FITS)
    assert verdict_tables(PLAIN) == [] and summary_words(PLAIN) == "" and falls_short(PLAIN) == []


def test_the_rows_of_all_measures_are_sorted_within_each_way_of_splitting_and_dose():
    def told(split, stress, **more):
        rows = detectors_table(FIGURES, **more).rows
        return [row["detector"] for row in rows if (row["split"], row["dose"]) == (split, stress)]

    best_first = ["the detector", "robust z-scores", "paper's variant", "logistic regression a benchmark"]
    assert told("later executions", "all doses") == best_first
    assert told("later executions", "dose 1") == []
    assert told("later executions", "dose 1", doses=True) == [best_first[3], best_first[0], best_first[1]]
    assert detectors_table(FIGURES).rows[-1]["split"] == "the paper's way"


FITS = {
    "type.accuracy.model": 1.0, "type.accuracy.model.paper": 0.98, "type.accuracy.paper.paper": 1.0,
    "reconstruction.mse.model.paper": 0.3, "reconstruction.mse.paper.paper": 0.012,
    "reconstruction.mse.own.model": 0.02, "reconstruction.mse.own.model.mean_predictor": 0.01,
    "detect.f1_normal.paper.paper": 0.96, "detect.weighted_f1.paper.paper": 0.89,
    "detect.f1_outlier.paper.paper": 0.8, "detect.f1_outlier.paper.paper.low": 0.7,
    "detect.f1_outlier.paper.paper.high": 0.9, "fit.rounds.model": 5,
}  # fmt: skip


def test_every_measure_of_fits_has_a_column():
    assert set(FIT_MEASURES.values()) <= set(FITTED)


def test_fits_stand_beside_each_other_with_what_means_of_types_make():
    assert {(row["name"].text, *row["name"].notes) for row in fitted_table(FITS).rows} == {
        ("our variant", "later executions"),
        ("our variant", "the paper's way"),
        ("paper's variant", "the paper's way"),
    }
    assert texts(fitted_table(FITS))["our variant"][heads(fitted_table(FITS)).index("error of all columns")] == "–"


def test_what_falls_short_of_means_of_all_types_and_of_the_paper_is_told():
    assert falls_short(FITS) == [
        "error of own metrics, later executions: 0.02; the means of types make 0.01",
        "types told rightly, the paper's way: 98.0 %",
        "weighted F1 (probably its weighted accuracy), the paper's way: 0.89; the paper reports 0.90 of its own data",
    ]


INJECTED = {
    "inject.shifted.auprc.zscore": 0.9, "inject.shifted.auprc.headline": 0.8, "inject.shifted.recall.headline": 0.7,
    "inject.shifted.auprc.headline.low": 0.75, "inject.shifted.auprc.headline.high": 0.85,
    "inject.unaltered.false_alarms_per_1000.zscore": 20.0, "inject.unaltered.false_alarms_per_1000.headline": 5.0,
    "inject.replaced_worse.auprc.zscore": 0.9, "inject.replaced.auprc.headline": None,
    "inject.replaced.auprc.headline.reason": "one machine type",
}  # fmt: skip


def test_injected_degradation_has_a_row_a_kind_and_detector_and_what_is_behind_or_missing_is_told():
    assert injected_table(INJECTED).cells() == [
        ["robust z-scores (made worse by one factor)", "0.90", "–", "–"],
        ["headline metrics, without labels (made worse by one factor)", "0.80 (0.75 to 0.85)", "70.0 %", "–"],
        ["robust z-scores (unaltered)", "–", "–", "20"],
        ["headline metrics, without labels (unaltered)", "–", "–", "5"],
    ]
    assert falls_short(INJECTED) == [
        "area under precision over recall, later results made worse by one factor: 0.80; better: robust z-scores 0.90"
    ]


RANKED = {
    "rank.nodes.d15": 20, "rank.nodes.d2": 30, "rank.series": 7,
    "rank.spearman.d15": 0.4, "rank.spearman.d2": 0.5, "rank.spearman": 0.45, "rank.spearman.mean": 0.45,
    "rank.best_oracle": 0.9, "rank.best_single": 0.3, "rank.best_single.d2": 0.7, "rank.pc1.d15": None,
}  # fmt: skip


def test_a_way_of_ranking_is_behind_those_that_follow_applications_better_but_for_hindsight():
    table = rank_table(RANKED)
    assert heads(table) == ("d15", "d2", "all together", "mean of machine types")
    assert texts(table)[METHODS["best_single"]] == ["–", "0.70", "0.30", "–"]
    assert falls_short(RANKED | {"rank.shared.d2": 0.55}) == [
        "ranking beside applications, d2: 0.55; better: the one metric that did best on other nodes 0.70"
    ]


def test_every_way_of_ranking_that_is_measured_has_words_of_its_own():
    assert set(METHODS) == set(applications.METHODS)
    assert len(set(METHODS.values())) == len(METHODS)
    assert names(rank_table({"rank.shared": 0.62, "rank.series": 7})) == [METHODS["shared"]]


def result_of(figures):
    return evaluation_result(Evaluation(BASE | figures, {"detection": pd.DataFrame()}), "campaign")


def test_the_result_begins_with_the_verdict_and_what_falls_short():
    result = result_of(FIGURES | FITS | INJECTED | RANKED)
    titles = [part.title for part in result.sections]
    order = [
        "Is the detector ahead of simpler ones?", "What falls short", "Stressed executions found",
        "Degradation that was put into the history", "What fingerprints hold",
    ]  # fmt: skip
    assert [title for title in titles if title in order] == order
    assert any("better: logistic regression a benchmark 0.45" in line for line in result.sections[1].lines)
    marked = [
        cell for table in result.sections[0].tables for row in table.rows for cell in row.values() if cell.is_marked
    ]
    assert "-0.05" in {cell.text for cell in marked}


def test_a_result_without_a_network_or_without_figures_says_nothing_of_them(told):
    words = told(result_of(PLAIN))
    assert "Answers about nodes: campaign" in words
    for silent in ("our variant", "What falls short", "What fingerprints hold"):
        assert silent not in words
    for figures in ({}, {f"{F1}.detector": None, f"{F1}.detector.reason": "no label"}):
        assert verdict_tables(figures) == [] and falls_short(figures) == []
        assert not any(table(figures).rows for table in (detectors_table, fitted_table, rank_table))
    ahead = told(result_of({f"{F1}.zscore": 0.5, f"{F1}.detector": 0.9}))
    assert "Nothing that was measured: it is behind no simple answer" in ahead
