"""The programs of the recorder: where they are, and which package has those that are not."""

import re
import shlex
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from tasks.errors import BadSetting, MissingTool
from tasks.machine import find_tool
from tasks.nodes.record.doses import Dose
from tasks.nodes.record.params import RecordParams
from tasks.nodes.record.templates import BenchmarkTemplate
from tasks.nodes.tools.parsing import Parser
from tasks.tools import TOOLS

ASKED = {"ioping": "-v", "qperf": "--version"}  # their logs do not tell which version wrote them
ASK_S = 10.0


def program(name: str) -> str:
    """The path of a program. Raises MissingTool with the Debian package that has it."""
    found = find_tool(name)
    if found is None:
        raise MissingTool(_lack(name))
    return found


@lru_cache
def told_version(tool: str) -> str:
    """The version of a tool whose logs do not tell; empty for others, and where it does not say."""
    found = find_tool(tool) if tool in ASKED else None
    if found is None:
        return ""
    try:
        asked = subprocess.run([found, ASKED[tool]], capture_output=True, text=True, timeout=ASK_S, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return ""
    version = re.search(r"\d+(\.\d+)+", asked.stdout + asked.stderr)
    return version[0] if version else ""


def _lack(name: str) -> str:
    package = next((tool.package for tool in TOOLS if name in tool.programs), name)
    return f"{name} is not installed (Debian: apt-get install {package})"


def chosen_templates(params: RecordParams) -> tuple[BenchmarkTemplate, ...]:
    """The templates of the profile that are asked for. Raises BadSetting for an unknown name, or a doubled one."""
    templates = params.short if params.profile == "short" else params.paper
    names = [one.benchmark for one in templates]
    unknown = [name for name in params.benchmarks if name not in names]
    if unknown:
        raise BadSetting(
            f"nodes.record.benchmarks: no benchmark {', '.join(unknown)} in the profile {params.profile}; "
            f"expected some of {', '.join(names)}"
        )
    if len(set(names)) < len(names):
        raise BadSetting(f"nodes.record.{params.profile}: two templates of the same benchmark; name them differently")
    return tuple(one for one in templates if not params.benchmarks or one.benchmark in params.benchmarks)


def check_parsers(templates: Sequence[BenchmarkTemplate], parsers: Mapping[str, Parser], profile: str) -> None:
    """Raises BadSetting that names the benchmarks whose logs nobody reads: each execution of them would fail."""
    if unread := [one.benchmark for one in templates if one.benchmark not in parsers]:
        raise BadSetting(
            f"nodes.record.{profile}: nobody reads the logs of {', '.join(unread)}; "
            f"expected benchmarks of {', '.join(parsers)}; leave it out, or name it after the one whose tool it calls"
        )


def check_tools(templates: Sequence[BenchmarkTemplate], doses: Iterable[Dose]) -> None:
    """Raises MissingTool that names all programs that are not installed. doses: those that are to be applied."""
    names = {template.benchmark for template in templates}
    commands = [text for one in templates for text in (one.command, one.prepare, one.server) if text]
    commands += [text for one in doses for text in (one.command, one.prepare) if text and one.benchmark in names]
    programs = dict.fromkeys(shlex.split(command)[0] for command in commands)
    if lacking := [_lack(name) for name in programs if find_tool(name) is None]:
        raise MissingTool("; ".join(lacking))
