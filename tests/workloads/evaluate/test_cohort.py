from dataclasses import replace

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.evaluate.cohort import cohort_of, sampled
from tasks.workloads.evaluate.counter_use import NOT_COMMON, counter_figures, counter_table
from tasks.workloads.evaluate.learned import learn, see
from tasks.workloads.evaluate.params import WindowParams
from tasks.workloads.evaluate.windows import cut
from tasks.workloads.identify.cutting import cut_run
from tasks.workloads.identify.model import describe, fit_model
from tasks.workloads.identify.params import IdentifyParams, TreeParams
from tasks.workloads.normalisation_params import NormalisationParams
from tasks.workloads.telemetry import Counter

QUICK = IdentifyParams(trees=TreeParams(rounds=5, seeds=1))


def without(run, name):
    kept = [at for at, counter in enumerate(run.counters) if counter.name != name]
    return replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])


def cohort(runs):
    return cohort_of(cut(runs, WindowParams()).items, QUICK.fingerprint)


def test_runs_are_compared_on_the_counters_that_all_have(campaign):
    one, *others = campaign()
    runs = [without(one, "group.counter_3"), *others]
    found = cohort(runs)
    assert "group.counter_3" not in [counter.name for counter in found.counters]
    assert {item.run.values.shape[1] for item in found.items} == {5}
    told = counter_table(runs, found.counters).set_index("counter")
    assert told.loc["group.counter_3", "reason"] == NOT_COMMON
    assert told.loc["group.counter_3", "n_runs"] == len(runs) - 1
    assert counter_figures(told.reset_index())["counters.not_common"] == 1


def test_give_aways_are_left_out_and_told(campaign):
    given = Counter("disk_free", "bytes")
    runs = [
        replace(run, counters=(*run.counters, given), values=np.column_stack([run.values, np.ones(run.n_samples)]))
        for run in campaign(rounds=1)
    ]
    told = counter_figures(counter_table(runs, cohort(runs).counters))
    assert told["counters.giveaways.names"] == "disk_free" and told["counters.n"] == 6


def test_runs_without_a_common_counter_are_one_clear_line(draw):
    odd = replace(draw("mysql", "b"), counters=tuple(Counter(f"other_{at}") for at in range(6)))
    with pytest.raises(BadInput, match="no counter in common"):
        cohort([draw("redis", "a"), odd])


def test_what_is_learned_is_what_a_model_learns(campaign):
    """A protocol that measured something else than the model would say nothing about it."""
    runs = campaign()
    all_of_them = cohort(runs)
    train, test = np.arange(12), np.arange(12, 24)
    learned = learn(all_of_them, train, QUICK)
    model = fit_model(all_of_them.runs(train), QUICK)
    seen = see(all_of_them, test, learned)
    described = describe(all_of_them.runs(test), model)
    np.testing.assert_allclose(seen.features, described.features)
    np.testing.assert_allclose(seen.of_trees, model.judge.trees.probabilities(described.features))


def test_what_is_learned_does_not_depend_on_the_tested_runs(campaign):
    runs = campaign()
    other = [*runs[:12], *(replace(run, values=run.values * 1000) for run in runs[12:])]
    scaled = NormalisationParams(normalisation="training")
    params = QUICK.model_copy(update={"fingerprint": QUICK.fingerprint.model_copy(update={"normalisation": scaled})})
    one, same = (learn(cohort(own), np.arange(12), params) for own in (runs, other))
    np.testing.assert_array_equal(one.features, same.features)
    assert one.maker.scale.centre.tolist() == same.maker.scale.centre.tolist()


def test_phases_are_found_in_a_run_alone(campaign):
    found = cohort(campaign())
    run = found.items[3].run
    alone = cut_run(run, found.counters, QUICK.fingerprint)
    assert [one.tolist() for one in alone.bounds] == [one.tolist() for one in found.cuts[run.run_id].bounds]


def test_a_sample_takes_from_each_workload_alike(draw):
    runs = [draw("redis", f"r{at}") for at in range(90)] + [draw("mysql", f"m{at}") for at in range(5)]
    items = cut(runs, WindowParams()).items
    kept = sampled(items, 25, seed=0)
    labels = [item.workload for item in kept]
    assert labels.count("mysql") == 5 and labels.count("redis") == 20
    ids, order = [item.run.run_id for item in kept], [item.run.run_id for item in items]
    assert ids == sorted(set(ids), key=order.index)
    assert [item.run.run_id for item in sampled(items, 95, seed=0)] == order
