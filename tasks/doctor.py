"""What this machine has and lacks: each finding says what it is for and what to do."""

import os
import platform
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Literal

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from tasks import machine
from tasks.errors import NoWarehouse, WarehouseBusy, WhorlError
from tasks.machine import TOOLS, Tool
from tasks.settings import Settings

ROOT = Path(__file__).parents[1]
LEAST_DISK_BYTES = 2 * 2**30
MB = 2**20
LOCK_WAIT_S = 2.0
State = Literal["ok", "missing", "broken"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. broken: whorl cannot work so; missing: something that needs it cannot.

    found: what is there; purpose: what needs it; fix: what to do, empty if it is ok."""

    area: Literal["whorl", "machine", "tools"]
    name: str
    state: State
    found: str
    purpose: str
    fix: str = ""


def examine(load: Callable[[], Settings]) -> list[Finding]:
    """Look at everything; `load` reads the settings. Faults are findings, never exceptions."""
    findings = [check_python(), *check_packages(requirements())]
    try:
        settings = load()
    except WhorlError as error:
        return [*findings, Finding("whorl", "settings", "broken", str(error), "everything", "mend that setting")]
    return [*findings, *_home(settings), *_machine(settings), *(check_tool(tool) for tool in TOOLS)]


def requirements(root: Path = ROOT) -> tuple[str, list[str]]:
    """The Python versions and the packages that whorl needs: of pyproject.toml, or of the installed package."""
    file = root / "pyproject.toml"
    if file.exists():
        project = tomllib.loads(file.read_text(encoding="utf-8"))["project"]
        return str(project["requires-python"]), list(project["dependencies"])
    needed = [line for line in metadata.requires("whorl") or [] if "extra ==" not in line]
    return str(metadata.metadata("whorl")["Requires-Python"]), needed


def check_python() -> Finding:
    """The interpreter against requires-python."""
    wanted, version = requirements()[0], platform.python_version()
    fits = version in SpecifierSet(wanted)
    fix = "" if fits else f"make a virtual environment with Python {wanted}"
    return Finding("whorl", "Python", "ok" if fits else "broken", version, "everything", fix)


def check_packages(needed: tuple[str, list[str]]) -> list[Finding]:
    """Installed packages against the requirements: one finding if all fit, else one for each that does not."""
    wrong = [finding for line in needed[1] if (finding := _wrong_package(Requirement(line)))]
    n_packages = len(needed[1])
    return wrong or [Finding("whorl", "packages", "ok", f"{n_packages} as pyproject.toml asks for", "everything")]


def _wrong_package(wanted: Requirement) -> Finding | None:
    fix = f"pip install -c constraints.txt '{wanted}'"
    try:
        version = metadata.version(wanted.name)
    except metadata.PackageNotFoundError:
        return Finding("whorl", wanted.name, "broken", f"not installed; needs {wanted.specifier}", "everything", fix)
    if wanted.specifier.contains(version, prereleases=True):
        return None
    return Finding("whorl", wanted.name, "broken", f"{version}; needs {wanted.specifier}", "everything", fix)


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.warehouse.home
    there = next(place for place in (home, *home.parents) if place.exists())
    may_write = there.is_dir() and os.access(there, os.W_OK)
    fix = "" if may_write else "name another home with WHORL_HOME, or change its rights"
    text = str(home) if may_write else f"{there}: this user may not write there"
    yield Finding("whorl", "home", "ok" if may_write else "broken", text, "everything", fix)
    free = machine.free_bytes(home)
    has_room = free >= LEAST_DISK_BYTES
    fix = "" if has_room else f"free some: {LEAST_DISK_BYTES / 2**30:.0f} GiB are enough for a million runs"
    yield Finding("whorl", "disk", "ok" if has_room else "missing", f"{free / 2**30:,.1f} GiB free", "warehouse", fix)
    yield check_warehouse(settings)
    yield check_models(settings)
    yield _datasets(settings.whorl.datasets)


def check_warehouse(settings: Settings) -> Finding:
    """Whether the warehouse can be read, by reading every row of every table."""
    from tasks.warehouse.copies import hash_tables

    warehouse = settings.warehouse.model_copy(update={"lock_wait_s": LOCK_WAIT_S})
    purpose = "all answers"
    try:
        tables = hash_tables(warehouse)
    except NoWarehouse:
        return Finding("whorl", "warehouse", "missing", "none yet", purpose, "whorl jobs ingest FILE, or whorl demo")
    except WarehouseBusy as error:
        return Finding("whorl", "warehouse", "ok", f"in use at this moment ({error})", purpose)
    except WhorlError as error:
        return Finding("whorl", "warehouse", "broken", str(error), purpose, "whorl warehouse rebuild, or restore")
    text = f"all of {len(tables)} tables can be read, {warehouse.file.stat().st_size / MB:,.1f} MiB"
    return Finding("whorl", "warehouse", "ok", text, purpose)


def check_models(settings: Settings) -> Finding:
    """Whether the files of all models are those that were registered."""
    from tasks.warehouse.registry import cards, folder_of

    purpose, models = "answers of models", settings.warehouse.models
    try:
        registered = cards(models, is_strict=True)
        for card in registered:
            folder_of(models, card.word, card.model_id)
    except WhorlError as error:
        return Finding("whorl", "models", "broken", str(error), purpose, "what the line says, or train again")
    if unsigned := [card.model_id for card in registered if card.files is None]:
        text = f"{len(registered)}; by an earlier version, so without checksums: {', '.join(unsigned)}"
        return Finding("whorl", "models", "missing", text, purpose, "train again")
    return Finding("whorl", "models", "ok", f"{len(registered)}, each file as it was registered", purpose)


def _datasets(folder: str) -> Finding:
    purpose = "tests on reference data"
    if folder and Path(folder).expanduser().is_dir():
        return Finding("whorl", "WHORL_DATASETS", "ok", folder, purpose)
    text = f"{folder}: no such folder" if folder else "not set"
    return Finding("whorl", "WHORL_DATASETS", "missing", text, purpose, "set it to a folder; see whorl datasets list")


def _machine(settings: Settings) -> Iterator[Finding]:
    memory, wanted = machine.usable_memory_bytes() // MB, settings.whorl.memory_mb
    fix = "" if memory >= wanted else f"lower whorl.memory_mb, which is {wanted:,} now"
    state: State = "ok" if memory >= wanted else "missing"
    yield Finding("machine", "memory", state, f"{memory / 1024:,.1f} GiB free to use", "warehouse", fix)
    yield Finding("machine", "cores", "ok", str(len(os.sched_getaffinity(0))), "warehouse, recording")
    is_root = os.geteuid() == 0
    fix = "" if is_root else "run recorders as root, or in a container of your own"
    user = "root" if is_root else f"user {os.geteuid()}"
    yield Finding("machine", "user", "ok" if is_root else "missing", user, "recording under quotas", fix)
    yield _cgroups(machine.read_cgroups())
    yield _counters()
    yield _network()


def _cgroups(groups: machine.Cgroups) -> Finding:
    purpose = "recording: quotas and quiet benchmarks"
    if groups.writable:
        return Finding("machine", "cgroups", "ok", f"{groups.layout}, writable: {', '.join(groups.writable)}", purpose)
    fix = "run as root with /sys/fs/cgroup writable; without, recordings use threads and say so"
    return Finding("machine", "cgroups", "missing", f"{groups.layout}, none writable", purpose, fix)


def _counters() -> Finding:
    purpose = "workloads: hardware counters"
    paranoia, counts = machine.perf_paranoia(), machine.counts_hardware_events()
    setting = f"perf_event_paranoid {'not there' if paranoia is None else paranoia}"
    if counts:
        return Finding("machine", "PMU", "ok", f"hardware events count; {setting}", purpose)
    if counts is None:
        return Finding("machine", "PMU", "missing", f"not known without perf; {setting}", purpose, "install linux-perf")
    fix = "a virtual machine often has none: whorl then uses kernel tracepoints and /proc"
    return Finding("machine", "PMU", "missing", f"hardware events do not count; {setting}", purpose, fix)


def _network() -> Finding:
    purpose = "nodes: shaped networks"
    if not machine.makes_network_namespaces():
        fix = "run as root, with the package util-linux"
        return Finding("machine", "network", "missing", "no network namespaces", purpose, fix)
    kinds = {"tc tbf (rate)": machine.RATE, "tc netem (delay)": machine.DELAY}
    able = {name: machine.shapes_traffic(discipline) for name, discipline in kinds.items()}
    abilities = ", ".join(f"{name} {'works' if works else 'does not'}" for name, works in able.items())
    state: State = "ok" if all(able.values()) else "missing"
    fix = "" if all(able.values()) else "needs iproute2 and the kernel modules sch_tbf and sch_netem"
    return Finding("machine", "network", state, f"namespaces; {abilities}", purpose, fix)


def check_tool(tool: Tool) -> Finding:
    """Whether a program is installed; otherwise with the Debian package that has it."""
    path = machine.find_tool(*tool.programs)
    if path:
        return Finding("tools", tool.programs[0], "ok", path, tool.purpose)
    fix = f"apt-get install {tool.package}"
    return Finding("tools", tool.programs[0], "missing", "not installed", tool.purpose, fix)
