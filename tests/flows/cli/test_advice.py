"""`whorl advice`."""

import json
from html import unescape
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tasks.warehouse.connection import transaction, writing
from tasks.warehouse.place import Warehouse

MACHINES = "machine_type,vcpu,memory_gb,price_per_h\na,2,4,0.1\nb,4,32,0.3\n"
HEADER = "job,machine_type,nodes,runtime_s,status\n"


@pytest.fixture
def machines(tmp_path: Path) -> str:
    path = tmp_path / "machines.csv"
    path.write_text(MACHINES)
    return str(path)


def test_ask_tell_and_ask_again_go_on_where_they_were(whorl, machines, tmp_path):
    history = tmp_path / "runs.csv"
    asked = ("advice", "search", "--history", history, "--machines", machines, "--job", "sort", "--json")
    first = json.loads(whorl(*asked).out)
    assert first["best"] is None
    ran = f"{first['machine_type']}:{first['nodes']}"
    second = json.loads(whorl(*asked, "--ran", ran, "--took", "20min").out)
    assert second["best"]["runtime_s"] == 1_200
    assert (second["machine_type"], second["nodes"]) != (first["machine_type"], first["nodes"])
    assert json.loads(whorl(*asked).out)["answer"] == second["answer"]
    again = whorl(*asked[:-1])
    assert again.out.startswith(second["answer"])
    assert "Runs so far" in again.out


def test_a_page_is_written_beside_the_answer(whorl, machines, tmp_path):
    history = tmp_path / "runs.csv"
    history.write_text(f"{HEADER}so<r>t,a,4,3600,completed\nso<r>t,b,4,600,completed\n")
    asked = ("--history", history, "--machines", machines, "--max-vcpu", "50", "--nodes", "2,4,8")
    ended = whorl("advice", "search", *asked, "--out", tmp_path / "out")
    [page] = (tmp_path / "out").glob("*.html")
    assert str(page) in ended.err
    assert "so<r>t" not in page.read_text()
    assert "so&lt;r&gt;t" in page.read_text()
    assert "--nodes 2,4,8 --max-vcpu 50" in page.read_text()  # whoever asks again asks the same


@pytest.mark.parametrize(
    ("rows", "options", "code", "problem"),
    [
        ("a,a,4,9,completed\nb,a,4,9,completed\n", [], 2, "name it with --job"),
        ("sort,z,4,9,completed\n", [], 3, "nothing about z"),
        ("sort,a,4,9,completed\n", ["--nodes", "4", "--max-vcpu", "8"], 2, "at least two to choose from"),
        ("sort,a,4,9,completed\n", ["--ran", "z:4", "--took", "9"], 2, "machine type 'z': not described"),
        ("sort,a,4,9,completed\n", ["--ran", "a"], 2, "expected TYPE:NODES"),
        ("sort,a,4,9,completed\n", ["--ran", "a:2"], 2, "--took: expected a time"),
        ("sort,a,4,9,completed\n", ["--max-runtime", "9q"], 2, "such as 90s, 30min or 1.5h"),
        ("sort,a,4,9,completed\n", ["--nodes", "2,x"], 2, "expected whole numbers"),
        ("sort,a,4,9,completed\n", ["--profile", "p.csv"], 2, "--profile needs --input-gb"),
        ("sort,a,4,9,completed\n", ["--memory-gb", "4", "--peaks-of", "log"], 2, "two memory needs"),
        ("", [], 3, "no row in it"),
    ],
)
def test_what_cannot_be_answered_is_one_line_and_changes_nothing(
    whorl, machines, tmp_path, rows, options, code, problem
):
    history = tmp_path / "runs.csv"
    history.write_text(HEADER + rows)
    ended = whorl("advice", "search", "--history", history, "--machines", machines, *options)
    assert ended.code == code
    assert problem in ended.err
    assert ended.out == ""
    assert history.read_text() == HEADER + rows


def test_peaks_in_the_warehouse_say_how_much_memory_a_job_needs(whorl, home, machines, tmp_path):
    rows = pd.DataFrame({"run_id": ["1", "2"], "peak": [60e9, 90e9]})
    with writing(Warehouse(home=home)) as connection, transaction(connection):
        connection.register("rows", rows)
        connection.execute(
            "INSERT INTO jobs.runs (source, run_id, batch_id, group_key, name, status, runtime_s, peak_memory_bytes, "
            "is_simulated) SELECT 'log', run_id, 'b', 'sort', 'sort', 'completed', 1.0, peak, false FROM rows"
        )
    asked = ("advice", "search", "--history", tmp_path / "runs.csv", "--machines", machines, "--job", "sort")
    ended = whorl(*asked, "--peaks-of", "log")
    assert "90 GB: the highest of 2 recorded peaks" in ended.out
    assert whorl(*asked[:-1], "other", "--peaks-of", "log").code == 4


def replayed(folder: Path) -> Path:
    """Runs of two jobs on two types with 2, 4 and 8 nodes."""
    rows = [f"{job},{kind},{n},{600 / n},completed" for job in ("sort_1", "join_1") for kind in "ab" for n in (2, 4, 8)]
    (folder / "runs.csv").write_text(HEADER + "\n".join(rows))
    return folder / "runs.csv"


