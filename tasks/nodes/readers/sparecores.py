"""Raw results of SpareCores' inspector: folders <vendor>/<instance>/<benchmark> with meta.json and what was printed.

A folder of a benchmark is one execution on the node <vendor>/<instance>. What only describes a machine (lscpu, …), has
not ended, printed nothing or prints what no parser here knows is refused with the reason. A benchmark that failed is
kept as failed, with the values that can be read. A manifest may name all, an instance, or a folder of a benchmark."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from tasks.errors import BadInput
from tasks.nodes.execution import Execution, Measured, as_chunk
from tasks.nodes.params import ReadParams
from tasks.nodes.readers.benchmark_names import slug
from tasks.nodes.readers.folders import Folder
from tasks.nodes.readers.labels import IDENTITY, Manifest, read_manifest
from tasks.nodes.readers.sparecores_outputs import OUTPUTS, Output, Printed
from tasks.nodes.readers.vetting import NoExecution, vetted_facts
from tasks.nodes.tools.parsing import unreadable
from tasks.reading import Chunk, json_of, refusals
from tasks.tally import NO_BENCHMARK
from tasks.times import time_of

META, MARK = "meta.json", '"exit_code"'
LOOKED_AT = 20  # files that tell whether a folder is one of the inspector's
DESCRIBES = {
    "lscpu", "lshw", "dmidecode", "nvidia_smi", "virtualization", "hwloc", "inxi", "lspci", "cpuid", "dmesg", "sysfs",
}  # fmt: skip
EXPECTED = "a folder with <vendor>/<instance>/<benchmark>/meta.json"
VENDOR, INSTANCE, BENCHMARK = -4, -3, -2  # of the path of meta.json
LONG_OUTPUT = 64 * 2**20


@dataclass(frozen=True)
class SpareCoresReader:
    """Reads folders of sc-inspector-data."""

    name: str = "sparecores"
    version: int = 2
    title: str = "folders of SpareCores' inspector (<vendor>/<instance>/<benchmark>/meta.json)"
    endings: tuple[str, ...] = ()
    has_local_nodes: bool = False

    def sniff(self, head: bytes, path: str) -> bool:
        """A folder with a meta.json of the inspector in it, however deep."""
        if head:
            return False
        folder = Folder(path)
        return any(MARK in folder.text(name, LONG_OUTPUT) for name in _metas(folder)[:LOOKED_AT])

    def read(self, path: str, params: ReadParams) -> Iterator[Chunk]:
        """See Reader.read. Raises BadInput for a path without a meta.json."""
        folder, manifest = Folder(path), read_manifest(params)
        metas = _metas(folder)
        if not metas:
            raise BadInput(path, f"no {META} in it", EXPECTED, "name the folder that holds them")
        executions: list[Execution] = []
        bad: list[tuple[int, str, str]] = []
        for place, meta in enumerate(metas, 1):
            printed = Printed()
            try:
                told = _told(folder, meta, manifest)
                executions.append(_execution(folder, meta, told, place, params, printed))
            except NoExecution as reason:
                bad.append((place, f"{_short(folder, meta)}: {reason}", meta))
            bad += [
                (place, f"{_short(folder, meta)}, line {one.place}: {one.reason}", one.raw) for one in printed.faults
            ]
        refused = refusals([place for place, _, _ in bad], [why for _, why, _ in bad], [raw for _, _, raw in bad])
        yield as_chunk(executions, refused)


def _metas(folder: Folder) -> list[str]:
    return [name for name in folder.names() if PurePosixPath(name).name == META]


def _execution(
    folder: Folder, meta: str, labels: dict[str, Any], place: int, params: ReadParams, printed: Printed
) -> Execution:
    """The execution of one folder; lines of its output that cannot be used go to `printed`. labels: from a manifest.

    Raises NoExecution with the reason if there is none."""
    parts = PurePosixPath(folder.absolute(meta)).parts
    if len(parts) <= -VENDOR:
        raise NoExecution("no vendor and instance above it; expected <vendor>/<instance>/<benchmark>")
    benchmark, node = parts[BENCHMARK], f"{parts[VENDOR]}/{parts[INSTANCE]}"
    if benchmark in DESCRIBES:
        raise NoExecution(NO_BENCHMARK)
    about = _meta(folder, meta)
    output = next((one for one in OUTPUTS if one.fits(benchmark)), None)
    if output is None:
        raise NoExecution(f"no parser for the output of {benchmark!r}")
    facts = _facts(about, benchmark, node, output, params.time_zone) | labels
    if facts["started_at"] is None:
        raise NoExecution("start is no time; expected ISO 8601")
    facts = vetted_facts(facts, params.future_slack_s)
    text = _text(folder, meta, output)
    if text.strip():
        told = output.parse(text)
        printed.faults += [*told.faults, *unreadable(text, told.faults)]
        printed.measured += told.measured
        printed.missing += told.lacking()
    if not printed.measured and facts["status"] == "completed":
        raise NoExecution("no value in its output" if text.strip() else "printed nothing")
    return Execution(facts, _once(printed.measured), tuple(printed.missing), tool=benchmark, log=text, place=place)


def _told(folder: Folder, meta: str, manifest: Manifest) -> dict[str, Any]:
    """What a manifest says of the folder of a benchmark, or of one above it; not what it is called after."""
    above = [str(one) for one in reversed(PurePosixPath(meta).parents) if str(one) != "."]
    facts: dict[str, Any] = {}
    for path in (*above, meta):
        facts |= manifest.facts(folder.address(path))
    return {name: value for name, value in facts.items() if name not in IDENTITY}


def _meta(folder: Folder, meta: str) -> dict[str, Any]:
    try:
        about = json_of(folder.text(meta, LONG_OUTPUT))
    except ValueError as error:
        raise NoExecution(f"{META} is malformed ({error})") from error
    if not isinstance(about, dict):
        raise NoExecution(f"{META} holds no object")
    if about.get("exit_code") is None:
        raise NoExecution("has not ended (no exit_code)")
    return about


def _text(folder: Folder, meta: str, output: Output) -> str:
    """What was printed: the first of the files that there is and holds something."""
    for name in output.files:
        path = str(PurePosixPath(meta).with_name(name))
        if folder.holds(path) and (text := folder.text(path, LONG_OUTPUT)).strip():
            return text
    return ""


def _facts(about: dict[str, Any], benchmark: str, node: str, output: Output, zone: str) -> dict[str, Any]:
    started, ended = (time_of(str(about.get(name) or ""), zone) for name in ("start", "end"))
    version, told = about.get("version"), started.isoformat() if started else "no-start"
    return {
        "execution_id": f"{node}/{benchmark}/{told}",
        "node": node,
        "machine_type": node.partition("/")[2],
        "benchmark": slug(benchmark),
        "aspect": output.aspect,
        "tool_version": str(version) if version and version != "n/a" else None,
        "started_at": started,
        "ended_at": ended,
        "status": "completed" if about["exit_code"] == 0 else "failed",
    }


def _once(measured: list[Measured]) -> tuple[Measured, ...]:
    """The first value of each metric."""
    return tuple({one.metric: one for one in reversed(measured)}.values())[::-1]


def _short(folder: Folder, meta: str) -> str:
    return "/".join(PurePosixPath(folder.absolute(meta)).parts[VENDOR:-1])
