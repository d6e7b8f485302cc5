"""How far recorded doses moved their benchmarks: by hand on small parts, and one line for what is no recording."""

import json
import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, Measured
from tasks.nodes.landed import write_part
from tasks.nodes.record.recorded_doses import main, moved_by
from tasks.nodes.record.recorded_rows import read_recorded

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
            measured = (Measured("other", 99.0, ""), Measured(metric, value, facts.pop("unit")))
            executions.append(Execution(facts, measured))
        write_part(tmp_path / name, executions)
        return tmp_path

    return write


def moved(folder):
    return {(one.benchmark, one.node, one.level): one for one in moved_by(read_recorded(folder))}


CALM = [("a", CPU, 0, 8.0), ("a", CPU, 0, 10.0), ("a", CPU, 0, 12.0)]  # mean 10, sample deviation 2


def test_the_distance_is_in_deviations_of_the_unstressed_executions_of_the_same_node(part):
    # stressed on a: mean 4, three deviations of 2 below 10; on b: mean 80, two of 10 below 100
    other = [("b", CPU, 0, 90.0), ("b", CPU, 0, 100.0), ("b", CPU, 0, 110.0), ("b", CPU, 2, 80.0)]
    folder = part("executions-0001.parquet", *CALM, ("a", CPU, 2, 3.0), *other, ("a", CPU, 2, 5.0))
    found = moved(folder)
    one = found[CPU, "a", 2]
    assert (one.sd, one.ratio, one.n, one.n_unstressed) == (pytest.approx(-3.0), pytest.approx(0.4), 2, 3)
    assert (one.metric, one.doses) == ("events_per_second", ("dose-2",))
    assert (found[CPU, "b", 2].sd, found[CPU, "b", 2].ratio) == (pytest.approx(-2.0), pytest.approx(0.8))
    assert (found[CPU, "a", 1].n, math.isnan(found[CPU, "a", 1].sd)) == (0, True)


def test_values_are_compared_in_one_unit_whatever_the_tool_wrote(part):
    # 1024, 2048, 3072 MiB/s: mean 2 GiB/s, deviation 1 GiB/s
    calm = [("a", MEMORY, 0, 1024.0 * times) for times in (1, 2, 3)]
    folder = part("executions-0001.parquet", *calm, ("a", MEMORY, 3, 1.0, {"unit": "GiB/sec"}))
    found = moved(folder)[MEMORY, "a", 3]
    assert (found.sd, found.ratio) == (pytest.approx(-1.0), pytest.approx(0.5))


def test_results_of_two_templates_are_never_compared(part, capsys):
    part("executions-0001.parquet", *[(*one, {"template_hash": "a" * 64}) for one in CALM])
    folder = part("flagged-0001.parquet", ("b", CPU, 0, 80.0, {"template_hash": "b" * 64}))
    with pytest.raises(SystemExit) as ended:
        main([str(folder)])
    assert ended.value.code
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "cpu-sysbench has 2 templates (aaaaaaaa, bbbbbbbb)" in said


def test_stress_that_was_not_applied_is_left_out_and_counted_wherever_it_lies(part):
    idle = {"is_stressed": False}
    part("executions-0001.parquet", *CALM, ("a", CPU, 1, 8.0), ("a", CPU, 1, 10.0, idle))
    folder = part("flagged-0001.parquet", ("a", CPU, 1, 10.0, idle), ("a", CPU, 3, 1.0, idle))
    found = moved(folder)
    assert (found[CPU, "a", 1].sd, found[CPU, "a", 1].n) == (pytest.approx(-1.0), 1)
    assert [found[CPU, "a", level].n_not_applied for level in (1, 2, 3)] == [2, 0, 1]


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


def test_json_has_the_same_figures_and_null_where_there_is_none(part, capsys):
    folder = part("executions-0001.parquet", *CALM, ("a", CPU, 2, 4.0))
    main([str(folder), "--json"])
    told = json.loads(capsys.readouterr().out)
    assert [(one["level"], one["sd"], one["ratio"], one["n"]) for one in told["doses"]] == [
        (1, None, None, 0),
        (2, pytest.approx(-3.0), pytest.approx(0.4), 1),
        (3, None, None, 0),
    ]
    assert told["executions"] == [{"node": "a", "benchmark": CPU, "n_undisturbed": 4, "n_flagged": 0}]


def test_two_unstressed_executions_are_too_few_for_a_spread_and_not_for_a_ratio(part):
    found = moved(part("executions-0001.parquet", *CALM[:2], ("a", CPU, 1, 4.5)))[CPU, "a", 1]
    assert (math.isnan(found.sd), found.ratio) == (True, pytest.approx(0.5))


def other_columns(path):
    pq.write_table(pa.table({"execution_id": ["e1"], "node": ["a"]}), path)


def other_types(path):
    write_part(path, [])
    table = pq.read_table(path)
    at = table.schema.get_field_index("metrics")
    pq.write_table(table.set_column(at, "metrics", pa.array([], pa.int64())), path)


def no_node(path):
    write_part(path, [Execution({"execution_id": "e1", "benchmark": CPU}, ())])


@pytest.mark.parametrize(
    ("spoil", "problem"),
    [
        (lambda path: path.write_bytes(b"PAR1 and no more"), "cannot be read"),
        (lambda path: path.write_bytes(b""), "cannot be read"),
        (other_columns, "cannot be read"),
        (other_types, "cannot be read"),
        (no_node, "a row without node"),
        (lambda path: path.rename(path.with_name("other.parquet")), "no parts of a recording"),
    ],
)
def test_what_is_no_recording_is_one_line_and_a_failure(part, capsys, spoil, problem):
    folder = part("executions-0001.parquet", *CALM)
    spoil(folder / "executions-0001.parquet")
    with pytest.raises(SystemExit) as ended:
        main([str(folder)])
    told = capsys.readouterr()
    assert (ended.value.code, told.out) == (BadInput.exit_code, "")
    assert problem in told.err
    assert told.err.count("\n") == 1
    assert "; expected parts of whorl's recorder (executions-0001.parquet); " in told.err


def test_a_folder_that_is_not_there_is_named(tmp_path):
    with pytest.raises(BadInput, match="nowhere: no parts of a recording"):
        read_recorded(tmp_path / "nowhere")
