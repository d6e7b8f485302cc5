import json
from dataclasses import replace
from datetime import datetime

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.identify.identification import identify_all
from tasks.workloads.identify.model import (
    ARRAYS,
    MAIN,
    Logistic,
    clusters_of,
    fit_model,
    folds_of,
    load_model,
    save_model,
    seen_moments,
)
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Conditions, Counter, Telemetry


def run(run_id, workload="redis", **labels):
    return Telemetry(run_id, (Counter("a"),), np.arange(2.0), np.zeros((2, 1)), workload=workload, **labels)


@pytest.fixture
def folder(case, tmp_path):
    save_model(case.model, tmp_path / "model")
    return tmp_path / "model"


def test_rounds_stay_together_in_their_order():
    runs = [run(f"{name}{at}", name, round=str(at)) for at in (10, 9, 1, 2) for name in ("redis", "nginx")]
    assert folds_of(runs, 2).tolist() == [1, 1, 1, 1, 0, 0, 0, 0]


def test_without_rounds_neighbours_in_time_stay_together():
    runs = [run(str(at), started_at=datetime(2026, 1, day)) for at, day in enumerate([5, 1, 4, 2, 3, 6])]
    assert folds_of(runs, 3).tolist() == [2, 0, 1, 0, 1, 2]


def test_a_round_with_most_of_the_runs_is_not_held_out_whole():
    runs = [run(str(at), round="1" if at < 7 else "2") for at in range(9)]
    assert folds_of(runs, 3).tolist() == [0, 0, 0, 1, 1, 1, 2, 2, 2]


def test_repetitions_share_workload_and_input():
    found = clusters_of([run("1", input="small"), run("2", input="large"), run("3", input="small"), run("4")])
    assert found[0] == found[2] and len(set(found)) == 3


def test_a_probability_is_logistic():
    one = Logistic(np.array([1.0]), np.array([2.0]), np.array([3.0]), -1.0)
    assert one.probability(np.array([[1.0], [3.0]])).tolist() == pytest.approx([1 / (1 + np.e), 1 / (1 + np.exp(-2))])


def test_a_run_without_a_label_is_refused(case):
    with pytest.raises(BadInput, match="has no workload"):
        fit_model([replace(case.train[0], workload=None)], IdentifyParams())


def test_runs_without_a_common_counter_are_refused_in_one_line():
    odd = replace(run("b"), counters=(Counter("b"),))
    with pytest.raises(BadInput, match="2 runs: no counter in common"):
        fit_model([run("a"), odd], IdentifyParams())


def test_there_is_a_view_on_the_group_and_one_on_the_machine(case):
    assert list(case.model.views) == ["own", "machine"]
    assert {one.scope for one in case.model.views["own"].counters} == {"workload"}
    assert case.model.workloads == ("cnn", "mariadb", "nginx", "redis")


def test_a_higher_recall_of_known_runs_never_lowers_the_limit(case):
    strict, lenient = (fit_model(case.train, IdentifyParams(known_recall=recall)) for recall in (0.5, 0.99))
    for name in ("own", "machine"):
        low, high = strict.views[name], lenient.views[name]
        assert low.rest_alone.limit <= high.rest_alone.limit
    assert strict.views["machine"].rest_in_company.limit <= lenient.views["machine"].rest_in_company.limit


def test_telemetry_without_rounds_allows_for_a_session_that_it_has_not_shown(case):
    bare = fit_model([replace(run, round=None) for run in case.train], IdentifyParams())
    assert bare.views["machine"].rest_alone.limit > case.model.views["machine"].rest_alone.limit


def test_runs_beside_others_teach_the_machine_only_what_speaks_for_a_part(case):
    """The known runs and what is unknown are learned from runs that had the machine to themselves."""
    shared = replace(case.train[0], run_id="shared", values=1000 * case.train[0].values)
    shared = replace(shared, conditions=Conditions("r1", "pair", partner="nginx"))
    taught, quiet = fit_model([*case.train, shared], IdentifyParams()).views, case.model.views
    np.testing.assert_array_equal(taught["machine"].library.rows, quiet["machine"].library.rows)
    assert taught["machine"].rest_in_company.limit == quiet["machine"].rest_in_company.limit
    assert taught["machine"].presence.intercept != quiet["machine"].presence.intercept
    assert len(taught["own"].library.rows) > len(quiet["own"].library.rows)


def test_a_group_at_work_is_never_taken_for_an_idle_one(case):
    idle = [replace(run, run_id=f"idle {run.run_id}", workload="idle") for run in case.train[:5]]
    model = fit_model([*case.train, *idle], IdentifyParams())
    assert "idle" not in model.views["own"].neighbours.names
    assert "idle" in model.views["machine"].neighbours.names


