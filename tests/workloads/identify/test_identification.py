"""What is said of a run, how sure, and why in words."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from tasks.errors import BadInput
from tasks.workloads.evaluate.conditions import superposed
from tasks.workloads.identify.counters import means_of
from tasks.workloads.identify.fingerprints import best_sum, sums_of
from tasks.workloads.identify.identification import identify, identify_all, name_in_words, surest, value_in_words
from tasks.workloads.identify.model import fit_model
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Counter, Telemetry
from tests.workloads.identify.synthetic import draw_kin, draw_runs, draw_workload, shuffled

CORES = ("cpu.user_cores", "cpu.system_cores", "cpu.idle_cores", "cpu.steal_cores")
OWN_CORES = ("own.cpu.user_cores", "own.cpu.system_cores")


def numbers(runs, model):
    found = identify_all(runs, model, with_reasons=False)
    return np.array([[one.confidence, one.unknown_score, one.nearest[0].distance] for one in found])


def with_cores(run, machine, own):
    """The run with counters of time on the processor: busy, system, idle and stolen cores; those of the group."""
    counters = [Counter(name, "core-seconds", is_rate=True) for name in CORES]
    counters += [Counter(name, "core-seconds", is_rate=True, scope="workload") for name in OWN_CORES]
    columns = np.tile([*machine, *own], (run.n_samples, 1))
    return replace(run, counters=(*run.counters, *counters), values=np.column_stack([run.values, columns]))


def test_runs_of_known_workloads_are_named(case):
    for run, one in zip(case.test, identify_all(case.test, case.model), strict=True):
        assert (one.statement, one.workload, one.view) == ("known", run.workload, "own")
        assert one.nearest[0].workload == run.workload
        assert one.is_known and one.proxy is None and 0.5 < one.confidence <= 1
        assert [part.workload for part in one.present] == [run.workload]
        assert f", as in {run.workload} (" in one.reasons[0]  # what matched comes first


def test_a_stranger_is_unknown_and_told_with_its_nearest(case):
    found = identify_all(case.strangers, case.model)
    assert np.mean([one.statement == "unknown" for one in found]) > 0.9
    for one in found:
        if one.statement == "unknown":
            assert one.workload is None and one.confidence == one.unknown_score and one.present == ()
            assert one.proxy == one.nearest[0].workload
            assert "labelled runs of it" in one.surer[-1]
            assert " against " in one.reasons[0]  # what differs comes first


def test_an_idle_machine_stands_for_nothing_that_is_unknown(case):
    learned = [replace(run, workload="idle") if run.workload == "nginx" else run for run in case.train]
    for one in identify_all(case.strangers, fit_model(learned, IdentifyParams()), view="machine"):
        assert (one.statement, one.nearest[0].workload, one.proxy) == ("unknown", "idle", one.nearest[1].workload)


def test_few_workloads_teach_no_surer_names_than_are_right():
    """Four workloads, three runs of each; of five that are asked about one is new, and kin of a known one."""
    rng = np.random.default_rng(0)
    workloads = [draw_workload(name, 30, 3, rng) for name in ("redis", "mariadb", "nginx", "cnn")]
    learned = [replace(run, round=None) for run in draw_runs(workloads, 3, rng, noise=0.4)]
    asked = draw_runs([*workloads, draw_kin(workloads[0], "postgresql", rng)], 6, rng, noise=0.4)
    model = fit_model(learned, IdentifyParams())
    for view in ("own", "machine"):
        answers = identify_all(asked, model, view=view, with_reasons=False)
        is_right = [(one.workload or "postgresql") == run.workload for one, run in zip(answers, asked, strict=True)]
        assert abs(np.mean([one.confidence for one in answers]) - np.mean(is_right)) < 0.12
        assert max(one.confidence for one in answers if one.is_known) <= surest(4, 4)
    assert [surest(n, n) for n in (1, 4, 9)] == [0.75, 0.9, 0.95]


@pytest.mark.parametrize("view", ["own", "machine"])
def test_names_that_were_mixed_up_among_the_learned_runs_are_no_surer_than_those_were(view):
    """Of two of three workloads nothing but the label differs; then one run of each, so that none can be held out."""
    rng = np.random.default_rng(0)
    twin, other = (draw_workload(name, 30, 3, rng) for name in ("redis", "nginx"))
    of_both, of_other = (draw_runs([of], 9, rng, rounds=4, noise=0.2) for of in (twin, other))
    learned = [*of_other, *(replace(run, workload=("redis", "xz")[at // 4 % 2]) for at, run in enumerate(of_both))]
    once = [learned[at] for at in (0, 9, 13)]
    mixed, alone = (fit_model(runs, IdentifyParams()) for runs in (learned, once))
    n_right, n_tried = mixed.views[view].named
    assert n_tried >= 8 and n_right < n_tried and alone.views[view].named == (0, 0)
    asked = draw_runs([twin], 6, rng, noise=0.2)
    for model, most, why in (
        (mixed, surest(n_right, n_tried), f"of {n_tried} that were held out {n_right} were named rightly"),
        (alone, 0.5, "none could be held out"),
    ):
        answers = [one for one in identify_all(asked, model, view=view, with_reasons=False) if one.is_known]
        assert answers and max(one.confidence for one in answers) <= most
        capped = [one for one in answers if one.confidence == most]
        assert all(f"more labelled runs of each workload: {why}" in one.surer for one in capped)


def test_what_is_alone_on_a_machine_is_known_or_unknown_and_both_add_up(case):
    answers = identify_all([*case.test, *case.strangers], case.model, view="machine", with_reasons=False)
    assert {one.statement for one in answers} == {"known", "unknown"}
    for one in answers:
        assert one.confidence == pytest.approx(
            min(1 - one.unknown_score, surest(4, 4)) if one.is_known else one.unknown_score
        )


def test_a_machine_without_a_group_is_asked_by_its_own_counters(case):
    run = case.test[0]
    kept = [at for at, counter in enumerate(run.counters) if counter.scope == "machine"]
    alone = replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])
    one = identify(alone, case.model)
    assert (one.view, one.workload) == ("machine", run.workload)
    assert one.surer[0].endswith("(--subject PID or CGROUP)")


def test_who_gave_a_process_is_not_told_to_give_one(case):
    run = case.test[0]
    own = next(at for at, counter in enumerate(run.counters) if counter.scope == "workload")
    kept = [at for at, counter in enumerate(run.counters) if counter.scope == "machine" or at == own]
    shared = replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])
    one = identify(shared, case.model)
    assert one.view == "machine"
    assert one.surer[0] == "a control group for it alone (systemd-run --scope PROGRAM)"


def test_two_workloads_on_one_machine_are_both_named(case):
    redis, nginx = (next(run for run in case.test if run.workload == name) for name in ("redis", "nginx"))
    [one] = identify_all([superposed(redis, nginx, 1.0, {})], case.model, view="machine")
    assert {part.workload for part in one.present} == {"redis", "nginx"}
    assert sum(part.share for part in one.present) == pytest.approx(1)
    assert one.confidence == one.present[0].probability
    assert ", as in both together (" in one.reasons[0]  # what only one of them does speaks against neither
    assert not any(" against " in reason for reason in one.reasons)


def test_reasons_are_held_against_the_named_parts_of_a_sum_alone(case):
    redis, nginx, cnn = (next(run for run in case.test if run.workload == name) for name in ("redis", "nginx", "cnn"))
    run, view = superposed(superposed(redis, nginx, 1.0, {}), cnn, 0.12, {}), case.model.views["machine"]
    found = best_sum(sums_of(means_of([run], view.counters)[0], view.library), view.library)
    assert [part.workload for part in found.parts][2:] == ["cnn"]  # it is seen, and weighs too little to be named
    [one] = identify_all([run], case.model, view="machine")
    assert {part.workload for part in one.present} == {"redis", "nginx"}
    assert any(" both together" in line for line in one.reasons) and "all three" not in "".join(one.reasons)


def test_others_on_the_machine_change_nothing_for_a_group(case):
    redis, nginx = (next(run for run in case.test if run.workload == name) for name in ("redis", "nginx"))
    one, other = (identify(run, case.model) for run in (redis, superposed(redis, nginx, 1.0, {})))
    assert (one.workload, one.confidence) == (other.workload, other.confidence)


def test_the_answer_says_what_others_and_the_hypervisor_took(case):
    one = identify(with_cores(case.test[0], (1.5, 0.1, 1.9, 0.5), (0.7, 0.1)), case.model)
    assert one.foreign_share == pytest.approx(0.8 / 4) and one.stolen_share == pytest.approx(0.5 / 4)
    assert "the same while others take less of the machine" in one.surer
    assert identify(case.test[0], case.model).foreign_share is None


def on_machine(run, **means):
    """The run with other counters of the machine alone, of these means."""
    kept = [at for at, counter in enumerate(run.counters) if counter.scope == "machine"]
    counters = (*(run.counters[at] for at in kept), *map(Counter, means))
    columns = np.tile([*means.values()], (run.n_samples, 1))
    return replace(run, counters=counters, values=np.column_stack([run.values[:, kept], columns]))


def percent(n_cores, idle):
    """As sar has it: of all cores together, and of each."""
    cores = {f"cpu.{at}.pct_idle": idle for at in range(n_cores)}
    return {"cpu.all.pct_usr": 99.5 - idle, "cpu.all.pct_idle": idle, "cpu.all.pct_steal": 0.5} | cores


def in_cores(n_cores, idle, prefix, suffix=""):
    """As whorl and Prometheus' node exporter have it."""
    parts = {"user": 99.5 - idle, "idle": idle, "steal": 0.5}
    return {f"{prefix}{name}{suffix}": n_cores * part / 100 for name, part in parts.items()}


