"""What `whorl doctor` says of a machine: each finding is true, says what it is for, and what to do."""

import json
import os
from datetime import datetime
from pathlib import Path

import pytest

from flows.cli import run
from tasks import machine
from tasks.doctor import check_models, check_packages, check_python, check_tool, check_warehouse, examine, requirements
from tasks.errors import BadSetting
from tasks.machine import Tool
from tasks.settings import Settings, WhorlParams
from tasks.warehouse.place import Warehouse
from tasks.warehouse.registry import ModelCard, register


def settings_in(home: Path, **values: object) -> Settings:
    return Settings(whorl=WhorlParams(home=str(home), **values))


def test_every_finding_says_what_for_and_a_lack_says_what_to_do(tmp_path: Path) -> None:
    findings = examine(lambda: settings_in(tmp_path))
    assert {one.area for one in findings} == {"whorl", "machine", "tools"}
    assert [one for one in findings if not one.purpose or not one.found] == []
    assert [one.name for one in findings if (one.state == "ok") == bool(one.fix)] == []


def test_this_installation_is_whole() -> None:
    assert check_python().state == "ok"
    assert [one.state for one in check_packages(requirements()[1])] == ["ok"]


def test_requirements_are_read_from_the_installed_package_where_there_is_no_checkout(tmp_path: Path) -> None:
    python, needed = requirements(tmp_path)
    assert "3.11" in python
    assert any(line.startswith("prefect==") for line in needed)
    assert not any("pytest" in line for line in needed)


def test_a_package_of_another_version_is_broken_and_says_how_to_mend_it() -> None:
    (finding,) = check_packages(["pandas>=99", "pip"])
    assert (finding.name, finding.state) == ("pandas", "broken")
    assert finding.found.endswith("; needs >=99")
    assert finding.fix == "pip install -c constraints.txt 'pandas>=99'"


def test_a_package_that_is_missing_is_broken() -> None:
    (finding,) = check_packages(["no-such-package-of-whorl[extra]>=1"])
    assert (finding.state, finding.found) == ("broken", "not installed; needs >=1")


def test_a_wrong_setting_is_a_finding_and_not_the_end() -> None:
    def load() -> Settings:
        raise BadSetting("conf/local/jobs.yaml: jobs.x: no such key")

    broken = [one for one in examine(load) if one.state == "broken"]
    assert [(one.name, one.found) for one in broken] == [("settings", "conf/local/jobs.yaml: jobs.x: no such key")]


def test_files_of_models_are_all_checked(tmp_path: Path) -> None:
    warehouse = Warehouse(home=tmp_path)
    card = ModelCard(
        model_id="m1", word="jobs", source="log", kind="shapes", trained_at=datetime(2026, 1, 1), run_id="r",
        data_version="d", code_version="c", seed=1, parameters={}, metrics={},
    )  # fmt: skip
    register(warehouse, card, lambda folder: (folder / "trees.txt").touch())
    settings = settings_in(warehouse.home)
    assert check_models(settings).found == "1, each file as it was registered"
    file = warehouse.models / "jobs" / "m1" / "model.json"
    file.write_text(json.dumps({key: value for key, value in json.loads(file.read_text()).items() if key != "files"}))
    unsigned = check_models(settings)
    assert (unsigned.state, unsigned.found) == ("missing", "1; by an earlier version, so without checksums: m1")
    file.write_text("{}")
    assert check_models(settings).state == "broken"


def test_no_warehouse_yet_is_missing_and_a_damaged_one_is_broken(tmp_path: Path) -> None:
    assert check_warehouse(settings_in(tmp_path)).state == "missing"
    (tmp_path / "warehouse.duckdb").write_bytes(b"no database at all" * 1000)
    finding = check_warehouse(settings_in(tmp_path))
    assert finding.state == "broken"
    assert "whorl warehouse rebuild" in finding.fix


def test_an_open_warehouse_is_ok(migrated: Path) -> None:
    assert check_warehouse(settings_in(migrated.parent)).state == "ok"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_home_that_may_not_be_written_is_broken(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    home = next(one for one in examine(lambda: settings_in(tmp_path / "home")) if one.name == "home")
    assert home.state == "broken"


def test_a_home_below_a_file_is_broken(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    home = next(one for one in examine(lambda: settings_in(tmp_path / "file" / "home")) if one.name == "home")
    assert (home.state, home.fix) == ("broken", "name another home with WHORL_HOME, or change its rights")


def test_a_memory_setting_that_does_not_fit_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "usable_memory_bytes", lambda: 512 * 2**20)
    memory = next(one for one in examine(lambda: settings_in(tmp_path, memory_mb=1024)) if one.name == "memory")
    assert (memory.state, memory.fix) == ("missing", "lower whorl.memory_mb, which is 1,024 now")


def test_a_tool_is_found_under_any_of_its_names_and_missing_with_its_package() -> None:
    assert check_tool(Tool(("no-such-program", "sh"), "dash", "tests")).found.endswith("/sh")
    finding = check_tool(Tool(("no-such-program",), "some-package", "tests"))
    assert (finding.state, finding.fix) == ("missing", "apt-get install some-package")


def test_cgroups_of_both_layouts_are_told_apart(tmp_path: Path) -> None:
    first, second = tmp_path / "v1", tmp_path / "v2"
    for name in ("cpu", "memory", "systemd"):
        (first / name).mkdir(parents=True)
        (first / name / "tasks").write_text("")
    (first / "unified").mkdir()
    second.mkdir()
    (second / "cgroup.controllers").write_text("cpu io memory\n")
    assert machine.read_cgroups(first) == machine.Cgroups("v1", ["cpu", "memory"], ["cpu", "memory"])
    assert machine.read_cgroups(second) == machine.Cgroups("v2", ["cpu", "io", "memory"], ["cpu", "io", "memory"])
    assert machine.read_cgroups(tmp_path / "none") == machine.Cgroups("none", [], [])


def test_the_limit_of_a_container_counts_and_no_limit_does_not(tmp_path: Path) -> None:
    (tmp_path / "memory.max").write_text("1048576\n")
    assert machine.usable_memory_bytes(tmp_path) == 2**20
    (tmp_path / "memory.max").write_text("max\n")
    assert machine.usable_memory_bytes(tmp_path) > 2**20


def test_doctor_exits_with_0_though_tools_are_missing_and_1_if_something_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHORL_HOME", str(tmp_path))
    monkeypatch.setattr(machine, "find_tool", lambda *names: None)
    assert run(["doctor", "--json"]) == 0
    findings = {one["name"]: one for one in json.loads(capsys.readouterr().out)["findings"]}
    assert findings["fio"]["state"] == "missing"
    assert findings["Prefect server"]["fix"] == "whorl serve"
    assert run(["doctor"]) == 0
    assert "apt-get install stress-ng fio sysbench" in capsys.readouterr().err
    (tmp_path / "warehouse.duckdb").write_bytes(b"no database at all" * 1000)
    assert run(["doctor"]) == 1


def test_a_server_that_is_named_and_does_not_answer_is_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("WHORL_HOME", str(tmp_path))
    monkeypatch.setenv("PREFECT_API_URL", "http://127.0.0.1:9/api")  # the discard port: nobody listens
    assert run(["doctor", "--json"]) == 1
    server = next(one for one in json.loads(capsys.readouterr().out)["findings"] if one["name"] == "Prefect server")
    assert server["found"] == "http://127.0.0.1:9/api (PREFECT_API_URL) does not answer"
