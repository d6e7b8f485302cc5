"""Training and identifying runs of a source: what is written, what is refused, what twice does."""

import math

import pytest

from tasks.errors import BadInput, NotFound
from tasks.warehouse.connection import fetch
from tasks.warehouse.registry import cards, champion, decisions
from tasks.workloads import steps
from tasks.workloads.identifications import read_identifications
from tasks.workloads.models import KIND, champion_of, read_figures
from tasks.workloads.params import ReadParams, TrainParams, WindowParams
from tasks.workloads.training import hold_out, labelled_runs

ALONE = TrainParams()


def put(warehouse, path, source="log"):
    steps.ingest_batch(warehouse, steps.land_telemetry(warehouse, str(path), source, "", ReadParams()))


def known_to(model):
    """The runs that a model has learned."""
    return set(model.learned_ids)


def test_the_last_round_is_held_out_measured_and_then_learned_as_well(identifying_log):
    [main] = [card for card in cards(identifying_log.models) if card.kind == KIND]
    assert main.parameters["held_out"] == "round 3"
    figures = read_figures(identifying_log, "log", main.model_id)
    assert (figures["trained.n"], figures["held_out.n"], figures["trained.classes"]) == (24, 8, 4)
    assert 0 <= figures["held_out.accuracy"] <= 1
    assert {key: figures[key] for key in main.metrics} == main.metrics
    confusion = fetch(identifying_log, "SELECT * FROM workloads.confusions")
    assert confusion["n_runs"].sum() == 8
    is_right = confusion["workload"] == confusion["identified_as"]
    assert confusion.loc[is_right, "n_runs"].sum() == round(8 * figures["held_out.accuracy"])
    _, model = champion_of(identifying_log, "log")
    assert known_to(model) == set(fetch(identifying_log, "SELECT run_id FROM workloads.runs")["run_id"])  # in the end


def test_the_same_run_trains_the_same_model_once(identifying_log, quick_identify):
    before = [card.model_id for card in cards(identifying_log.models)]
    found = steps.train(identifying_log, "log", quick_identify, TrainParams(), [], "first-run")
    assert [card.model_id for card in cards(identifying_log.models)] == before
    assert found["champion_id"] == found["model_id"]
    assert len(decisions(identifying_log.models, "workloads")) == 1


def test_a_model_that_is_no_better_on_the_same_data_does_not_come_into_use(identifying_log, quick_identify):
    first = champion(identifying_log.models, "workloads", "log", KIND).model_id
    found = steps.train(identifying_log, "log", quick_identify, ALONE, [], "second-run")
    assert found["champion_id"] == first != found["model_id"]


def test_a_model_that_is_as_good_and_knows_more_files_does(identifying_log, quick_identify, drawn_telemetry):
    put(identifying_log, drawn_telemetry("more", workloads="x", n_runs=6, seed=7, first_minute=100))
    found = steps.train(identifying_log, "log", quick_identify, ALONE, [], "second-run")
    assert found["champion_id"] == found["model_id"]
    assert read_figures(identifying_log, "log", found["model_id"])["trained.classes"] == 5


def test_runs_that_are_left_out_are_neither_learned_nor_measured(workloads_log, quick_identify):
    found = steps.train(workloads_log, "log", quick_identify, ALONE, ["a-00", "a-02"], "run")
    _, model = champion_of(workloads_log, "log")
    assert not {"a-00", "a-02"} & known_to(model)
    figures = read_figures(workloads_log, "log", found["model_id"])
    assert figures["trained.n"] == 22


def test_without_rounds_the_later_part_is_held_out(workloads_log, quick_identify):
    by_time = TrainParams(hold_out="time")
    found = steps.train(workloads_log, "log", quick_identify, by_time, [], "run")
    assert found["held_out"] == "by time"
    parts = hold_out(labelled_runs(workloads_log, "log")[0], by_time)
    assert len(parts.test) == read_figures(workloads_log, "log", found["model_id"])["held_out.n"]
    for one in parts.test:
        assert all(run.started_at < one.started_at for run in parts.train if run.workload == one.workload)


def test_a_workload_of_the_held_out_part_alone_is_counted_apart(workloads_log, quick_identify, drawn_telemetry):
    put(workloads_log, drawn_telemetry("new", workloads="z", n_runs=6, seed=9, first_minute=500, prefix="later-"))
    others = [f"later-z-{at:02}" for at in range(6) if at != 2]  # what is left is of the last round
    found = steps.train(workloads_log, "log", quick_identify, ALONE, others, "run")
    figures = read_figures(workloads_log, "log", found["model_id"])
    assert (figures["held_out.n"], figures["held_out.n_new"], figures["trained.classes"]) == (8, 1, 5)


def test_long_traces_are_learned_and_identified_in_windows(workloads_log, quick_identify):
    windows = WindowParams(width_s=5)
    train = TrainParams(windows=windows, hold_out="time")
    trained = steps.train(workloads_log, "log", quick_identify, train, [], "run")
    figures = read_figures(workloads_log, "log", trained["model_id"])
    for part in ("trained", "held_out"):  # windows, and no runs
        assert figures[f"{part}.n_windows"] == figures[f"{part}.n"] > 0
    _, model = champion_of(workloads_log, "log")
    assert all("@" in run_id for run_id in known_to(model))
    found = steps.identify(workloads_log, "log", ["a-00"], "all")
    assert found["run_ids"] == ["a-00"]


