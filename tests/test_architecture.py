"""The seams of the house: what may import what, and what must agree with what."""

import ast
import importlib
import re
import subprocess
from collections import Counter
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
CODE = sorted([*ROOT.glob("flows/**/*.py"), *ROOT.glob("tasks/**/*.py")])
MODULES = {".".join(p.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): p for p in CODE}
TOP_LEVEL = {"pyproject.toml", "flows", "tasks", "data", "conf", "tests", "deployments", "README.md", "Makefile"}
BESIDE = {"constraints.txt", "LICENSE", "CHANGELOG.md"}
ENGINE = "tasks/jobs/record/engine.py"
SHARED_STEMS = {  # a file name that stands in several rooms, and the one thing that it is in all of them
    **dict.fromkeys(["jobs", "workloads", "nodes", "advice"], "a word: its flows, its commands, its results"),
    "alarms": "what watching raises: rules, rows, and how well an evaluation finds them",
    "bench": "one run or execution at work, and what disturbed it",
    "campaign": "a recording from end to end",
    "counters": "counters of the kernel: recorded, and compared",
    "demo": "the story on recorded data: its flow, its command",
    "fingerprints": "what a run or an execution is known by",
    "intake": "files on their way into a word, and what became of them",
    "labels": "what is known of a file's rows from outside of it",
    "params": "parameter models",
    "parts": "the files of a recording",
    "plan": "what a campaign runs, in order",
    "protocol": "what `evaluate` does from files to figures",
    "sampler": "samples once a second while something is recorded",
    "scores": "how good predictions were",
    "steps": "what flows wrap as tasks, and how they do",
    "tables": "tables in people's files, as rows or frames",
    "training": "a model learned from one source, and measured on what was held out",
}
SHARED_CLASSES = {  # likewise of public classes
    "Bench": "what all runs of a campaign share",
    "EvaluateParams": "the parameters of an evaluation",
    "Evaluation": "the figures of an evaluation, and the tables behind them",
    "Intake": "how files of a word are to be read",
    "Outcome": "what became of a planned run or execution",
    "Plan": "what is to be done by a call or a campaign, in order",
    "PlannedRun": "a run of a plan",
    "ReadParams": "how files of a word are read",
    "Reader": "reads one format",
    "RecordParams": "what a recording runs",
    "RunLedger": "the runs that a folder of recordings holds",
    "Session": "a call of a recorder at work",
    "Split": "what is learned from, and what is tested",
    "TrainedModel": "the step's answer: the model that was trained, and the champion",
    "WatchParams": "what raises an alarm",
}
WORDS = ["jobs", "workloads", "nodes", "advice"]
SHARED = ["intake", "record", "report", "warehouse"]  # rooms beside those of the words: what all of them use


