"""What this machine has and lacks: each finding says what it is for and what to do."""

import os
import platform
import tomllib
from collections.abc import Callable, Iterator, Sequence
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
Area = Literal["whorl", "machine", "tools"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at. broken: whorl cannot work so; missing: something that needs it cannot.

    found: what is there; purpose: what needs it; fix: what to do, empty if it is ok."""

    area: Area
    name: str
    state: State
    found: str
    purpose: str
    fix: str = ""


def examine(load: Callable[[], Settings]) -> list[Finding]:
    """Look at everything; `load` reads the settings. Faults are findings, never exceptions."""
    findings = [check_python(), *check_packages(requirements()[1])]
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


def _seen(
    area: Area, name: str, purpose: str, is_ok: bool, found: str, fix: str = "", *, otherwise: State = "missing"
) -> Finding:
    """What was found; fix is told where it is not ok."""
    return Finding(area, name, "ok" if is_ok else otherwise, found, purpose, "" if is_ok else fix)


def check_python() -> Finding:
    """The interpreter against requires-python."""
    wanted, version = requirements()[0], platform.python_version()
    fix = f"make a virtual environment with Python {wanted}"
    return _seen("whorl", "Python", "everything", version in SpecifierSet(wanted), version, fix, otherwise="broken")


def check_packages(needed: Sequence[str]) -> list[Finding]:
    """Installed packages against the requirements: one finding if all fit, else one for each that does not."""
    wrong = []
    for wanted in map(Requirement, needed):
        try:
            found = metadata.version(wanted.name)
            fits = wanted.specifier.contains(found, prereleases=True)
        except metadata.PackageNotFoundError:
            found, fits = "not installed", False
        if not fits:
            found, fix = f"{found}; needs {wanted.specifier}", f"pip install -c constraints.txt '{wanted}'"
            wrong.append(Finding("whorl", wanted.name, "broken", found, "everything", fix))
    return wrong or [Finding("whorl", "packages", "ok", f"{len(needed)} as pyproject.toml asks for", "everything")]


def _home(settings: Settings) -> Iterator[Finding]:
    home = settings.warehouse.home
    there = next(place for place in (home, *home.parents) if place.exists())
    may_write = there.is_dir() and os.access(there, os.W_OK)
    found = str(home) if may_write else f"{there}: this user may not write there"
    fix = "name another home with WHORL_HOME, or change its rights"
    yield _seen("whorl", "home", "everything", may_write, found, fix, otherwise="broken")
    free = machine.free_bytes(home)
    fix = f"free some: {LEAST_DISK_BYTES / 2**30:.0f} GiB are enough for a million runs"
    yield _seen("whorl", "disk", "warehouse", free >= LEAST_DISK_BYTES, f"{free / 2**30:,.1f} GiB free", fix)
    yield check_warehouse(settings)
    yield check_models(settings)
    folder = settings.whorl.datasets
    is_there = bool(folder) and Path(folder).expanduser().is_dir()
    found = folder if is_there else f"{folder}: no such folder" if folder else "not set"
    fix = "set it to a folder; see whorl datasets list"
    yield _seen("whorl", "WHORL_DATASETS", "tests on reference data", is_there, found, fix)


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


def _machine(settings: Settings) -> Iterator[Finding]:
    memory, wanted = machine.usable_memory_bytes() // MB, settings.whorl.memory_mb
    fix = f"lower whorl.memory_mb, which is {wanted:,} now"
    yield _seen("machine", "memory", "warehouse", memory >= wanted, f"{memory / 1024:,.1f} GiB free to use", fix)
    yield _seen("machine", "cores", "warehouse, recording", True, str(len(os.sched_getaffinity(0))))
    user, fix = os.geteuid(), "run recorders as root, or in a container of your own"
    found = f"user {user}" if user else "root"
    yield _seen("machine", "user", "recording under quotas", not user, found, fix)
    groups = machine.read_cgroups()
    writable = f"writable: {', '.join(groups.writable)}" if groups.writable else "none writable"
    purpose = "recording: quotas and quiet benchmarks"
    fix = "run as root with /sys/fs/cgroup writable; without, recordings use threads and say so"
    yield _seen("machine", "cgroups", purpose, bool(groups.writable), f"{groups.layout}, {writable}", fix)
    paranoia, counts = machine.perf_paranoia(), machine.counts_hardware_events()
    events = {True: "hardware events count", False: "hardware events do not count", None: "not known without perf"}
    found = f"{events[counts]}; perf_event_paranoid {'not there' if paranoia is None else paranoia}"
    fix = "a virtual machine often has none: whorl then uses kernel tracepoints and /proc"
    fix = "install linux-perf" if counts is None else fix
    yield _seen("machine", "PMU", "workloads: hardware counters", bool(counts), found, fix)
    yield _network()


def _network() -> Finding:
    if not machine.makes_network_namespaces():
        found, is_able, fix = "no network namespaces", False, "run as root, with the package util-linux"
    else:
        kinds = {"tc tbf (rate)": machine.RATE, "tc netem (delay)": machine.DELAY}
        able = {name: machine.shapes_traffic(discipline) for name, discipline in kinds.items()}
        abilities = ", ".join(f"{name} {'works' if works else 'does not'}" for name, works in able.items())
        found, is_able = f"namespaces; {abilities}", all(able.values())
        fix = "needs iproute2 and the kernel modules sch_tbf and sch_netem"
    return _seen("machine", "network", "nodes: shaped networks", is_able, found, fix)


def check_tool(tool: Tool) -> Finding:
    """Whether a program is installed; otherwise with the Debian package that has it."""
    path = machine.find_tool(*tool.programs)
    fix = f"apt-get install {tool.package}"
    return _seen("tools", tool.programs[0], tool.purpose, bool(path), path or "not installed", fix)
