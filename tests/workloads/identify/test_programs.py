"""What programs say beside counters, worked out by hand, and what they do to an answer."""

from dataclasses import replace

import numpy as np
import pytest

from tasks.workloads.identify.identification import identify
from tasks.workloads.identify.model import fit_model, load_model, save_model
from tasks.workloads.identify.programs import (
    ProgramEvidence,
    evidence_of,
    learn_programs,
    program_of,
    reasons_of,
    weighed,
)
from tasks.workloads.params import IdentifyParams
from tasks.workloads.telemetry import Counter, Telemetry

RAN = {
    "redis": {"redis-server": 0.6, "redis-benchmark": 0.4},
    "mariadb": {"mariadbd": 0.8, "sysbench": 0.2},
    "nginx": {"nginx": 0.5, "wrk": 0.5},
    "cnn": {"python3.11": 1.0},
}


def run_of(workload, **processes):
    named = {name.replace("_", "-"): share for name, share in processes.items()}
    counter = Counter("own.cpu.user_cores", scope="workload")
    return Telemetry("one", (counter,), np.zeros(0), np.zeros((0, 1)), workload=workload, processes=named)


@pytest.fixture(scope="module")
def learned(case):
    return fit_model([replace(run, processes=RAN[run.workload]) for run in case.train], IdentifyParams())


@pytest.mark.parametrize(
    ("name", "program"),
    [("python3.11", "python"), ("php-fpm8.2", "php-fpm"), ("cc1plus", "cc"), ("gcc-12", "gcc"), ("7z", "7z")],
)
def test_a_program_is_called_the_same_in_each_version(name, program):
    assert program_of(name) == program


def test_a_workload_keeps_the_largest_share_of_each_program_and_no_shell():
    runs = [
        run_of("redis", redis_server=0.5, redis_benchmark=0.495, sh=0.005),
        run_of("redis", redis_server=0.7, tail=0.001, sh=0.299),
        run_of("idle", sleep=1.0),
        run_of("bayes"),
        replace(run_of("nginx", nginx=1.0), counters=(Counter("cpu.user_cores"),)),
    ]
    assert learn_programs(runs) == {"redis": {"redis-server": 0.7, "redis-benchmark": 0.495}}


def test_what_programs_say_is_the_common_time_by_whose_program_it_is():
    """mariadbd had 0.6 and 0.2 of the time: of 0.4, 0.6 / (0.6 + 0.2) speak for mariadb, and 0.2 / 0.8 of 0.2 for
    wordpress. php-fpm proves nothing, but 0.4 of it is as in wordpress. What a shell has started is no evidence."""
    learned = {"mariadb": {"mariadbd": 0.6, "sysbench": 0.4}, "wordpress": {"php-fpm": 0.8, "mariadbd": 0.2}}
    said = evidence_of({"mariadbd": 0.4, "php-fpm8.2": 0.4, "started by sh": 0.2}, learned)
    assert said["mariadb"] == ProgramEvidence(pytest.approx(0.3), pytest.approx(0.4))
    assert said["wordpress"] == ProgramEvidence(pytest.approx(0.05), pytest.approx(0.2))
    assert evidence_of({}, learned) == evidence_of({"sh": 1.0}, learned) == evidence_of({"redis-server": 1.0}, {}) == {}


def test_evidence_adds_up_in_log_odds_within_bounds():
    """Counters: even odds at their limit; four log odds at most. Programs: 8 for all of the time, 1.5 against it."""
    assert weighed(0.5, 0.5, ProgramEvidence()) == pytest.approx(0.5)
    assert weighed(0.5, 0.5, ProgramEvidence(0.5, 0.5)) == pytest.approx(1 / (1 + np.exp(4 - 0.75)))
    assert weighed(1.0, 0.5, ProgramEvidence(1.0, 0.0)) == pytest.approx(1 / (1 + np.exp(4.0)))
    assert weighed(0.3, 0.3, ProgramEvidence(0.0, 1.0)) == pytest.approx(1 / (1 + np.exp(-1.5)))


def test_without_programs_the_answer_is_that_of_counters(case, learned):
    for run in [*case.test, *case.strangers]:
        one, other = identify(run, learned), identify(run, case.model)
        assert one == other
        named = identify(replace(run, processes={"redis-server": 1.0}), case.model)
        assert named == other  # a model that knows no programs


def test_programs_name_what_counters_do_not_know_and_the_answer_says_so(case, learned):
    run = next(one for one in case.strangers if not identify(one, learned).is_known)
    found = identify(replace(run, processes={"redis-server": 0.55, "redis-benchmark": 0.45}), learned)
    assert (found.statement, found.workload, found.view) == ("known", "redis", "own")
    assert found.confidence == pytest.approx(1 - found.unknown_score) and found.confidence > 0.5
    assert found.reasons[0] == "redis-server took 55.0 % of its processor time, as in redis"
    assert "its counters alone say unknown" in found.reasons


def test_programs_that_nobody_learned_speak_against_a_known_workload(case, learned):
    for run in case.test:
        plain = identify(run, learned)
        foreign = identify(replace(run, processes={"ffmpeg": 1.0}), learned)
        assert foreign.unknown_score > plain.unknown_score or plain.unknown_score < 1e-6
        assert foreign.reasons[0] == "ffmpeg took 100.0 % of its processor time: no learned run tells of it"
    odds = ProgramEvidence(*[0.0, 1.0]).log_odds
    assert -4 < odds < 0  # clear counters are not outvoted by a new name


def test_an_interpreter_proves_nothing_but_speaks_against_what_does_not_run_it(case, learned):
    python = {"python3": 1.0}
    said = evidence_of(python, learned.programs)
    assert said["cnn"] == ProgramEvidence(0, 0) and said["redis"].refutes == pytest.approx(1)
    stranger = next(one for one in case.strangers if not identify(one, learned).is_known)
    assert not identify(replace(stranger, processes=python), learned).is_known
    [line] = reasons_of(python, learned.programs)
    assert line == "python3 took 100.0 % of its processor time, as in cnn, and may run anything"


def test_a_client_alone_is_not_its_server():
    said = evidence_of({"sysbench": 1.0}, RAN)["mariadb"]
    assert said.log_odds == pytest.approx(8 * 0.2 - 1.5 * 0.8)  # weighs little beside counters


def test_a_saved_model_keeps_programs(learned, tmp_path):
    save_model(learned, tmp_path)
    assert load_model(tmp_path).programs == learned.programs
    assert learned.programs["cnn"] == {"python": 1.0}