def test_a_replay_prints_a_table_and_json_holds_the_same(whorl, machines, tmp_path):
    runs = replayed(tmp_path)
    asked = ("advice", "evaluate", runs, "--machines", machines, "--searches", "3", "--out", tmp_path / "out")
    text, figures = whorl(*asked).out, json.loads(whorl(*asked, "--json").out)
    assert "CherryPick" in text
    assert figures["completed.learned.hit.6"] == 1
    assert np.isclose(figures["completed.random.spent.6"], figures["completed.learned.spent.6"])  # all six
    assert (tmp_path / "out" / "advice-evaluation.html").is_file()
    assert len(figures["data_sha256"]) == 64
    assert figures["version"]


def test_a_replay_with_other_prices_or_needs_does_not_go_on_with_searches_of_before(whorl, machines, tmp_path):
    runs, needs = replayed(tmp_path), tmp_path / "needs.csv"
    needs.write_text("job,need_gb\nsort_1,100\njoin_1,100\n")
    asked = ("advice", "evaluate", runs, "--machines", machines, "--searches", "1", "--out", tmp_path / "out", "--json")
    first = json.loads(whorl(*asked).out)
    Path(machines).write_text(MACHINES.replace("0.3", "0.03"))
    dearer = json.loads(whorl(*asked).out)
    assert dearer["completed.random.spent.6"] != first["completed.random.spent.6"]
    whorl(*asked, "--needs", needs)
    needs.write_text("job,need_gb\nsort_1,1\njoin_1,1\n")
    whorl.done(*asked, "--needs", needs)
    assert len(list((tmp_path / "out" / "searches").iterdir())) == 4


def test_machines_are_grouped_labelled_and_tasks_assigned(whorl, tmp_path):
    scores = tmp_path / "fleet.csv"
    rows = [
        f"{name},{aspect},{level},{level * 0.97},{level * 1.03}"
        for name, level in (("n1", 4), ("n2", 4), ("n3", 1))
        for aspect in ("cpu", "memory")
    ]
    scores.write_text("\n".join(["node,aspect,score,low,high", *rows]) + "\n")
    trace = tmp_path / "trace.csv"
    trace.write_text("process,%cpu,peak_rss,rchar,wchar,realtime\nalign,800,9e9,1,1,1000\nplot,50,1e6,1,1,1000\n")
    script = tmp_path / "label.sh"
    asked = ("advice", "groups", "--scores", scores, "--traces", trace, "--kubectl", script)
    told = json.loads(whorl(*asked, "--json").out)
    assert told["answer"].startswith("3 machines are of 2 kinds: A (n1 and n2), B (n3)")
    assert [(one["task"], one["group"]) for one in told["assigned"]] == [("align", "A"), ("plot", "B")]
    assert "node n3 whorl.advice/group=B" in script.read_text()
    shown = whorl(*asked, "--seed", "3", "--out", tmp_path / "page")
    assert shown.out.startswith(told["answer"])
    [page] = (tmp_path / "page").glob("*.html")
    assert f"--traces {trace} --seed 3" in page.read_text()
    scores.write_text("node,aspect,score\nn1,cpu,1\n")
    refused = whorl("advice", "groups", "--scores", scores)
    assert (refused.code, "scores: 1 machine; expected at least 2 machines" in refused.err) == (3, True)


RECORDED = Path(__file__).parents[3] / "data/recorded/advice"


@pytest.fixture
def tables(tmp_path):
    """Runs of a job that is bound by the CPU, with names of their own, and three types with scores."""
    runtimes_s = 20 * np.exp(0.1 * np.random.default_rng(1).standard_normal(20))
    runs = pd.DataFrame({"task": "nightly", "machine_type": "m5", "runtime_s": runtimes_s, "cpu_s": runtimes_s})
    runs.to_csv(tmp_path / "runs.csv", index=False)
    kinds = [("m5", 1, 4, 0.2), ("slow", 1, 4, 0.05), ("fast", 1, 4, 0.5)]
    columns = ["machine_type", "vcpu", "memory_gb", "price_per_h"]
    pd.DataFrame(kinds, columns=columns).to_csv(tmp_path / "machines.csv", index=False)
    scores = [("m5", "cpu", 100), ("slow", "cpu", 50), ("fast", "cpu", 200)]
    pd.DataFrame(scores, columns=["machine_type", "aspect", "score"]).to_csv(tmp_path / "scores.csv", index=False)
    return tmp_path


def choose(whorl, tables, *more, deadline="1min"):
    asked = ("--history", tables / "runs.csv", "--machines", tables / "machines.csv", "--scores", tables / "scores.csv")
    return whorl("advice", "choose", *asked, "--deadline", deadline, "--map", "job=task", *more)