@pytest.mark.parametrize(
    "counted",
    [percent, partial(in_cores, prefix="cpu.", suffix="_cores"), partial(in_cores, prefix="node_cpu_seconds.mode_")],
)
def test_a_machine_is_idle_by_anybodys_counters_unless_a_program_keeps_one_of_many_cores_busy(case, counted):
    stranger = case.strangers[0]
    calm, busy, one_of_64 = (
        identify(on_machine(stranger, **counted(*of)), case.model) for of in ((2, 98.5), (2, 60.0), (64, 98.0))
    )
    assert (calm.statement, busy.statement, one_of_64.statement) == ("idle", "unknown", "unknown")
    assert calm.stolen_share == pytest.approx(0.005)
    uncounted = identify(on_machine(stranger, **percent(0, 98.5)), case.model)  # how many cores, nobody says
    assert (uncounted.statement, uncounted.stolen_share) == ("unknown", pytest.approx(0.005))
    cores = "how many cores the machine has (sar -P ALL): it may be idle"
    at_work = identify(on_machine(stranger, **percent(0, 60.0)), case.model)
    assert [cores in answer.surer for answer in (uncounted, one_of_64, at_work)] == [True, False, False]


def test_what_a_model_cannot_hear_is_not_asked_for(case):
    without_groups = fit_model([on_machine(run) for run in case.train], IdentifyParams())
    known = on_machine(case.test[0])
    assert identify(known, case.model).surer[0].endswith("(--subject PID or CGROUP)")
    answer = identify(known, without_groups)
    assert answer.is_known and not any("group" in line for line in answer.surer)


