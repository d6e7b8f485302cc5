"""A byte of the warehouse's file is flipped, anywhere: each verb gives the right answer, or says that it is damaged."""

import contextlib
import io
import json
import os
import random
import shutil

import pytest

from flows.cli import run
from tasks.warehouse.runs import RunRecord, record_run

HEADER_BYTES = 3 * 4096
ADVICE = "bring back a copy with 'whorl warehouse restore', or make it again from the landing folder with 'whorl "
HASHES = ["warehouse", "hashes", "--json"]
QUERY = ["query", "SELECT * FROM jobs.runs ORDER BY run_id", "--json"]
QUICK = [HASHES, QUERY, ["jobs", "summary", "--source", "log", "--json"]]
ALL = [*QUICK, ["report", "jobs", "--source", "log"], ["runs", "list", "--json"], ["models", "list", "--json"]]


@pytest.fixture
def filled(warehouse, put_in, noon):
    """Two files of some hundred runs, one row of them refused, and a run of a flow."""
    for file in ("a", "b"):
        rows = [
            {"run_id": f"{file}{at}", "runtime_s": 10.0 + at % 7, "group_key": f"job {at % 5}", "submitted_at": noon}
            for at in range(300)
        ]
        put_in(warehouse, rows, f"{file}.csv", refused=[{"place": 900, "reason": "odd", "raw": "?"}])
    record_run(
        warehouse,
        RunRecord(
            run_id="r1", flow="jobs-ingest", word="jobs", source="log", status="completed", started_at=noon,
            ended_at=noon, parameters={}, figures={},
        ),
    )  # fmt: skip
    return warehouse


def ended(warehouse, arguments):
    """Exit code, stdout and stderr of a command in this process; the home folder is called HOME."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(["--home", str(warehouse.home), *arguments])
    return code, out.getvalue().replace(str(warehouse.home), "HOME"), err.getvalue()


def faults_of(warehouse, verbs, expected):
    """What went wrong with the verbs on a damaged file; empty if nothing did."""
    faults = []
    for verb in verbs:
        code, out, err = ended(warehouse, verb)
        is_told = code == 6 and ADVICE in err and err.count("\n") == 1
        if not (is_told or (code == 0 and out == expected[verb[0], verb[1]])):
            faults.append(f"{verb}: {code} {out[:200]} {err[:300]}")
    return faults


def in_child(act):
    """What a function returns in a forked process; how that ended if it gave no answer."""
    read_end, write_end = os.pipe()
    if (child := os.fork()) == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            answer = json.dumps(act())
        except BaseException as error:
            answer = json.dumps([f"{type(error).__name__}: {error}"])
        os.write(write_end, answer.encode()[:60_000])
        os._exit(0)
    os.close(write_end)
    with os.fdopen(read_end) as pipe:
        text = pipe.read()
    _, status = os.waitpid(child, 0)
    return json.loads(text) if text else [f"ended with status {status}"]


def places_of(n_bytes, n, rng):
    """Places in the headers, and as many in each part of the rest."""
    step = (n_bytes - HEADER_BYTES) // n
    return [0, 9, 4100, 8200, *(HEADER_BYTES + at * step + rng.randrange(step) for at in range(n))]


@pytest.mark.parametrize(("n", "verbs"), [(12, QUICK[:1]), pytest.param(400, ALL, marks=pytest.mark.slow)])
def test_a_flipped_byte_gives_the_right_rows_or_is_told(filled, tmp_path, n, verbs):
    expected = {}
    for verb in [*verbs, *verbs]:  # twice: a summary is kept in the warehouse
        code, expected[verb[0], verb[1]], err = ended(filled, verb)
        assert code == 0, err
    sound = filled.file.read_bytes()
    faults = {}
    for place in places_of(len(sound), n, random.Random(2026)):
        damaged = filled.model_copy(update={"home": tmp_path / "damaged" / "home"})
        shutil.copytree(filled.home, damaged.home)
        with damaged.file.open("r+b") as file:
            file.seek(place)
            file.write(bytes([sound[place] ^ 0xFF]))
        if found := in_child(lambda: faults_of(damaged, verbs, expected)):  # noqa: B023
            faults[place] = found
        shutil.rmtree(damaged.home)
    assert faults == {}