def test_a_group_is_compared_by_what_it_does_with_a_second_of_a_core():
    """0.4 cores in all: 20 faults a second are 50 for each second of a core; a level of memory stays."""
    names = ("own.cpu.user_cores", "own.cpu.system_cores", "own.vm.page_faults")
    rates = [Counter(name, is_rate=True, scope="workload") for name in names]
    counters = (*rates, Counter("own.memory.used_bytes", "B", scope="workload"))
    group = Telemetry("1", counters, np.arange(2.0), np.array([[0.2, 0.1, 10.0, 7.0], [0.4, 0.1, 30.0, 9.0]]))
    [compared] = seen_moments([group], counters)
    assert compared == pytest.approx([0.3, 0.1, 20.0, 8.0, 0.75, 0.25, 50.0, 8.0])
    assert seen_moments([group], counters[2:])[0] == pytest.approx([20.0, 8.0, 20.0, 8.0])


def test_a_group_that_gets_a_tenth_of_the_machine_is_as_near_as_before(case):
    """Rates of the drawn runs, and the cores that they use, fall together."""
    cores = Counter("own.cpu.user_cores", "core-seconds", is_rate=True, scope="workload")

    def slowed(run, share):
        is_own_rate = np.array([one.scope == "workload" and one.is_rate for one in run.counters])
        values = np.column_stack([np.where(is_own_rate, run.values * share, run.values), np.full(run.n_samples, share)])
        return replace(run, counters=(*run.counters, cores), values=values)

    model = fit_model([slowed(run, 1.0) for run in case.train], IdentifyParams())
    whole, tenth = (
        [one.nearest[0] for one in identify_all([slowed(run, share) for run in case.test], model, with_reasons=False)]
        for share in (1.0, 0.1)
    )
    assert [one.workload for one in tenth] == [one.workload for one in whole]
    assert [one.distance for one in tenth] == pytest.approx([one.distance for one in whole])


def test_a_group_that_is_asked_about_in_the_middle_of_its_course_is_known(case):
    """Every run begins with ten samples of another kind than what follows."""

    def begun(run):
        values = np.concatenate([run.values[:10] * 0.01, np.tile(run.values, (2, 1))])[:30]
        return replace(run, values=values, at_s=np.arange(30.0))

    model = fit_model([begun(run) for run in case.train], IdentifyParams())
    asked = [replace(one, values=one.values[-12:], at_s=one.at_s[-12:]) for one in map(begun, case.train)]
    answers = identify_all(asked, model, view="own", with_reasons=False)
    assert [answer.workload for answer in answers] == [run.workload for run in asked]


def test_one_known_workload_is_enough(case):
    redis = [one for one in case.train if one.workload == "redis"]
    model = fit_model(redis, IdentifyParams())
    assert all(one.workload == "redis" for one in identify_all(redis, model))


def test_a_loaded_model_gives_the_same_answers(case, folder):
    runs = [*case.test, *case.strangers]
    assert identify_all(runs, load_model(folder)) == identify_all(runs, case.model)
    assert load_model(folder).learned_ids == case.model.learned_ids


def test_saving_twice_writes_the_same_bytes_and_nothing_that_runs_code(case, folder, tmp_path):
    save_model(case.model, tmp_path / "again")
    for file in folder.iterdir():
        assert file.read_bytes() == (tmp_path / "again" / file.name).read_bytes()
    assert {file.suffix for file in folder.iterdir()} == {".json", ".parquet"}


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ("{", "JSONDecodeError"),
        ("[]", "not of the format"),
        ('{"format": "whorl.workloads.identify", "version": 99}', "version 99"),
        ('{"format": "whorl.workloads.identify", "version": 3, "views": {}}', "no model of workloads"),
    ],
)
def test_a_foreign_file_is_refused_in_one_line(folder, content, told):
    (folder / MAIN).write_text(content)
    with pytest.raises(BadInput, match=told) as error:
        load_model(folder)
    assert "\n" not in str(error.value)


def test_a_part_that_does_not_fit_the_others_or_is_missing_is_refused(folder):
    main = json.loads((folder / MAIN).read_text())
    main["views"]["own"]["counters"] = main["views"]["own"]["counters"][1:]
    (folder / MAIN).write_text(json.dumps(main))
    with pytest.raises(BadInput, match="that do not fit its 4 counters"):
        load_model(folder)
    (folder / ARRAYS).unlink()
    for lost, told in ((folder, r"no model of workloads .*arrays.parquet.*train again"), (folder / "x", "no model of")):
        with pytest.raises(BadInput, match=told):
            load_model(lost)
