from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import BadInput, NotFound
from tasks.workloads.identify.forest import fit_forest
from tasks.workloads.identify.identification import identify, identify_all
from tasks.workloads.identify.model import fit_model
from tasks.workloads.identify.params import FeatureParams
from tasks.workloads.identify.proxies import find_proxies
from tasks.workloads.identify.synthetic import shuffled


def told(runs, model):
    return [one.workload for one in identify_all(runs, model, with_reasons=False)]


def numbers(runs, model):
    found = identify_all(runs, model, with_reasons=False)
    return np.array([[*one.probabilities.values(), one.unknown_score, one.nearest[0].distance] for one in found])


def test_runs_of_known_workloads_are_named(case):
    found = identify_all(case.test, case.model)
    likely = [max(one.probabilities, key=one.probabilities.__getitem__) for one in found]
    assert likely == [run.workload for run in case.test]
    assert [one.nearest[0].workload for one in found] == likely
    for one in found:
        assert one.workload in (None, likely[found.index(one)]) and (one.workload is None) == (not one.is_known)
        assert (one.proxy is None) == one.is_known
        assert 0 <= one.confidence <= 1


@pytest.mark.parametrize("parts", ["phases", "levels"])
def test_each_half_of_the_features_is_enough_for_workloads_that_differ(case, quick, parts):
    model = fit_model(case.train, quick.model_copy(update={"features": FeatureParams(parts=parts, max_phases=3)}))
    found = identify_all(case.test, model, with_reasons=False)
    right = [max(one.probabilities, key=one.probabilities.__getitem__) for one in found]
    assert np.mean([a == run.workload for a, run in zip(right, case.test, strict=True)]) >= 0.9


def test_an_unknown_run_is_named_by_what_it_is_most_like(case):
    found = [one for one in identify_all(case.kin, case.model) if not one.is_known]
    assert found
    assert {one.proxy for one in found} == {"mariadb"} == {one.nearest[0].workload for one in found}
    assert all(one.workload is None and one.confidence == one.unknown_score for one in found)


def test_the_order_of_runs_and_counters_changes_nothing(case, quick):
    rng = np.random.default_rng(0)
    other = fit_model(shuffled(case.train, rng), quick)
    runs = shuffled(case.test, rng)
    again = sorted(runs, key=lambda run: run.run_id)
    np.testing.assert_allclose(
        numbers(again, other), numbers(sorted(case.test, key=lambda run: run.run_id), case.model), rtol=1e-9, atol=1e-12
    )


def test_a_run_is_judged_the_same_alone_and_among_others(case):
    np.testing.assert_allclose(numbers(case.test[:1], case.model), numbers(case.test, case.model)[:1], rtol=1e-9)


def test_a_counter_in_another_unit_changes_next_to_nothing(case, quick):
    def in_other_units(run):
        factors = np.where(np.arange(len(run.counters)) % 2 == 0, 1000.0, 1.0)
        return replace(run, values=run.values * factors)

    other = fit_model([in_other_units(run) for run in case.train], quick)
    runs = [in_other_units(run) for run in case.test]
    assert [max(one.probabilities, key=one.probabilities.__getitem__) for one in identify_all(runs, other)] == [
        run.workload for run in case.test
    ]
    np.testing.assert_allclose(numbers(runs, other)[:, -1], numbers(case.test, case.model)[:, -1], rtol=1e-6)


def test_the_same_seed_gives_the_same_answers(case, quick):
    again = fit_model(case.train, quick)
    np.testing.assert_array_equal(numbers(case.test, again), numbers(case.test, case.model))


def test_a_run_that_lacks_many_counters_is_refused(case):
    run = case.test[0]
    with pytest.raises(BadInput, match="lacks 10 of 15 counters"):
        identify(replace(run, counters=run.counters[:5], values=run.values[:, :5]), case.model)


def test_a_run_that_lacks_one_counter_is_identified_without_it(case):
    run = case.test[0]
    found = identify(replace(run, counters=run.counters[1:], values=run.values[:, 1:]), case.model)
    assert found.missing == (run.names[0],)
    assert max(found.probabilities, key=found.probabilities.__getitem__) == run.workload


def test_missing_samples_are_no_zeros(case):
    run = case.test[0]
    values = run.values.copy()
    values[4:7] = np.nan
    found = identify(replace(run, values=values), case.model)
    assert max(found.probabilities, key=found.probabilities.__getitem__) == run.workload


def test_a_run_without_a_label_cannot_be_learned(case, quick):
    with pytest.raises(BadInput, match="has no workload"):
        fit_model([*case.train, replace(case.test[0], workload=None)], quick)
    with pytest.raises(BadInput, match="runs: none"):
        fit_model([], quick)
    assert identify_all([], case.model) == []


def test_proxies_are_the_public_workloads_by_distance(case):
    found = find_proxies(case.kin[0], case.model)
    assert found[0].workload == "mariadb" and [one.distance for one in found] == sorted(one.distance for one in found)
    public = find_proxies(case.kin[0], case.model, ["redis", "cnn"])
    assert {one.workload for one in public} == {"redis", "cnn"} and not public[0].is_close
    with pytest.raises(NotFound, match="workload mongodb: not in the model; it knows cnn, mariadb, nginx, redis"):
        find_proxies(case.kin[0], case.model, ["mongodb"])


def test_the_plain_baseline_names_workloads_that_differ(case):
    forest = fit_forest(case.train, case.model.maker.counters, 0)
    assert forest.workloads(case.test) == [run.workload for run in case.test]
    assert forest.workloads([]) == []