def test_a_name_that_more_workloads_would_make_surer_says_so(case):
    n_known = len(case.model.workloads)
    line = f"more learned workloads: of {n_known} the counters make no name surer"
    answers = identify_all([*case.test, *case.strangers], case.model)
    says = [line in answer.surer for answer in answers]
    assert says == [answer.is_known and answer.confidence == surest(n_known, n_known) for answer in answers]
    assert 0 < sum(says) < len(says)


def test_a_run_of_fifteen_seconds_is_not_asked_for_fifteen(case):
    [run, short] = (replace(run, at_s=run.at_s[:n], values=run.values[:n]) for run in case.test[:1] for n in (15, 14))
    jittered = replace(run, interval_s=0.99999)
    assert "at least 15 s of it" not in identify(jittered, case.model).surer
    assert "at least 15 s of it" in identify(short, case.model).surer


def test_a_group_that_waits_for_its_turn_or_for_the_disk_is_not_idle(case):
    quiet = with_cores(case.strangers[0], (1.5, 0.1, 2.4, 0.0), (0.001, 0.0))
    switches = Counter("own.perf.context_switches", "switches", is_rate=True, scope="workload")
    counters, width = (*quiet.counters, switches), quiet.values.shape[1]
    waiting, still, uncounted = (
        replace(quiet, counters=counters, values=np.insert(quiet.values, width, rate, axis=1))
        for rate in (600.0, 20.0, np.nan)
    )
    answers = identify_all([waiting, still, uncounted], case.model)
    assert [one.statement for one in answers] == ["unknown", "idle", "idle"]
    assert (answers[1].workload, answers[1].is_known, answers[1].reasons) == ("idle", True, ())