def test_the_answer_comes_first_then_how_sure_then_why_as_text_page_and_json(whorl, tables):
    said = choose(whorl, tables, "--late-share", "0.1", "--out", tables / "pages")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("Run nightly on slow: late in") and "% cheaper a run than m5" in lines[0]
    assert lines[1].startswith("80.0 % interval of the chance")
    assert "bound by CPU" in lines[2]
    assert "safe, dearer" in said.out
    page = (tables / "pages" / "advice-choose-nightly.html").read_text()
    assert "Run nightly on slow" in page and "--late-share 0.1" in page
    told = json.loads(choose(whorl, tables, "--json", deadline="18s").out)
    assert (told["machine_type"], told["source"], told["deadline_s"], told["n_runs"]) == ("fast", "m5", 18, 20)
    assert {one["machine_type"] for one in told["types"]} == {"m5", "slow", "fast"}


@pytest.mark.parametrize(
    ("more", "deadline", "said"),
    [
        (("--job", "other"), "30s", "other"),
        (("--source", "m9"), "30s", "job 'nightly' has no runs on 'm9'"),
        ((), "never", "expected a time above 0, such as 90s"),
        (("--recording", "."), "30s", "--recording has its own tables"),
    ],
)
def test_what_is_wrong_is_said_in_words(whorl, tables, more, deadline, said):
    ended = choose(whorl, tables, *more, deadline=deadline)
    assert ended.code != 0
    assert said in " ".join(ended.err.replace("│", " ").split())
    untold = whorl("advice", "choose", "--deadline", "30s")
    assert untold.code != 0 and "expected --history and --machines" in untold.err


def test_the_recording_answers_and_is_checked(whorl, tmp_path):
    ended = whorl.done("advice", "choose", "--recording", RECORDED, "--json")
    told = json.loads(ended.out)
    assert len(told["jobs"]) == 20
    assert {"choose", "stay on the source", "oracle (held-back runs)"} <= {one["rule"] for one in told["rules"]}
    assert told["chosen"]["runs"] == 200 and told["everywhere"]["runs"] == 1200
    (tmp_path / "as is").symlink_to(RECORDED)
    one = ("--recording", tmp_path / "as is", "--job", "key_overlap")
    named = whorl("advice", "choose", *one, "--out", tmp_path / "page")
    assert named.out.startswith("Run key_overlap on ")
    [page] = (tmp_path / "page").glob("*.html")
    assert f"--recording '{tmp_path}/as is' --job key_overlap" in unescape(page.read_text())
    assert "no job 'nothing'" in whorl("advice", "choose", "--recording", RECORDED, "--job", "nothing").err


TRACE = "task_id\tname\tstatus\trealtime\trchar\n" + "\n".join(
    f"{at}\tALIGN (s{at})\tCOMPLETED\t{10 * size}s\t{size} GB" for at, size in enumerate((1, 2, 4, 8))
)
SCORES = "machine_type,score\nlocal,1\nn2-standard-4,2\nunknown,\n"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A trace in a folder `local`, and scores of one thread."""
    (tmp_path / "local").mkdir()
    trace, scores = tmp_path / "local" / "trace.txt", tmp_path / "scores.csv"
    trace.write_text(TRACE)
    scores.write_text(SCORES)
    return {"trace": trace, "scores": scores}


def test_tasks_and_workflow_are_told_on_another_machine(whorl, files, tmp_path):
    asked = ("advice", "estimate", "--traces", files["trace"], "--onto", "n2-standard-4", "--scores", files["scores"])
    ended = whorl(*asked, "--out", tmp_path / "out")
    assert ended.out.startswith("trace takes 40 s on n2-standard-4 (")
    assert "4 runs of 1 tasks on local, times 0.500" in ended.out
    [page] = (tmp_path / "out").glob("*.html")
    assert str(page) in ended.err
    found = json.loads(whorl(*asked, "--json", "--size-ratio", "2").out)
    assert found["tasks"][0]["runtime_s"] == pytest.approx(80)
    assert found["tasks"][0]["low_s"] < 80 < found["tasks"][0]["high_s"]
    assert (found["source"], found["target"], found["confidence"]) == ("local", "n2-standard-4", 0.9)


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["--onto", "n2-standard-4"], 2, "no scores of the machines; expected --scores FILE or --scores-of SOURCE"),
        (["--onto", "x", "--scores", "SCORES"], 4, "machine 'x' has no score of 'cpu_one_thread'"),
        (["--onto", "n2-standard-4", "--scores", "SCORES", "--from", "lab"], 4, "no run on machine 'lab'"),
        (["--onto", "n2-standard-4", "--scores", "SCORES", "--map", "size=nothing"], 3, "no column 'nothing'"),
        (["--onto", "n2-standard-4", "--job", "j"], 2, "expected --traces PATH or --job JOB, one of them"),
    ],
)
def test_what_cannot_be_answered_is_one_line(whorl, files, options, code, problem):
    given = [str(files["scores"]) if option == "SCORES" else option for option in options]
    ended = whorl("advice", "estimate", "--traces", files["trace"], *given)
    assert ended.code == code
    assert problem in " ".join(ended.err.split())
    assert ended.out == ""
