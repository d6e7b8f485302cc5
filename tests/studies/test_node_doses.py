"""How far doses move benchmarks: by hand and on small parts, the ladder that follows, one line for what is none."""

import pytest

from tasks.nodes.execution import Execution, MetricValue, write_part
from tasks.nodes.record.params import Dose
from tests.studies.node_doses import distance_sd, main, moved_by, read_recorded


def dose(name):
    return Dose(benchmark="cpu-fake", level=1, name=name)


def test_the_distance_is_that_of_the_means_in_deviations_of_the_unstressed():
    # mean 10, sample deviation of 8, 10, 12 is 2; stressed mean 4: three deviations below
    assert distance_sd([3.0, 5.0], [8.0, 10.0, 12.0]) == pytest.approx(-3.0)


CPU, MEMORY = "cpu-sysbench", "memory-sysbench"
METRICS = {CPU: ("events_per_second", ""), MEMORY: ("transfer_rate", "MiB/sec"), "disk-ioping": ("latency_avg", "ms")}


@pytest.fixture
def part(tmp_path):
    """A function that writes a part: each execution is node, benchmark, level, value, and what else it is."""

    def write(name, *asked):
        executions = []
        for node, benchmark, level, value, *more in asked:
            metric, unit = METRICS.get(benchmark, ("speed", "MB/s"))
            facts = {
                "execution_id": f"{name}-{len(executions)}", "node": node, "benchmark": benchmark,
                "aspect": "cpu", "status": "completed", "stress_wanted": level > 0, "is_stressed": level > 0,
                "dose": f"dose-{level}" if level else "", "dose_level": level, "unit": unit,
            } | dict(*more)  # fmt: skip
            measured = (MetricValue("other", 99.0, ""), MetricValue(metric, value, facts.pop("unit")))
            executions.append(Execution(facts, measured))
        write_part(tmp_path / name, executions)
        return tmp_path

    return write


def moved(folder):
    return {(one.benchmark, one.node, one.level): one for one in moved_by(read_recorded(folder))}


CALM = [("a", CPU, 0, 8.0), ("a", CPU, 0, 10.0), ("a", CPU, 0, 12.0)]  # mean 10, sample deviation 2


def test_results_of_two_templates_are_never_compared(part, capsys):
    part("executions-0001.parquet", *[(*one, {"template_hash": "a" * 64}) for one in CALM])
    folder = part("flagged-0001.parquet", ("b", CPU, 0, 80.0, {"template_hash": "b" * 64}))
    with pytest.raises(SystemExit) as ended:
        main([str(folder)])
    assert ended.value.code
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cpu-sysbench has 2 templates (aaaaaaaa, bbbbbbbb)" in said


def test_disturbed_and_failed_executions_change_no_distance_and_are_counted(part, capsys):
    part("executions-0001.parquet", *CALM, ("a", CPU, 1, 8.0), ("a", CPU, 1, 0.0, {"status": "failed"}))
    part("executions-0002.parquet", ("b", "cpu-fake", 0, 1.0))
    folder = part("flagged-0001.parquet", ("a", CPU, 0, 500.0), ("a", CPU, 1, 500.0))
    found = moved(folder)
    assert (found[CPU, "a", 1].sd, found[CPU, "a", 1].n, found[CPU, "a", 1].n_not_applied) == (pytest.approx(-1), 1, 0)
    assert {benchmark for benchmark, _, _ in found} == {CPU}  # of the other no metric is watched
    main([str(folder)])
    line = "Executions, undisturbed + flagged, 6 + 2 in all: a: cpu-sysbench 5 + 2; b: cpu-fake 1 + 0"
    assert capsys.readouterr().out.splitlines()[-1] == line


def test_the_table_has_a_row_for_each_benchmark_and_node(part, capsys):
    latency = [("a", "disk-ioping", 0, value) for value in (2.0, 3.0, 4.0)]
    strong = ("a", CPU, 3, 2.0, {"is_stressed": False})
    folder = part("executions-0001.parquet", *latency, ("a", "disk-ioping", 1, 4.5), *CALM, ("a", CPU, 2, 4.0), strong)
    main([str(folder)])
    assert capsys.readouterr().out.splitlines()[:4] == [
        "| benchmark | metric | node | unstressed | dose 1: SD, ratio (n) | dose 2: SD, ratio (n) "
        "| dose 3: SD, ratio (n) | not applied |",
        "|---|---|---|---|---|---|---|---|",
        "| cpu-sysbench | events_per_second | a | 3 | –, – (0) | -3.0, 0.400 (1) | –, – (0) | 1 |",
        "| disk-ioping | latency_avg | a | 3 | +1.5, 1.500 (1) | –, – (0) | –, – (0) | 0 |",
    ]


def test_each_kind_stands_on_its_own_and_under_a_lowered_limit_only_beside_its_like(part, capsys):
    # before: mean 10, deviation 2; lowered: mean 5, deviation 1
    lowered = [("a", CPU, 0, value, {"dose": "lowered-cpu-80"}) for value in (4.0, 5.0, 6.0)]
    doses = ((8.0, "delay-relay-1"), (4.0, "delay-relay-1.lowered-cpu-80"))
    delay = [("a", CPU, 1, value, {"dose": dose}) for value, dose in doses]
    folder = part("executions-0001.parquet", *CALM, *lowered, *delay, ("a", CPU, 1, 2.0, {"dose": "two-cpu-disk-0.1"}))
    found = {(one.kind, one.level): one for one in moved_by(read_recorded(folder), by_kind=True)}
    assert (found["delay", 1].sd, found["delay", 1].n, found["delay", 1].n_unstressed) == (pytest.approx(-1.0), 2, 6)
    assert (found["two", 1].sd, found["two", 1].n) == (pytest.approx(-4.0), 1)
    main([str(folder), "--by-kind"])
    said = capsys.readouterr().out
    assert "| cpu-sysbench | delay | a | 6 | -1.0, 0.800 (2) | –, – (0) | –, – (0) | 0 |" in said
    assert "| delay | 1.0 (1.0 to 1.0) of 2 | nan (nan to nan) of 0 | nan (nan to nan) of 0 |" in said
    assert "cpu-sysbench on a, lowered-cpu-80: -2.5 SD, 0.500 of its value" in said