def test_the_order_of_runs_and_counters_changes_nothing(case):
    rng = np.random.default_rng(0)
    other = fit_model(shuffled(case.train, rng), IdentifyParams())
    again = sorted(shuffled(case.test, rng), key=lambda run: run.run_id)
    test = sorted(case.test, key=lambda run: run.run_id)
    np.testing.assert_allclose(numbers(again, other), numbers(test, case.model), rtol=1e-9, atol=1e-12)


def test_a_run_is_judged_the_same_alone_and_among_others(case):
    np.testing.assert_allclose(numbers(case.test[:1], case.model), numbers(case.test, case.model)[:1], rtol=1e-9)


def test_a_counter_in_another_unit_changes_next_to_nothing(case):
    def in_other_units(run):
        factors = np.where(np.arange(len(run.counters)) % 2 == 0, 1000.0, 1.0)
        return replace(run, values=run.values * factors)

    other = fit_model([in_other_units(run) for run in case.train], IdentifyParams())
    runs = [in_other_units(run) for run in case.test]
    np.testing.assert_allclose(numbers(runs, other), numbers(case.test, case.model), rtol=1e-4)


def test_a_run_without_the_counters_of_any_view_is_refused(case):
    with pytest.raises(BadInput, match="lacks 10 of 10 counters"):
        identify(Telemetry("r", (Counter("x"),), np.arange(3.0), np.ones((3, 1))), case.model)


def test_a_run_that_lacks_some_counters_is_identified_without_them(case):
    run = case.test[0]
    lost = next(at for at, counter in enumerate(run.counters) if counter.scope == "workload")
    kept = [at for at in range(len(run.counters)) if at != lost]
    poorer = replace(run, counters=tuple(run.counters[at] for at in kept), values=run.values[:, kept])
    one = identify(poorer, case.model)
    assert (one.view, one.missing, one.workload) == ("own", (run.counters[lost].name,), run.workload)
    most = [at for at in range(len(run.counters)) if run.counters[at].scope == "machine" or at == lost]
    poorest = replace(run, counters=tuple(run.counters[at] for at in most), values=run.values[:, most])
    assert identify(poorest, case.model).view == "machine"


FLUSHES = Counter("disk.flushes", "requests", is_rate=True)


@pytest.mark.parametrize(
    ("counter", "value", "words"),
    [
        (FLUSHES, 310.2, "310 a second"),
        (Counter("disk.read_bytes", "B", is_rate=True), 4_120_000, "4.12 MB a second"),
        (Counter("own.memory.resident_bytes", "B", scope="workload"), 2_048, "2.05 kB"),
        (Counter("cpu.user_cores", "core-seconds", is_rate=True), 1.7777, "1.78 cores"),
        (Counter("cpu.running_tasks", "tasks"), 12, "12 tasks"),
        (Counter("disk.busy_s", "s", is_rate=True), 0.25, "0.25 s a second"),
        (Counter("x"), 0.0, "0"),
        (Counter("x"), 1234567, "1,230,000"),
        (Counter("x"), 0.00012345, "0.000123"),
        (Counter("x"), 1.2e-7, "0.00000012"),
        (Counter("x"), -42.26, "-42.3"),
        (Counter("x"), float("nan"), "no value"),
    ],
)
def test_values_have_three_digits_and_their_unit(counter, value, words):
    assert value_in_words(value, counter) == words


def test_names_are_words():
    assert name_in_words(FLUSHES) == "disk flushes"
    assert name_in_words(Counter("own.cpu.user_cores", scope="workload")) == "cpu user of its own"


def test_a_counter_that_was_changed_is_the_first_that_differs(case):
    """One counter of a known run, times a thousand: that is what must be said, with both values."""
    run = case.test[0]
    at = next(at for at, counter in enumerate(run.counters) if counter.scope == "workload")
    values = run.values.copy()
    values[:, at] *= 1000
    found = identify(replace(run, values=values), case.model)
    differing = [line for line in found.reasons if " against " in line]
    assert differing[0].startswith(name_in_words(run.counters[at]))
    assert " a second against " in differing[0] and differing[0].endswith(f"of {run.workload}")


def test_a_run_that_is_the_known_one_differs_in_nothing(case):
    found = identify(case.train[0], case.model)
    assert (
        found.reasons[-1]
        == f"no counter by itself differs from {case.train[0].workload} by more than runs of one workload do"
    )
