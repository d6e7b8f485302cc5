"""The list of workloads: enough of them, truly different inputs, kin, and what is missing is told with its package."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tasks.errors import MissingTool
from tasks.tools import TOOLS
from tasks.workloads.record.programs import PROGRAMS, missing_needs
from tasks.workloads.record.programs.computing import Compress
from tasks.workloads.record.programs.program import Need, lacks

ABSENT = Need(("whorl-no-such-server", "whorl-nor-this"), "no-such-package")


def test_there_are_eight_workloads_at_least_each_under_its_own_name() -> None:
    assert len(PROGRAMS) >= 8
    assert [name for name, program in PROGRAMS.items() if program.name != name or not program.title] == []


@pytest.mark.parametrize("name", list(PROGRAMS))
def test_inputs_differ_in_what_they_ask_for_not_in_name_alone(name: str) -> None:
    inputs = PROGRAMS[name].inputs
    assert len(inputs) >= 2
    assert len({one.name for one in inputs}) == len({one.words for one in inputs}) == len(inputs)
    assert len({str(sorted(one.options.items())) for one in inputs}) == len(inputs)


def test_two_pairs_of_kin_name_each_other() -> None:
    kin = {name: program.kin for name, program in PROGRAMS.items()}
    assert {other for other in kin.values() if other} <= kin.keys()
    assert kin["mariadb"] == "postgresql" and kin["postgresql"] == "mariadb"
    assert kin["nginx"] == "redis" and kin["redis"] == "nginx"


def test_what_is_missing_is_one_line_with_the_debian_or_pip_package() -> None:
    module = Need(("whorl_no_such_module",), "no-such-wheel", "module")
    file = Need(("/no/such/header.h",), "no-such-dev", "file")
    assert lacks([ABSENT, module, file, Need(("sh",), "dash"), Need(("json",), "python", "module")]) == [
        "whorl-no-such-server is not installed (Debian: apt-get install no-such-package)",
        "whorl_no_such_module is not installed (pip install no-such-wheel)",
        "/no/such/header.h is not installed (Debian: apt-get install no-such-dev)",
    ]


def test_missing_needs_say_which_workload_lacks_them() -> None:
    class Lacking(Compress):
        name = "lacking"
        needs: Sequence[Need] = (ABSENT,)  # type: ignore[assignment]

    told = missing_needs([Lacking()])
    assert told == ["lacking: whorl-no-such-server is not installed (Debian: apt-get install no-such-package)"]


def test_a_need_has_no_path_where_it_is_not_installed() -> None:
    with pytest.raises(MissingTool, match="apt-get install no-such-package"):
        ABSENT.path()
    assert replace(ABSENT, names=("whorl-no-such-server", "sh")).path().endswith("/sh")


def test_doctor_knows_every_debian_program_that_a_workload_needs() -> None:
    known = {tool.package for tool in TOOLS}
    needed = {need.package for program in PROGRAMS.values() for need in program.needs if need.kind == "program"}
    assert needed - known == set()
