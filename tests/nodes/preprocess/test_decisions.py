from tasks.nodes.preprocess.fitting import count_metrics, decisions, fit
from tasks.nodes.preprocess.params import PreprocessParams
from tasks.nodes.synthetic import synthetic_history
from tasks.nodes.tools.facts import Of

OURS = PreprocessParams()


def test_every_recorded_metric_has_a_row_and_every_dropped_one_a_reason() -> None:
    preprocessor = fit(synthetic_history(runs=20), OURS)
    table = decisions(preprocessor)
    assert len(table) == 18
    assert (table["why"].eq("") == table["is_kept"]).all()
    assert table["n_values"].eq(60).all()
    counts = count_metrics(preprocessor)
    assert (counts.recorded, counts.kept, counts.paper_recorded, counts.paper_kept) == (18, 16, 153, 54)


def test_a_row_says_unit_dispersion_orientation_and_what_the_rule_says(history_of) -> None:
    measured = [{"lat": (value, unit)} for value, unit in ((1, "ms"), (2, "ms"), (3, "ms"), (9000, "us"))]
    history = history_of(measured, is_stressed=[False, False, False, True])
    row = decisions(fit(history, OURS, facts={"own-tool": {"lat": Of("disk").less("s", "a time")}})).iloc[0]
    assert (row["type"], row["metric"], row["unit_written"], row["unit"]) == ("own-tool", "lat", "ms, us", "s")
    assert (row["n_values"], row["n_distinct"], row["n_apart"], row["is_kept"]) == (4, 4, 0, True)
    assert (row["orientation"], row["orientation_from"]) == (-1, "declared")
    assert (row["rule_with_stressed"], row["rule_without_stressed"], row["agrees"]) == (-1, 1, True)


def test_disagreements_with_the_papers_rule_can_be_listed(history_of) -> None:
    history = history_of([{"lat": one, "bw": one} for one in (1.0, 8.0, 9.0, 10.0)])
    facts = {"own-tool": {"lat": Of("disk").less("s", "a time"), "bw": Of("disk").more("B/s", "a speed")}}
    table = decisions(fit(history, OURS, facts=facts))
    assert table.loc[table["agrees"].eq(False), "metric"].tolist() == ["lat"]


def test_a_metric_without_a_rule_has_no_agreement(history_of) -> None:
    row = decisions(fit(history_of([{"m": 1.0}, {"m": 1.0}]), OURS)).iloc[0]
    assert row[["rule_with_stressed", "rule_without_stressed", "agrees"]].isna().all()
    assert row["orientation_from"] == "none"


def test_an_unknown_unit_is_told_in_the_note(history_of) -> None:
    row = decisions(fit(history_of([{"m": (1, "points")}, {"m": (2, "points")}]), OURS)).iloc[0]
    assert (row["unit"], row["note"], row["is_kept"]) == (
        "'points'",
        "unit 'points' is not known: a scale of its own",
        True,
    )


def test_no_metrics_give_an_empty_table_of_the_same_columns() -> None:
    empty = decisions(fit(synthetic_history(runs=0), OURS))
    assert len(empty) == 0
    assert empty.dtypes.to_dict() == decisions(fit(synthetic_history(runs=3), OURS)).dtypes.to_dict()