def name_of(path: Path) -> str:
    return str(path.relative_to(ROOT))


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def imports_of(path: Path) -> frozenset[str]:
    """The top-level packages and the modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module)
    return frozenset(found | {name.split(".")[0] for name in found})


def tracked() -> list[str]:
    listing = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listing.returncode:
        pytest.skip("not a git checkout")
    return listing.stdout.split()


def test_only_flows_import_prefect() -> None:
    assert [name_of(p) for p in CODE if "prefect" in imports_of(p) and not name_of(p).startswith("flows/")] == []


def test_only_the_warehouse_and_the_engine_under_test_import_duckdb() -> None:
    users = [name_of(p) for p in CODE if "duckdb" in imports_of(p)]
    assert [name for name in users if not name.startswith("tasks/warehouse/") and name != ENGINE] == []


def test_the_engine_under_test_does_not_know_the_warehouse() -> None:
    assert not [name for name in imports_of(ROOT / ENGINE) if name.startswith("tasks.warehouse")]


def test_tasks_never_import_flows() -> None:
    assert [name_of(p) for p in CODE if name_of(p).startswith("tasks/") and "flows" in imports_of(p)] == []


def modules_imported(path: Path) -> set[str]:
    """The modules of flows/ and tasks/ that a file imports, anywhere in it, as dotted names."""
    found = set()
    for node in ast.walk(tree_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            named = [f"{node.module}.{alias.name}" for alias in node.names]
            found |= {name if name in MODULES else node.module for name in named}
    return found & MODULES.keys()


def test_no_module_imports_itself_by_way_of_others() -> None:
    left = {name: modules_imported(path) - {name} for name, path in MODULES.items()}
    while free := {name for name, wanted in left.items() if not wanted & left.keys()}:
        left = {name: wanted for name, wanted in left.items() if name not in free}
    assert {name: sorted(wanted & left.keys()) for name, wanted in left.items()} == {}, "a cycle, and who imports it"


def test_the_top_level_is_what_the_house_allows() -> None:
    entries = {name.split("/")[0] for name in tracked()}
    assert {name for name in entries if not name.startswith(".")} <= TOP_LEVEL | BESIDE


def test_tasks_have_a_room_a_word_and_the_rooms_that_all_share() -> None:
    rooms = {path.parent.name for path in CODE if path.match("tasks/*/__init__.py")}
    assert rooms == {*WORDS, *SHARED}


def test_what_recorders_share_knows_no_word() -> None:
    rooms = tuple(f"tasks.{word}" for word in WORDS)
    shared = [path for path in CODE if name_of(path).startswith("tasks/record/")]
    assert [name_of(path) for path in shared for name in imports_of(path) if name.startswith(rooms)] == []


@pytest.mark.parametrize("name", ["utils", "helpers", "common"])
def test_files_are_nouns_of_the_field_not_drawers(name: str) -> None:
    assert [name_of(p) for p in CODE if p.stem == name] == []


def test_every_public_function_and_class_has_a_docstring() -> None:
    bare = []
    for path in CODE:
        for node in tree_of(path).body:
            is_public = isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_")
            if is_public and not ast.get_docstring(node):
                bare.append(f"{name_of(path)}: {node.name}")
    assert bare == []


def test_migrations_have_no_gaps() -> None:
    from tasks.warehouse.migrations import shipped

    assert [migration.version for migration in shipped()] == list(range(1, len(shipped()) + 1))


def test_every_knob_has_a_description() -> None:
    from pydantic import BaseModel

    from tasks.settings import Settings

    def bare(model: type[BaseModel], prefix: str) -> list[str]:
        missing = []
        for key, field in model.model_fields.items():
            inner = field.annotation
            if isinstance(inner, type) and issubclass(inner, BaseModel):
                missing += bare(inner, f"{prefix}{key}.")
            elif not field.description:
                missing.append(f"{prefix}{key}")
        return missing

    assert bare(Settings, "") == []


def deployments() -> list[dict[str, object]]:
    content = yaml.safe_load((ROOT / "deployments" / "prefect.yaml").read_text())
    return list(content["deployments"])


def test_every_entrypoint_of_prefect_yaml_imports_with_plain_importlib() -> None:
    for deployment in deployments():
        module, function = str(deployment["entrypoint"]).rsplit(".", 1)
        assert callable(getattr(importlib.import_module(module), function)), deployment["name"]


def flow_names() -> set[str]:
    """The names of all flows in flows/, from the source: a function below `@flow(…)`, with dashes."""
    text = "\n".join(path.read_text() for path in ROOT.glob("flows/*.py"))
    return {name.replace("_", "-") for name in re.findall(r"(?ms)^@flow\(.*?^def (\w+)", text)}


def test_every_flow_is_deployed_and_in_the_readme() -> None:
    readme, deployed = (ROOT / "README.md").read_text(), {str(one["name"]) for one in deployments()}
    assert flow_names()
    assert flow_names() == deployed
    assert [name for name in flow_names() if f"`{name}`" not in readme] == []


def test_every_schedule_is_shipped_inactive() -> None:
    schedules = [schedule for one in deployments() for schedule in one.get("schedules", [])]  # type: ignore[attr-defined]
    assert schedules
    assert [schedule for schedule in schedules if schedule.get("active") is not False] == []


@pytest.mark.parametrize("word", WORDS)
def test_every_deployable_flow_is_on_the_command_line(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    from flows.cli import run

    assert run([word, "--help"]) == 0
    listing = capsys.readouterr().out
    verbs = {name.removeprefix(f"{word}-") for name in flow_names() if name.startswith(f"{word}-")}
    assert [verb for verb in verbs if verb not in listing] == []


def test_the_data_dictionary_is_current(tmp_path: Path) -> None:
    from tasks.warehouse.migrations import data_dictionary

    written = (ROOT / "tasks" / "warehouse" / "DICTIONARY.md").read_text()
    assert written == data_dictionary(), "run: whorl warehouse dictionary > tasks/warehouse/DICTIONARY.md"


@pytest.mark.parametrize("word", WORDS)
def test_a_word_has_its_place_in_every_room(word: str) -> None:
    rooms = [
        f"tasks/{word}/steps.py",
        f"tasks/{word}/README.md",
        f"conf/{word}.yaml",
        f"flows/{word}.py",
        f"tests/{word}",
    ]
    assert [room for room in rooms if not (ROOT / room).exists()] == []


@pytest.mark.parametrize("room", ["flows", *(f"tasks/{name}" for name in [*WORDS, *SHARED])])
def test_the_readme_of_a_room_is_a_map_of_its_modules(room: str) -> None:
    folder = ROOT / room
    table = (folder / "README.md").read_text().partition("| module | what it answers |\n|---|---|\n")[2]
    rows = re.findall(r"^\| `([^`]+)` \| .+ \|$", table.partition("\n\n")[0], re.MULTILINE)
    modules = [path for path in CODE if path.is_relative_to(folder) and path.stem != "__init__"]
    assert sorted(rows) == sorted(str(path.relative_to(folder).with_suffix("")) for path in modules)


def repeated(names: Iterable[str]) -> set[str]:
    return {name for name, n in Counter(names).items() if n > 1}


def test_a_file_name_has_one_meaning_in_the_whole_house() -> None:
    assert repeated(path.stem for path in CODE if path.stem != "__init__") == SHARED_STEMS.keys()


def test_a_public_class_name_has_one_meaning_in_the_whole_house() -> None:
    classes = (node.name for path in CODE for node in tree_of(path).body if isinstance(node, ast.ClassDef))
    assert {name for name in repeated(classes) if not name.startswith("_")} == SHARED_CLASSES.keys()
