"""Benchmarks and doses as parameters: commands that are checked, hashes that tell templates apart, tools that lack."""

import pytest
from pydantic import ValidationError

from tasks.errors import BadSetting, MissingTool
from tasks.nodes.record.bench import installed_version
from tasks.nodes.record.campaign import check_parsers
from tasks.nodes.record.node_place import check_tools
from tasks.nodes.record.params import PAPER, SHIPPED, SHORT, BenchmarkTemplate, Dose, RecordParams
from tasks.nodes.record.plan import selected_templates
from tasks.nodes.tools import PARSERS

ONE = BenchmarkTemplate(benchmark="cpu-one", aspect="cpu", command="tool --time 2")


def test_the_hash_follows_what_is_run_and_not_how_long_it_may_take():
    assert ONE.template_hash == ONE.model_copy(update={"limit_s": 99}).template_hash
    for change in ({"command": "tool --time 3"}, {"prepare": "lay"}, {"server": "serve"}, {"benchmark": "cpu-two"}):
        assert ONE.template_hash != ONE.model_copy(update=change).template_hash
    assert len(ONE.template_hash) == 64


def test_every_shipped_benchmark_has_its_parser_and_a_hash_of_its_own():
    assert [one.benchmark for one in SHORT] == [one.benchmark for one in PAPER]
    assert all(PARSERS[one.benchmark].tool.startswith(one.tool) for one in SHORT)
    assert all(PARSERS[one.benchmark].aspect == one.aspect for one in SHORT)
    assert len({one.template_hash for one in (*SHORT, *PAPER)}) == 12


@pytest.mark.parametrize("command", ["tool {nobody}", "tool {folder", 'tool "open'])
def test_a_command_that_cannot_be_filled_in_is_refused(command):
    with pytest.raises(ValidationError):
        BenchmarkTemplate(benchmark="cpu-one", aspect="cpu", command=command)
    with pytest.raises(ValidationError):
        Dose(benchmark="cpu-one", level=1, name="x", command=command)


def test_an_unknown_benchmark_is_refused_with_those_that_there_are():
    with pytest.raises(BadSetting, match="no benchmark cpu-nobody in the profile short; expected some of cpu-sysbench"):
        selected_templates(RecordParams(benchmarks=("cpu-nobody",)))


def test_a_benchmark_whose_logs_nobody_reads_is_refused_with_those_that_can_be_read():
    expected = r"nodes\.record\.paper: nobody reads the logs of cpu-one; expected benchmarks of cpu-sysbench, .*; leave"
    with pytest.raises(BadSetting, match=expected):
        check_parsers((*PAPER, ONE), "paper")
    check_parsers(PAPER, "paper")


def test_what_is_not_installed_is_told_with_its_package(monkeypatch):
    monkeypatch.setattr("tasks.nodes.record.node_place.find_tool", lambda name: None)
    with pytest.raises(
        MissingTool, match=r"sysbench is not installed \(Debian: apt-get install sysbench\); fio is not"
    ):
        check_tools(SHORT, ())
    with pytest.raises(MissingTool, match="stress-ng is not installed"):
        check_tools([], [SHIPPED[0].model_copy(update={"benchmark": "x"})]) or check_tools(SHORT[:1], SHIPPED)


def test_a_tool_whose_logs_do_not_tell_its_version_is_asked(tmp_path, monkeypatch):
    script = tmp_path / "ioping"
    script.write_text("#!/bin/sh\necho ioping 1.3\n")
    script.chmod(0o755)
    monkeypatch.setattr("tasks.nodes.record.bench.find_tool", lambda name: str(script))
    installed_version.cache_clear()
    assert installed_version("ioping") == "1.3"
    assert installed_version("sysbench") == ""
    installed_version.cache_clear()