def test_a_model_of_other_windows_is_not_asked_about_runs_that_it_has_learned(workloads_log, quick_identify):
    """Its own runs, cut otherwise, were taken for new ones: it was right about them all, and stayed in use."""
    for at, width_s in enumerate((5, 10)):
        train = TrainParams(windows=WindowParams(width_s=width_s), hold_out="time")
        found = steps.train(workloads_log, "log", quick_identify, train, [], f"run-{at}")
        assert found["champion_id"] == found["model_id"]
    assert decisions(workloads_log.models, "workloads")[-1].reason.endswith("has learned all of them itself")


def test_a_source_without_labels_says_how_to_give_some(warehouse, drawn_telemetry, quick_identify):
    put(warehouse, drawn_telemetry("plain", n_runs=2, unlabelled=True))
    with pytest.raises(NotFound, match=r"no labelled runs of workloads; ingest some .* --label-from"):
        steps.train(warehouse, "log", quick_identify, ALONE, [], "run")


def test_one_run_of_each_workload_is_too_little_to_say_how_good_a_model_is(warehouse, drawn_telemetry, quick_identify):
    put(warehouse, drawn_telemetry("once", n_runs=1))
    with pytest.raises(BadInput, match=r"4 labelled runs: none can be held out: .* are one workload, .* --manifest"):
        steps.train(warehouse, "log", quick_identify, ALONE, [], "run")
    assert cards(warehouse.models) == []


def test_without_a_model_identification_says_how_to_make_one(workloads_log):
    with pytest.raises(NotFound, match="'log' has no model of workloads yet; make one with whorl workloads train"):
        steps.identify(workloads_log, "log", None, "new")


def test_runs_are_identified_once_by_a_model_and_again_when_asked(identifying_log):
    first = steps.identify(identifying_log, "log", None, "new")
    assert (first["n_runs"], first["n_known"] + first["n_unknown"], first["refused"]) == (24, 24, [])
    assert steps.identify(identifying_log, "log", [], "new")["n_runs"] == 0
    assert steps.identify(identifying_log, "log", [], "all")["n_runs"] == 24  # no named run: those that `which` says
    assert steps.identify(identifying_log, "log", None, "unlabelled")["n_runs"] == 0
    assert steps.identify(identifying_log, "log", None, "all")["n_runs"] == 24
    assert len(read_identifications(identifying_log, "log")) == 24


def test_a_source_without_runs_has_no_newest_ones(identifying_log):
    with pytest.raises(NotFound, match="source 'empty' has no runs of workloads; sources that have some: 'log'"):
        steps.newest(identifying_log, "empty", 3)


def test_a_run_that_is_not_there_is_named_with_some_that_are(identifying_log):
    with pytest.raises(NotFound, match=r"run 'q': source 'log' has no such run; it has 24, such as a-00, a-01"):
        steps.identify(identifying_log, "log", ["q"], "all")


def test_the_newest_runs_are_those_that_started_last(workloads_log):
    starts = fetch(workloads_log, "SELECT run_id FROM workloads.runs ORDER BY started_at DESC LIMIT 3")
    assert steps.newest(workloads_log, "log", 3) == starts["run_id"].to_list()


def test_simulated_runs_among_measured_ones_are_refused(workloads_log, quick_identify, tmp_path):
    measured = tmp_path / "measured.csv"
    rows = [f"real,a,{at},{at % 3}" for at in range(10)]
    measured.write_text("\n".join(["run_id,workload,at_s,cpu.user_cores", *rows]) + "\n")
    put(workloads_log, measured)
    with pytest.raises(BadInput, match="24 simulated runs stand among 1 measured ones"):
        steps.train(workloads_log, "log", quick_identify, ALONE, [], "run")


def test_a_run_without_a_group_of_its_own_is_identified_by_the_machine(identifying_log, drawn_telemetry):
    put(identifying_log, drawn_telemetry("bare", workloads="b", n_runs=1, machine_only=True, prefix="bare-"))
    found = steps.identify(identifying_log, "log", ["bare-b-00", "a-00"], "all")
    assert found["refused"] == []
    rows = read_identifications(identifying_log, "log", ["a-00", "bare-b-00"]).to_dict("records")
    assert [(row["view"], row["nearest"]) for row in rows] == [("own", "a"), ("machine", "b")]
    first = rows[0]
    assert (first["run_id"], first["label"], len(first["reasons"]) > 0) == ("a-00", "a", True)
    assert (
        0 <= first["confidence"] <= 1 and 0 <= first["unknown_score"] <= 1 and math.isfinite(first["nearest_distance"])
    )


def test_a_run_without_the_counters_of_the_model_is_refused_and_does_not_hold_up_others(identifying_log, tmp_path):
    other = tmp_path / "other.csv"
    other.write_text("\n".join(["run_id,at_s,x.y", *(f"strange,{at},{at % 3}" for at in range(10))]) + "\n")
    put(identifying_log, other)
    found = steps.identify(identifying_log, "log", ["strange", "a-00"], "all")
    assert found["run_ids"] == ["a-00"]
    [line] = found["refused"]
    assert line.startswith("run strange: lacks 6 of 6 counters: ")
